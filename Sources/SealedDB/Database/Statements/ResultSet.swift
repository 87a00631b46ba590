import Foundation

/// The rows of a query: FMDB's `FMResultSet`.
///
/// Keeps its ``Database`` alive. Not Sendable; but it may be dropped on any thread, before or after its database is
/// closed.
public final class ResultSet {
    let prepared: Statement
    // Kept alive by the statement while it is in use.
    private let database: Unmanaged<Database>
    /// The statement's text.
    public let query: String?
    /// Whether the statement leaves the database as it is. https://www.sqlite.org/c3ref/stmt_readonly.html
    public let isReadOnlyStatement: Bool
    /// A set from ``Database/prepare(_:)`` stays open at the end of its rows.
    private let isPrepared: Bool

    init(statement: Statement, database: Database, sql: String, isPrepared: Bool) {
        self.prepared = statement
        self.database = .passUnretained(database)
        self.query = sql
        self.isReadOnlyStatement = statement.isReadOnly
        self.isPrepared = isPrepared
        statement.user = database
    }

    deinit {
        // The database may be in use by another thread now. It has the failure, if there is one, from the connection.
        prepared.close()
    }

    /// The database that the rows come from; `nil` once the set is closed.
    public var parentDB: Database? { prepared.activeUser == nil ? nil : database.takeUnretainedValue() }

    /// The statement in use; `nil` once the set is closed.
    public var statement: Statement? { prepared.activeUser == nil ? nil : prepared }

    /// Ends the set and frees its locks; idempotent.
    ///
    /// Outside a transaction this commits what the statement wrote, if its end was not reached: an `INSERT … RETURNING` of
    /// which one row was read. If that fails nothing is stored, ``Database/lastError()`` tells, and a block of a queue or
    /// pool fails that does not look. https://www.sqlite.org/c3ref/reset.html
    public func close() { end { prepared.end() } }

    /// As ``close()``, throwing.
    /// - Throws: ``DatabaseError`` if what the statement wrote could not be committed; nothing of it is stored then.
    public func closeWithError() throws(DatabaseError) {
        try endWithError { prepared.end() }
    }

    private func end(_ body: () -> DatabaseError?) {
        // Which nobody else may be keeping alive.
        let database = parentDB
        if let failure = body(), let database { database.ignore(database.recorded(failure)) }
    }

    private func endWithError(_ body: () -> DatabaseError?) throws(DatabaseError) {
        let database = parentDB
        if let failure = body() { throw database?.recorded(failure) ?? failure }
    }

    /// Moves to the next row; false at the end and on an error, which ``Database/lastError()`` tells apart.
    @discardableResult
    public func next() -> Bool {
        (try? advance(isThrowing: false)) ?? false  // The error is in lastError().
    }

    /// Moves to the next row; false at the end.
    /// - Throws: ``DatabaseError``, also with `SQLITE_MISUSE` once the set is closed. The set is closed then.
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

    /// While the set is in use.
    @inline(__always)
    func succeeded() { database._withUnsafeGuaranteedRef { $0.recordSuccess() } }

    /// Executes a prepared statement that returns no rows; true when it is done.
    @discardableResult
    public func step() -> Bool {
        (try? !advance(isThrowing: false)) ?? false  // The error is in lastError().
    }

    /// As ``step()``, throwing; false if there is a row.
    @discardableResult
    public func stepWithError() throws(DatabaseError) -> Bool {
        try !nextWithError()
    }

    /// Whether the set stands on a row.
    public func hasAnotherRow() -> Bool { prepared.hasRow }

    /// Runs a statement that writes to its end; the other rows are passed over.
    func completeExecution() throws(DatabaseError) {
        guard !isReadOnlyStatement else { return }
        while try nextWithError() {}
    }

    /// Ends the execution; a set from ``Database/prepare(_:)`` can be bound again.
    @usableFromInline
    func finish() { end { endExecution() } }

    /// As ``finish()``, throwing.
    @usableFromInline
    func finishWithError() throws(DatabaseError) { try endWithError { endExecution() } }

    private func endExecution() -> DatabaseError? {
        guard isPrepared else { return prepared.end() }
        return prepared.isReset() ? nil : prepared.takeEndFailure()
    }

    /// Binds new values to a set from `prepare(_:)`, in the order of its parameters, and makes it ready to run.
    @discardableResult
    public func bind(with array: [Any]) -> Bool {
        rebind { () throws(DatabaseError) in
            try prepared.bind(all: array)
        }
    }

    /// Binds new values to a set from `prepare(_:)`, by the names of its parameters, and makes it ready to run.
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
