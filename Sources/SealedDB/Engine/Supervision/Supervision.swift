import Foundation
internal import SQLiteEngine

/// Bounds what a block may do with its connection, and ends statements that are no longer wanted or take too long.
///
/// Where it watches, SQLite asks it every now and then while a statement runs, on the thread that runs it. So it stops the statement of the
/// block that is meant, and never that of the next block, as a call of `sqlite3_interrupt` from elsewhere could.
/// https://www.sqlite.org/c3ref/progress_handler.html
final class Supervision {
    /// Whose transaction the statements run in.
    enum Scope {
        /// The block's own, if any.
        case block
        /// The library's, which the block may not end.
        case reading, writing
    }

    /// Set when the caller of the present block no longer wants it.
    var stop: StopFlag?
    /// Set when the queue or pool shuts down.
    let shutdown = StopFlag()
    /// Whether a caller's block runs, or waits for a lock. The library's own COMMIT and ROLLBACK are never stopped.
    var isStoppable = false
    var scope = Scope.block
    /// Whether the transaction also holds the work of other blocks. SQLite rolls all of it back when a statement that
    /// writes is stopped, so that it is then let finish.
    var isShared = false
    /// Whether running statements, and waits for locks, may have to be stopped or reported.
    let isWatching: Bool
    /// Why the present block was not allowed to roll its transaction back, if it tried to.
    var refusedRollback: DatabaseError?
    /// Seconds a statement may take.
    let timeLimit: Double?
    /// Off while the library does work of its own, which takes as long as it takes.
    var hasTimeLimit = true
    /// Told the text and the seconds of statements that took longer than `threshold`; the text is that of the prepared
    /// statement, without values, and `nil` if it holds a key.
    var slowStatements: SlowStatements?

    struct SlowStatements {
        let threshold: Double
        let report: (_ sql: String?, _ seconds: Double) -> Void
    }

    /// Of the statement that SQLite is stepping now, in nanoseconds of the monotonic clock; `nil` for none. Between the
    /// steps nothing is stopped: SQLite also reads the schema when nothing runs.
    private var deadline: UInt64?
    private var isTimeUp = false
    private var isWriting = false

    init(timeLimit: Double?, isWatching: Bool) {
        self.timeLimit = timeLimit
        self.isWatching = isWatching
    }

    var isStopped: Bool { isStoppable && (stop?.isSet ?? false || shutdown.isSet) }

    /// How many of SQLite's virtual instructions pass between two questions: some ten microseconds.
    static let interval: Int32 = 1000

    /// Asked while a statement runs.
    var goesOn: Bool {
        if let deadline, DispatchTime.now().uptimeNanoseconds > deadline {
            isTimeUp = true
            return false
        }
        return !isStopped || (isShared && isWriting)
    }

    /// Called when a statement was prepared or taken from the cache, and before its first step: it may have been prepared
    /// in another block.
    func check(_ statement: Statement) throws(DatabaseError) {
        guard scope != .block, statement.prepared.controlsTransaction else { return }
        let refusal = DatabaseError(
            extendedCode: SQLITE_MISUSE,
            reason: .misuse,
            message: """
                The block runs in a transaction or savepoint that ends with it, and cannot begin or end a transaction. \
                Throw to roll back, use a savepoint for a part, or a call that gives the block no transaction, such as \
                writeWithoutTransaction.
                """,
            sql: statement.sql
        )
        if statement.sql.flatMap({ SQLStatementText.verb(of: $0) }) == "rollback" { refusedRollback = refusal }
        throw refusal
    }

    /// Runs a block in a transaction or savepoint that is open, and that it may not end: what was committed in between, and
    /// begun anew, would be told to be undone. A rollback that it tried, and whose failure it did not mind, is made good
    /// for by failing.
    func keepingTransaction<T>(_ block: () throws -> T) throws -> T {
        let (outerScope, outerRefusal) = (scope, refusedRollback)
        if scope == .block { scope = .writing }
        refusedRollback = nil
        defer { (scope, refusedRollback) = (outerScope, outerRefusal) }
        let result = try block()
        if let refusedRollback { throw refusedRollback }
        return result
    }

    /// Called before the first step of a statement that no other one calls: whether ``willStart(_:)`` has nothing to do.
    @inline(__always)
    func startsFreely(_ isReadOnly: Bool) -> Bool {
        guard scope == .block, timeLimit == nil else { return false }
        isWriting = !isReadOnly
        return true
    }

    /// Called before the first step of a statement.
    func willStart(_ statement: Statement) throws(DatabaseError) {
        try check(statement)
        let isNested = statement.connection.isRunning
        let writes = !statement.isReadOnly
        // A statement that a function executes does not change what the one that calls it does.
        isWriting = writes || (isNested && isWriting)
        try check(statement.connection, writes: writes)
        if let timeLimit, !isNested {
            let limit = hasTimeLimit ? timeLimit : nil
            statement.deadline = limit.map { DispatchTime.now().uptimeNanoseconds + UInt64(nanosecondsOf: $0) }
        }
    }

    /// Runs a step that no other one calls, until the statement's deadline.
    func stepping<T>(_ statement: Statement, _ step: () -> T) -> T {
        isTimeUp = false
        deadline = statement.deadline
        defer { deadline = nil }
        return step()
    }

    /// Called before anything that reads or writes.
    func check(_ connection: Connection, writes: Bool) throws(DatabaseError) {
        // Elsewhere a block may have a transaction to roll back, or a setting to restore.
        guard scope != .block else { return }
        if isStopped { throw .stopped }
        // SQLite would go on without a transaction.
        guard !connection.isAutocommit else { throw .transactionLost }
        guard scope == .writing || !writes else { throw .readOnlyBlock }
    }

    /// Says what stopped the statement.
    func explain(_ error: DatabaseError) -> DatabaseError {
        guard error.code == SQLITE_INTERRUPT, isTimeUp, let timeLimit else { return error }
        return DatabaseError(
            extendedCode: SQLITE_INTERRUPT,
            reason: .timedOut,
            message: """
                The statement was stopped because it took longer than the configuration's limit of \(timeLimit) s. \
                If it was writing, SQLite has rolled its transaction back.
                """,
            sql: error.sql
        )
    }
}

extension DatabaseError {
    static let stopped = DatabaseError(
        extendedCode: SQLITE_INTERRUPT,
        message: "The caller of the block was cancelled, or the queue or pool is shutting down."
    )

    static let transactionLost = DatabaseError(
        extendedCode: SQLITE_ABORT,
        message: """
            SQLite has rolled the block's transaction back, after a statement that failed or was stopped. Nothing of it \
            is kept, and further statements of the block are refused.
            """
    )

    static let readOnlyBlock = DatabaseError(
        extendedCode: SQLITE_READONLY,
        reason: .misuse,
        message: "A block of read cannot write. The statement was not executed; use write."
    )
}
