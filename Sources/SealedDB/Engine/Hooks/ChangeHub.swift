import Synchronization

/// Which rows of a table have changed.
public enum ChangedRows: Sendable, Hashable {
    /// The rows with these row ids.
    case some(Set<Int64>)
    /// Unknown rows: the table has no row ids, or was emptied, or more than 1000 rows have changed.
    case any

    mutating func insert(_ rowID: Int64) {
        change { $0.insert(rowID) }
    }

    mutating func formUnion(_ other: ChangedRows) {
        switch other {
        case .some(let others): change { $0.formUnion(others) }
        case .any: self = .any
        }
    }

    private mutating func change(_ body: (inout Set<Int64>) -> Void) {
        guard case .some(var rows) = self else { return }
        // Releases the set's second reference, so that it is changed in place and not copied.
        self = .any
        body(&rows)
        if rows.count <= 1000 { self = .some(rows) }
    }
}

/// Passes committed changes to their observers. When the hub is released or finished, it ends all observations.
final class ChangeHub: Sendable {
    private struct State {
        var observers: [ObjectIdentifier: ChangeObserver] = [:]
        var isFinished = false
    }

    private let state = Guarded(State())
    private let versionCounter = Atomic<Int>(0)

    deinit { finish() }

    /// Ends all observations, also those that begin later.
    func finish() {
        let observers = state.withLock { state in
            state.isFinished = true
            return state.observers
        }
        for observer in observers.values { observer.finish() }
    }

    /// A number that changes whenever somebody begins or ends observing.
    var version: Int { versionCounter.load(ordering: .acquiring) }

    var observedTables: Set<TableName> {
        state.withLock { $0.observers.values.reduce(into: []) { $0.formUnion($1.names.keys) } }
    }

    func add(_ observer: ChangeObserver) {
        let isFinished = state.withLock { state in
            state.observers[ObjectIdentifier(observer)] = observer
            return state.isFinished
        }
        if isFinished { observer.finish() }
        versionCounter.add(1, ordering: .acquiringAndReleasing)
    }

    func remove(_ observer: ChangeObserver) {
        state.withLock { $0.observers[ObjectIdentifier(observer)] = nil }
        versionCounter.add(1, ordering: .acquiringAndReleasing)
    }

    func publish(_ changes: [TableName: ChangedRows]) {
        guard !changes.isEmpty else { return }
        let observers = state.withLock { $0.observers }
        for observer in observers.values { observer.receive(changes) }
    }
}

/// One observation: collects what has changed since the observer last asked.
final class ChangeObserver: Sendable {
    /// The observed tables, with their names as the observer spells them.
    let names: [TableName: String]
    private let unseen = Guarded<[String: ChangedRows]>([:])
    private let continuation: AsyncStream<Void>.Continuation

    /// - Parameter continuation: the continuation of a stream that buffers one signal.
    init(names: [TableName: String], continuation: AsyncStream<Void>.Continuation) {
        self.names = names
        self.continuation = continuation
    }

    func receive(_ changes: [TableName: ChangedRows]) {
        let isNews = unseen.withLock { unseen in
            var isNews = false
            for (name, rows) in changes {
                guard let spelling = names[name] else { continue }
                unseen[spelling, default: .some([])].formUnion(rows)
                isNews = true
            }
            return isNews
        }
        if isNews { continuation.yield() }
    }

    func take() -> [String: ChangedRows]? {
        unseen.withLock { unseen in
            defer { unseen = [:] }
            return unseen.isEmpty ? nil : unseen
        }
    }

    func finish() { continuation.finish() }
}
