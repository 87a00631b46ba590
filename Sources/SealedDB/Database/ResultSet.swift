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
    let prepared: Statement
    /// A set from ``Database/prepare(_:)`` stays open at the end of its rows.
    private let isPrepared: Bool
    var cachedIndexes: (map: [String: Int32], reprepareCount: Int32)?

    /// The statement in use; `nil` once the set is closed.
    public var statement: Statement? { parentDB == nil ? nil : prepared }

    init(statement: Statement, database: Database, sql: String, isPrepared: Bool) {
        self.prepared = statement
        self.isReadOnlyStatement = statement.isReadOnly
        self.parentDB = database
        self.query = sql
        self.isPrepared = isPrepared
    }

    deinit {
        prepared.close()
    }

    /// Ends the set and frees its locks; idempotent.
    public func close() {
        prepared.close()
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
            let hasRow = try database.recording { () throws(DatabaseError) in try prepared.step() }
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
    public func hasAnotherRow() -> Bool { prepared.hasRow }

    @usableFromInline
    func finish() {
        if isPrepared { prepared.reset() } else { close() }
    }

    /// Binds new values to a set from `prepare(_:)`, in the order of its parameters, and makes it ready to run.
    @discardableResult
    public func bind(with array: [Any]) -> Bool {
        rebind { database throws(DatabaseError) in
            try prepared.bind(all: array, dateFormat: database.dateFormat)
        }
    }

    /// Binds new values to a set from `prepare(_:)`, by the names of its parameters, and makes it ready to run.
    @discardableResult
    public func bind(with dictionary: [AnyHashable: Any]) -> Bool {
        rebind { database throws(DatabaseError) in
            try prepared.bind(named: dictionary, dateFormat: database.dateFormat)
        }
    }

    private func rebind(_ body: (Database) throws(DatabaseError) -> Void) -> Bool {
        guard let database = parentDB else { return false }
        prepared.reset()
        prepared.clearBindings()
        return database.succeeds { () throws(DatabaseError) in try body(database) }
    }

}

@available(*, unavailable, message: "A ResultSet belongs to the thread that uses its Database. Pass the values on.")
extension ResultSet: Sendable {}
