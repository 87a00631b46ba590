import Foundation
internal import SQLiteEngine

/// Limits what a block may do with its connection, and stops statements that are no longer wanted or take too long.
///
/// If it watches, SQLite calls it at intervals while a statement runs, on the thread that runs the statement. So it
/// only stops statements of the intended block. A call of `sqlite3_interrupt` from another thread could stop one of the
/// next block. https://www.sqlite.org/c3ref/progress_handler.html
final class Supervision {
    /// Who owns the transaction in which statements run.
    enum Scope {
        /// The block owns the transaction, if there is one.
        case block
        /// The library owns the transaction, and the block may not end it.
        case reading, writing
    }

    /// Set when the caller of the present block no longer wants its result.
    var stop: StopFlag?
    /// Set when the queue or pool shuts down.
    let shutdown = StopFlag()
    /// Whether a caller's block is running or waiting for a lock. The library's own COMMIT and ROLLBACK are never
    /// stopped.
    var isStoppable = false
    var scope = Scope.block
    /// Whether the transaction also contains the work of other blocks. If a writing statement is stopped, SQLite rolls
    /// all of that back, so such a statement is allowed to finish, unless all of them end.
    var isShared = false
    /// Whether running statements and waits for locks may have to be stopped or reported.
    let isWatching: Bool
    /// Why the present block was not allowed to roll back its transaction, if it tried to.
    var refusedRollback: DatabaseError?
    /// Who else of the pool wants to write.
    var writeLine: WriteLine?
    /// Called when the database has closed itself because its file was replaced.
    var whenReplaced: (() -> Void)?
    /// How many seconds a statement may take; `nil` for no limit.
    let timeLimit: Double?
    /// Whether the time limit applies. It does not while the library runs statements of its own.
    var hasTimeLimit = true
    /// Called with the text and the seconds of statements that took longer than `threshold`. The text is that of the
    /// prepared statement, without bound values; `nil` if it contains a key.
    var slowStatements: SlowStatements?

    struct SlowStatements {
        let threshold: Double
        let report: (_ sql: String?, _ seconds: Double) -> Void
    }

    /// The deadline of the statement that SQLite is now stepping, in nanoseconds of the monotonic clock; `nil` if none
    /// is being stepped. Between steps, nothing is stopped, because SQLite also calls the handler when it reads the
    /// schema.
    private var deadline: UInt64?
    private var isTimeUp = false

    init(timeLimit: Double?, isWatching: Bool) {
        self.timeLimit = timeLimit
        self.isWatching = isWatching
    }

    var isStopped: Bool { isStoppable && (stop?.isSet ?? false || shutdown.isSet) }

    /// The number of virtual machine instructions between two calls of the handler: about ten microseconds.
    static let interval: Int32 = 1000

    /// Whether the running statement may continue. SQLite's progress handler asks this.
    func goesOn(_ connection: Connection) -> Bool {
        if let deadline, DispatchTime.now().uptimeNanoseconds > deadline {
            isTimeUp = true
            return false
        }
        // Then nobody's work is committed any more.
        if isStoppable, shutdown.isSet { return false }
        // Also where a statement that writes has called a function that only reads.
        return !isStopped || (isShared && connection.hasRunningWriter)
    }

    /// Throws if the statement would begin or end the library's transaction. Called when a statement is prepared or
    /// taken from the cache, and also before its first step, because another block may have prepared it.
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

    /// Runs a block in an open transaction or savepoint that the block may not end. If the block committed it and began
    /// another, a later failure would report the committed work as undone. If the block tried to roll back and ignored
    /// the error, this call throws that error.
    func keepingTransaction<T>(_ block: () throws -> T) throws -> T {
        let (outerScope, outerRefusal) = (scope, refusedRollback)
        if scope == .block { scope = .writing }
        refusedRollback = nil
        defer { (scope, refusedRollback) = (outerScope, outerRefusal) }
        let result = try block()
        if let refusedRollback { throw refusedRollback }
        return result
    }

    /// Whether ``willStart(_:)`` has nothing to do. Called before the first step of a statement that no other statement
    /// calls.
    @inline(__always)
    func startsFreely(_ isReadOnly: Bool) -> Bool {
        guard scope == .block, timeLimit == nil else { return false }
        return isReadOnly || writeLine?.isContended != true
    }

    /// Called before the first step of a statement.
    func willStart(_ statement: Statement) throws(DatabaseError) {
        try check(statement)
        let isNested = statement.connection.isRunning
        let writes = !statement.isReadOnly
        if writes, scope == .block, !isNested, let writeLine, statement.connection.isAutocommit {
            writeLine.giveWay(self)
        }
        try check(statement.connection, writes: writes)
        if let timeLimit, !isNested {
            let limit = hasTimeLimit ? timeLimit : nil
            statement.deadline = limit.map { DispatchTime.now().uptimeNanoseconds + UInt64(nanosecondsOf: $0) }
        }
    }

    /// Runs a step that no other statement calls, until the deadline of its statement.
    func stepping<T>(_ statement: Statement, _ step: () -> T) -> T {
        isTimeUp = false
        deadline = statement.deadline
        defer { deadline = nil }
        return step()
    }

    /// Called before anything that reads or writes.
    func check(_ connection: Connection, writes: Bool) throws(DatabaseError) {
        // In other scopes, a block may still have to roll back a transaction or restore a setting.
        guard scope != .block else { return }
        if isStopped { throw .stopped }
        // Without this check, SQLite would continue without a transaction.
        guard !connection.isAutocommit else { throw .transactionLost }
        guard scope == .writing || !writes else { throw .readOnlyBlock }
    }

    /// Returns the error with what stopped the statement.
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
            is kept, unless the block has itself released a savepoint that was there before it, which commits. Further \
            statements of the block are refused.
            """
    )

    static let readOnlyBlock = DatabaseError(
        extendedCode: SQLITE_READONLY,
        reason: .misuse,
        message: "A block of read cannot write. The statement was not executed; use write."
    )
}
