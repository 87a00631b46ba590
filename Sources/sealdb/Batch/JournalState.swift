import Foundation

/// What a journal says of its last batch.
struct JournalState {
    enum Store: Equatable {
        case notBegun
        /// Begun, and nothing more was written: the run was killed, or still goes on.
        case begun
        case done
        case failed(exitCode: Int32, message: String)
        case stopped
    }

    let batch: String
    let operation: String
    /// When the first run of the batch began.
    let begun: Date
    /// The last run's working directory and words.
    private(set) var directory = ""
    private(set) var command: [String] = []
    private(set) var process: Int32 = 0
    /// Absolute paths, in the order of the work.
    private(set) var stores: [String] = []
    private(set) var states: [String: Store] = [:]
    private(set) var runCount = 0
    /// When the last run ended by itself; `nil` if it goes on or was killed.
    private(set) var end: (time: Date, exitCode: Int32)?

    /// - Returns: `nil` without a record of a beginning.
    init?(_ records: [JournalRecord]) {
        guard let last = records.last(where: { $0.event == .begin }), let batch = last.batch,
            let first = records.first(where: { $0.event == .begin && $0.batch == batch })
        else { return nil }
        self.batch = batch
        operation = first.operation ?? ""
        begun = first.time
        var isOfBatch = false
        for record in records {
            if record.event == .begin { isOfBatch = record.batch == batch }
            if isOfBatch { add(record) }
        }
    }

    private mutating func add(_ record: JournalRecord) {
        switch record.event {
        case .begin:
            directory = record.directory ?? ""
            command = record.command ?? []
            process = record.process ?? 0
            stores = record.stores ?? []
            runCount += 1
            end = nil
        case .start: set(record, .begun)
        case .done: set(record, .done)
        case .failed: set(record, .failed(exitCode: record.exitCode ?? 0, message: record.message ?? ""))
        case .stopped: set(record, .stopped)
        case .end: end = (record.time, record.exitCode ?? 0)
        }
    }

    private mutating func set(_ record: JournalRecord, _ state: Store) {
        if let path = record.path { states[path] = state }
    }

    func state(of path: String) -> Store { states[path] ?? .notBegun }

    func stores(in isWanted: (Store) -> Bool) -> [String] { stores.filter { isWanted(state(of: $0)) } }

    /// This, if it is of these stores and not complete.
    func asUnfinishedBatch(operation: String, _ stores: [StoreItem]) -> JournalState? {
        let isOfThese = self.operation == operation && Set(self.stores) == Set(stores.map(\.identity))
        return isOfThese && !isComplete ? self : nil
    }

    /// Whether every store is done.
    var isComplete: Bool { stores.allSatisfy { state(of: $0) == .done } }
}
