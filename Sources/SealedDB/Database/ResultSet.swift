import Foundation

/// The rows of a query: FMDB's `FMResultSet`.
///
/// Keeps its ``Database`` alive. Not Sendable; but it may be dropped on any thread, before or after its database is
/// closed.
public final class ResultSet {
    /// The database that the rows come from; `nil` once the set is closed.
    public private(set) var parentDB: Database?
    /// The statement's text.
    public let query: String?
    /// Whether the statement leaves the database as it is. https://www.sqlite.org/c3ref/stmt_readonly.html
    public let isReadOnlyStatement: Bool
    let statement: Statement
    /// A set from `prepare(_:)` stays open at the end of its rows.
    private let isPrepared: Bool
    lazy var columnIndexes: [String: Int32] = makeColumnIndexes()

    init(statement: Statement, database: Database, sql: String, isPrepared: Bool) {
        self.statement = statement
        self.isReadOnlyStatement = statement.isReadOnly
        self.parentDB = database
        self.query = sql
        self.isPrepared = isPrepared
    }

    deinit {
        statement.finalize()
    }

    /// Ends the set and frees its locks; idempotent.
    public func close() {
        statement.finalize()
        parentDB = nil
    }

    /// Moves to the next row; false at the end and on an error, which ``Database/lastError()`` tells apart.
    @discardableResult
    public func next() -> Bool {
        (try? nextWithError()) ?? false
    }

    /// Moves to the next row; false at the end.
    /// - Throws: ``DatabaseError``, also with `SQLITE_MISUSE` once the set is closed. The set is closed then.
    @discardableResult
    public func nextWithError() throws(DatabaseError) -> Bool {
        guard let database = parentDB else { throw .statementClosed }
        do throws(DatabaseError) {
            let hasRow = try database.recording { () throws(DatabaseError) in try statement.step() }
            if !hasRow { finish() }
            return hasRow
        } catch {
            finish()
            throw error
        }
    }

    /// Executes a prepared statement that returns no rows; true when it is done.
    @discardableResult
    public func step() -> Bool {
        (try? stepWithError()) ?? false
    }

    /// As ``step()``, throwing; false if there is a row.
    @discardableResult
    public func stepWithError() throws(DatabaseError) -> Bool {
        try !nextWithError()
    }

    /// Whether the set stands on a row.
    public func hasAnotherRow() -> Bool { statement.hasRow }

    private func finish() {
        if isPrepared { statement.reset() } else { close() }
    }

    /// Binds new values to a set from `prepare(_:)`, in the order of its parameters, and makes it ready to run.
    @discardableResult
    public func bind(with array: [Any]) -> Bool {
        rebind { database throws(DatabaseError) in
            try statement.bind(all: array, dateFormat: database.dateFormat)
        }
    }

    /// Binds new values to a set from `prepare(_:)`, by the names of its parameters, and makes it ready to run.
    @discardableResult
    public func bind(with dictionary: [AnyHashable: Any]) -> Bool {
        rebind { database throws(DatabaseError) in
            try statement.bind(named: dictionary, dateFormat: database.dateFormat)
        }
    }

    private func rebind(_ body: (Database) throws(DatabaseError) -> Void) -> Bool {
        guard let database = parentDB else { return false }
        statement.reset()
        statement.clearBindings()
        return database.succeeds { () throws(DatabaseError) in try body(database) }
    }

}

@available(*, unavailable, message: "A ResultSet belongs to the thread that uses its Database. Pass the values on.")
extension ResultSet: Sendable {}
