import Foundation

/// The rows of a query: FMDB's `FMResultSet`.
///
/// It keeps its ``Database`` alive. It is not Sendable, but any thread may release it, before or after its database is
/// closed.
public final class ResultSet {
    let prepared: Statement
    // Not retained here: the statement retains the database while it is in use.
    private let database: Unmanaged<Database>
    /// The text of the statement; `nil` if it contains a key.
    public let query: String?
    /// Whether the statement leaves the database unchanged. https://www.sqlite.org/c3ref/stmt_readonly.html
    public let isReadOnlyStatement: Bool
    /// Whether the result set comes from ``Database/prepare(_:)-(SQL)``, and so stays open at the end of its rows.
    private let isPrepared: Bool

    init(statement: Statement, database: Database, sql: String, isPrepared: Bool) {
        self.prepared = statement
        self.database = .passUnretained(database)
        self.query = statement.prepared.isSecret ? nil : sql
        self.isReadOnlyStatement = statement.isReadOnly
        self.isPrepared = isPrepared
        statement.user = database
    }

    deinit {
        // Another thread may be using the database now, so the connection keeps a failure for it.
        prepared.close()
    }

    /// The database of the rows; `nil` once the result set is closed.
    public var parentDB: Database? { prepared.activeUser == nil ? nil : database.takeUnretainedValue() }

    /// The statement in use; `nil` once the result set is closed.
    public var statement: Statement? { prepared.activeUser == nil ? nil : prepared }

    /// Closes the result set and releases its locks. Calling it again has no effect.
    ///
    /// Outside a transaction, this commits the changes of a statement that has not reached its end, such as an
    /// `INSERT … RETURNING` of which one row was read. Until then, other writes of the connection are refused. If the commit fails, nothing is stored, and
    /// ``Database/lastError()`` returns the error. A block of a queue or pool that does not notice the error fails.
    /// https://www.sqlite.org/c3ref/reset.html
    public func close() { end { prepared.end() } }

    /// Like ``close()``, but throws.
    /// - Throws: ``DatabaseError`` if the changes of the statement could not be committed. None of them is stored then.
    public func closeWithError() throws(DatabaseError) {
        try endWithError { prepared.end() }
    }

    private func end(_ body: () -> DatabaseError?) {
        // Kept in a variable, because the statement may hold the last reference to the database.
        let database = parentDB
        if let failure = body(), let database { database.ignore(database.recorded(failure)) }
    }

    private func endWithError(_ body: () -> DatabaseError?) throws(DatabaseError) {
        let database = parentDB
        if let failure = body() { throw database?.recorded(failure) ?? failure }
    }

    /// Moves to the next row. Returns false at the end and on an error; see ``Database/lastError()`` for which it is.
    @discardableResult
    public func next() -> Bool {
        (try? advance(isThrowing: false)) ?? false  // The error is in lastError().
    }

    /// Moves to the next row. Returns false at the end.
    /// - Throws: ``DatabaseError``, with `SQLITE_MISUSE` if the result set is closed. An error closes the result set.
    @discardableResult
    public func nextWithError() throws(DatabaseError) -> Bool {
        try advance(isThrowing: true)
    }

    @inline(__always)
    private func advance(isThrowing: Bool) throws(DatabaseError) -> Bool {
        do throws(DatabaseError) {
            if try prepared.advance() {
                succeeded()
                return true
            }
        } catch {
            throw ended(error, isThrowing: isThrowing)
        }
        if prepared.inUse { succeeded() }
        finish()
        return false
    }

    @inline(never)
    private func ended(_ error: DatabaseError, isThrowing: Bool) -> DatabaseError {
        let error = recorded(error)
        if !isThrowing { parentDB?.ignore(error) }
        finish()
        return error
    }

    /// Records a success. Call it only while the result set is in use.
    @inline(__always)
    func succeeded() { database._withUnsafeGuaranteedRef { $0.recordSuccess() } }

    /// Executes a prepared statement that returns no rows. Returns true once the statement has ended.
    @discardableResult
    public func step() -> Bool {
        (try? !advance(isThrowing: false)) ?? false  // The error is in lastError().
    }

    /// Like ``step()``, but throws. Returns false if there is a row.
    @discardableResult
    public func stepWithError() throws(DatabaseError) -> Bool {
        try !nextWithError()
    }

    /// Whether the result set is at a row.
    public func hasAnotherRow() -> Bool { prepared.hasRow }

    /// Runs a writing statement to its end, and ignores its remaining rows.
    func completeExecution() throws(DatabaseError) {
        guard !isReadOnlyStatement else { return }
        while try nextWithError() {}
    }

    /// Ends the execution. A result set from ``Database/prepare(_:)-(SQL)`` can then be bound again.
    @usableFromInline
    func finish() {
        if !resets() { end { endExecution() } }
    }

    /// Like ``finish()``, but throws.
    @usableFromInline
    func finishWithError() throws(DatabaseError) {
        if !resets() { try endWithError { endExecution() } }
    }

    /// Resets a statement that stays in use. Returns false if it does not stay, or could not complete its execution. This is
    /// tried first, because it needs no reference to the database.
    @inline(__always)
    private func resets() -> Bool { isPrepared && prepared.isReset() }

    /// Call it only if ``resets()`` has returned false.
    private func endExecution() -> DatabaseError? { isPrepared ? prepared.takeEndFailure() : prepared.end() }

    /// Binds new values to a statement from `prepare(_:)`, in the order of its parameters, and makes it ready to run.
    /// - Returns: false on failure; see ``Database/lastError()``. The statement does not run until values are bound.
    @discardableResult
    public func bind(with array: [Any]) -> Bool {
        rebind { () throws(DatabaseError) in
            try prepared.bind(all: array)
        }
    }

    /// Binds new values to a statement from `prepare(_:)`, by the names of its parameters, and makes it ready to run.
    /// - Returns: false on failure; see ``Database/lastError()``. The statement does not run until values are bound.
    @discardableResult
    public func bind(with dictionary: [AnyHashable: Any]) -> Bool {
        rebind { () throws(DatabaseError) in
            try prepared.bind(named: dictionary)
        }
    }

    @inline(__always)
    private func rebind(_ body: () throws(DatabaseError) -> Void) -> Bool {
        guard prepared.activeUser != nil else { return false }
        do throws(DatabaseError) {
            try prepared.requireReset()
            prepared.clearBindings()
            try body()
        } catch {
            parentDB?.ignore(recorded(error))
            return false
        }
        if prepared.inUse { succeeded() }
        return true
    }
}

@available(*, unavailable, message: "A ResultSet belongs to the thread that uses its Database. Pass the values on.")
extension ResultSet: Sendable {}
