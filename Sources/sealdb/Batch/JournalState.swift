import Foundation
import SealedDB

/// What a journal says about its last batch. It is for people: a run does not rely on it.
struct JournalState {
    /// Why this version of sealdb cannot have written the journal.
    struct Malformed: Error {
        let what: String
    }

    enum Store: Equatable {
        case notBegun
        /// The work was begun, and nothing more was recorded: the run was killed, or is still going on.
        case begun
        /// The store has the new key. The work on its key file was begun, and nothing more was recorded.
        case replacing(KeyFiles)
        case done
        case failed(exitCode: Int32, message: String)
        case stopped
    }

    /// A key file whose replacement was begun, the file with its new key, and where the old key is kept.
    struct KeyFiles: Equatable {
        let file: String
        let newFile: String
        /// `nil` in journals of earlier versions.
        let formerFile: String?
    }

    let batch: String
    let operation: String
    /// When the first run of the batch began.
    let begun: Date
    /// The working directory of the last run.
    private(set) var directory = ""
    /// Absolute paths of the stores, in the order of the work.
    private(set) var stores: [String] = []
    private var known: Set<ExactText> = []
    private(set) var states: [ExactText: Store] = [:]
    /// Those whose replacement was begun in any run of the batch.
    private var replaced: [KeyFiles] = []
    private(set) var runCount = 0
    /// When and with which exit code the last run ended by itself; `nil` if it is still going on or was killed.
    private(set) var end: (time: Date, exitCode: Int32)?

    /// - Returns: `nil` if no run has begun.
    init?(_ records: [JournalRecord]) throws(Malformed) {
        guard let last = records.last(where: { $0.event == .begin }), let batch = last.batch,
            let first = records.first(where: { $0.event == .begin && $0.batch == batch })
        else { return nil }
        self.batch = batch
        operation = first.operation ?? ""
        begun = first.time
        var isOfBatch = false
        for record in records {
            if record.event == .begin { isOfBatch = record.batch == batch }
            if isOfBatch { try add(record) }
        }
    }

    private mutating func add(_ record: JournalRecord) throws(Malformed) {
        switch record.event {
        case .begin:
            guard record.version == JournalRecord.currentVersion else {
                throw Malformed(what: "it has another version")
            }
            guard record.operation == operation, let directory = record.directory, directory.begins(with: "/"),
                let stores = record.stores, !stores.isEmpty, stores.allSatisfy({ $0.begins(with: "/") }),
                runCount == 0 || Set(stores.map { ExactText($0) }) == known
            else { throw Malformed(what: "the beginning of a run is not whole") }
            self.directory = directory
            self.stores = stores
            known = Set(stores.map { ExactText($0) })
            runCount += 1
            end = nil
        case .start: try set(record, .begun)
        case .replacing:
            guard let file = record.keyFile, let newFile = record.newKeyFile, file.begins(with: "/"),
                newFile.begins(with: "/")
            else { throw Malformed(what: "the names of key files are missing") }
            let files = KeyFiles(file: file, newFile: newFile, formerFile: record.formerKeyFile)
            replaced.append(files)
            try set(record, .replacing(files))
        case .done: try set(record, .done)
        case .failed: try set(record, .failed(exitCode: status(of: record), message: record.message ?? ""))
        case .stopped: try set(record, .stopped)
        case .end: end = (record.time, try status(of: record))
        }
    }

    private mutating func set(_ record: JournalRecord, _ state: Store) throws(Malformed) {
        guard let path = record.path.map({ ExactText($0) }), known.contains(path) else {
            throw Malformed(what: "a record is of a store that is not of the batch")
        }
        states[path] = state
    }

    private func status(of record: JournalRecord) throws(Malformed) -> Int32 {
        guard let status = record.exitCode, (0...255).contains(status) else {
            throw Malformed(what: "an exit code is missing or impossible")
        }
        return status
    }

    func state(of path: String) -> Store { states[ExactText(path)] ?? .notBegun }

    /// What a run has recorded of the replacement of the key file; `nil` if none has begun.
    func replacement(of file: String, by newFile: String) -> KeyFiles? {
        // The first run that got so far chose the name of the old key.
        replaced.first { $0.file.isSame(as: file) && $0.newFile.isSame(as: newFile) }
    }

    func stores(in isWanted: (Store) -> Bool) -> [String] { stores.filter { isWanted(state(of: $0)) } }

    /// This state, if it belongs to a batch of these stores that is not complete; otherwise `nil`.
    func asUnfinishedBatch(operation: String, _ stores: [StoreItem]) -> JournalState? {
        let isOfThese = self.operation == operation && known == Set(stores.map { ExactText($0.identity) })
        return isOfThese && !isComplete ? self : nil
    }

    /// Whether every store is done.
    var isComplete: Bool { stores.allSatisfy { state(of: $0) == .done } }
}
