import Foundation

/// Opens the connections of a pool. The first connection is opened alone: it creates the file, sets its journal mode
/// and derives the key, which the others then share. The others may be opened at the same time. No opening waits for
/// the `prepare` closure of another one, so that closure may use the pool. A key source may not: without its key there is
/// no connection.
final class Opening: Sendable {
    private let flags: Int32
    private let vfs: String?
    private let isFirstDone = Guarded(false)
    private let first = DispatchSemaphore(value: 1)
    /// How many seconds a call waits for the first opening; `nil` for no limit.
    private let limit: @Sendable () -> Double?

    /// The pool whose connection is being opened, for what the opening calls: a key source, also one in a task of its own.
    @TaskLocal private static var current: ObjectIdentifier?

    /// How often who waits looks whether it is to stop, in seconds. The flags that tell it tell nobody.
    private static let interval = 0.05

    init(flags: Int32, vfs: String?, limit: @escaping @Sendable () -> Double?) {
        self.flags = flags
        self.vfs = vfs
        self.limit = limit
    }

    /// Opens the database if it is closed.
    func open(_ database: Database) throws(DatabaseError) {
        guard !database.isOpen else { return }
        guard !isFirstDone.withLock({ $0 }) else { return try openNow(database) }
        try waitForFirst(database)
        guard !isFirstDone.withLock({ $0 }) else {
            first.signal()
            return try openNow(database)
        }
        var isFirst = true
        func end(isDone: Bool) {
            if isDone { isFirstDone.withLock { $0 = true } }
            first.signal()
            isFirst = false
        }
        database.willPrepare = { end(isDone: true) }
        defer {
            database.willPrepare = nil
            if isFirst { end(isDone: false) }
        }
        let result = Opening.$current.withValue(ObjectIdentifier(self)) {
            Result { () throws(DatabaseError) in try openNow(database) }
        }
        try result.get()
    }

    private func waitForFirst(_ database: Database) throws(DatabaseError) {
        guard Opening.current != ObjectIdentifier(self) else { throw .keySourceUsesPool }
        let began = Reception.now
        while first.wait(timeout: .now() + Opening.interval) == .timedOut {
            if database.supervision.shutdown.isSet { throw .stopped }
            if let limit = limit(), Double(Reception.now - began) / 1e9 >= limit { throw .firstOpeningLasts(limit) }
        }
    }

    private func openNow(_ database: Database) throws(DatabaseError) {
        guard database.open(withFlags: flags, vfs: vfs) else { throw database.recordedError ?? .notOpen }
    }
}

extension DatabaseError {
    fileprivate static let keySourceUsesPool = DatabaseError(
        extendedCode: SQLITE_MISUSE,
        reason: .misuse,
        message: """
            A key source or a closure of the configuration has called the pool whose first connection waits for it. The \
            block was not called. Get the key without that pool.
            """
    )

    fileprivate static func firstOpeningLasts(_ seconds: Double) -> DatabaseError {
        DatabaseError(
            extendedCode: SQLITE_BUSY,
            reason: .busy,
            message: """
                The pool's first connection was not open after \(seconds) s, maximumWait: another call still waits for the key \
                or for a lock. The block was not called.
                """
        )
    }
}
