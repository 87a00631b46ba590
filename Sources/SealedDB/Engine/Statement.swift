import Foundation
internal import SQLiteEngine

/// Fundamental types of SQLite values, with SQLite's numbers. https://www.sqlite.org/c3ref/c_blob.html
public enum SqliteValueType: Int32, Sendable {
    case integer = 1
    case float = 2
    case text = 3
    case blob = 4
    case null = 5
}

/// One use of a prepared statement: FMDB's `FMStatement`. https://www.sqlite.org/c3ref/stmt.html
///
/// Belongs to the thread that uses its ``Database``; it may be dropped on any.
public final class Statement {
    /// `nil` for text without a statement, and once the use has ended.
    private(set) var pointer: OpaquePointer?
    let connection: Connection
    let kind: StatementKind
    /// The text, if the statement may be kept for another use.
    var cacheKey: String?
    /// How many queries and updates this prepared statement has served, the present one included: 1 for one that was
    /// prepared now, more for one from the cache.
    public internal(set) var useCount = 1
    /// Whether text that is more than white space followed the statement.
    var hasTail = false
    /// True between a step that returned a row and the next step, reset or end.
    private(set) var hasRow = false
    /// How many rows the execution has returned.
    private(set) var rowNumber = 0
    /// True after a failed binding: it must not run with NULL in place of values.
    var lacksValues = false
    /// Whether a step failed.
    private(set) var hasFailed = false
    /// Whether a step is under way; a function that it calls must leave the statement alone.
    private(set) var isRunning = false
    var isRunningWriter: Bool { isRunning && !isReadOnly }
    private var isClosing = false
    /// What it may write, where changes are observed.
    var targets = ChangeCollector.Targets()

    /// Errors then leave the text out.
    private let holdsKey: Bool

    init(pointer: OpaquePointer?, connection: Connection, kind: StatementKind, holdsKey: Bool = false) {
        self.holdsKey = holdsKey
        self.pointer = pointer
        self.connection = connection
        self.kind = kind
    }

    /// For the connection alone, under its lock.
    func takePointer() -> OpaquePointer? {
        defer {
            pointer = nil
            hasRow = false
        }
        return pointer
    }

    /// Whether it is in use.
    public var inUse: Bool { pointer != nil }

    /// The text; empty once the use has ended, and for a statement that holds a key.
    public var query: String { sql ?? "" }

    static func end(_ pointer: OpaquePointer) { sqlite3_finalize(pointer) }

    /// Ends this use, as closing the result set does; idempotent. In a function that the statement calls, it ends when
    /// the function has returned.
    public func close() {
        if isRunning { isClosing = true } else { connection.release(self) }
    }

    /// Advances by one row; false at the end. https://www.sqlite.org/c3ref/step.html
    func step() throws(DatabaseError) -> Bool {
        guard let pointer else { throw .statementClosed }
        guard !isRunning else { throw .statementRunning }
        guard !lacksValues else { throw .valuesMissing(sql) }
        try connection.requireNoHook()
        if !hasRow, let supervision = connection.supervision { try supervision.willStart(self) }
        isRunning = true
        let code = connection.step(self, pointer)
        isRunning = false
        rowNumber = hasRow ? rowNumber &+ 1 : 1
        hasRow = code == SQLITE_ROW
        let error = hasRow || code == SQLITE_DONE ? nil : connection.error(sql: sql)
        hasFailed = hasFailed || error != nil
        if isClosing { close() }
        if let error { throw connection.supervision?.explain(error) ?? error }
        if code == SQLITE_ROW {
            guard !isClosing else { throw .statementClosed }
            return true
        }
        if kind == .schemaChange { connection.clearCache() }
        return false
    }

    /// Makes the statement ready to run again, with its bindings kept. https://www.sqlite.org/c3ref/reset.html
    ///
    /// In a function that the statement calls it does nothing.
    public func reset() {
        guard let pointer, !isRunning else { return }
        hasRow = false
        // The result repeats the last step's error, which was reported then.
        sqlite3_reset(pointer)
    }

    func clearBindings() {
        if let pointer, !isRunning { sqlite3_clear_bindings(pointer) }
    }

    /// The text, for errors; `nil` if it holds a key.
    var sql: String? { holdsKey ? nil : pointer.flatMap { sqlite3_sql($0) }.map { String(cString: $0) } }

    /// Whether the statement leaves the database file as it is. https://www.sqlite.org/c3ref/stmt_readonly.html
    var isReadOnly: Bool { pointer.map { sqlite3_stmt_readonly($0) != 0 } ?? true }

    // MARK: Parameters

    var parameterCount: Int32 { pointer.map { sqlite3_bind_parameter_count($0) } ?? 0 }

    /// Name of a parameter with its prefix; `nil` for `?`. Indexes begin at 1.
    func parameterName(at index: Int32) -> String? {
        pointer.flatMap { sqlite3_bind_parameter_name($0, index) }.map { String(cString: $0) }
    }

    func bindNull(at index: Int32) throws(DatabaseError) {
        try checked { sqlite3_bind_null($0, index) }
    }

    func bind(_ value: Int64, at index: Int32) throws(DatabaseError) {
        try checked { sqlite3_bind_int64($0, index, value) }
    }

    func bind(_ value: Double, at index: Int32) throws(DatabaseError) {
        try checked { sqlite3_bind_double($0, index, value) }
    }

    func bind(_ value: String, at index: Int32) throws(DatabaseError) {
        var value = value
        try checked { pointer in
            value.withUTF8 { bytes in
                let start = bytes.baseAddress.map { UnsafeRawPointer($0).assumingMemoryBound(to: CChar.self) }
                return sealeddb_bind_text(pointer, index, start, UInt64(bytes.count))
            }
        }
    }

    /// As a blob; empty bytes are an empty blob, not NULL.
    func bind(_ bytes: some ContiguousBytes, at index: Int32) throws(DatabaseError) {
        try checked { pointer in
            bytes.withUnsafeBytes { sealeddb_bind_blob(pointer, index, $0.baseAddress, UInt64($0.count)) }
        }
    }

    /// As text, whose bytes must be UTF-8.
    func bindText(_ bytes: UnsafeRawBufferPointer, at index: Int32) throws(DatabaseError) {
        try checked { pointer in
            let start = bytes.baseAddress?.assumingMemoryBound(to: CChar.self)
            return sealeddb_bind_text(pointer, index, start, UInt64(bytes.count))
        }
    }

    private func checked(_ call: (OpaquePointer) -> Int32) throws(DatabaseError) {
        guard let pointer else { throw .statementClosed }
        let code = call(pointer)
        guard code == SQLITE_OK else { throw connection.error(sql: sql) }
    }

    // MARK: Columns. Without a row, and for a column that is not there, every value is NULL.

    /// How often SQLite has prepared it anew because of a changed schema. https://www.sqlite.org/c3ref/stmt_status.html
    var reprepareCount: Int32 { pointer.map { sqlite3_stmt_status($0, SQLITE_STMTSTATUS_REPREPARE, 0) } ?? 0 }

    var columnCount: Int32 { pointer.map { sqlite3_column_count($0) } ?? 0 }

    func columnName(at index: Int32) -> String? {
        guard let pointer, index >= 0, index < sqlite3_column_count(pointer) else { return nil }
        return sqlite3_column_name(pointer, index).map { String(cString: $0) }
    }

    /// The pointer if it stands on a row that has this column: SQLite would otherwise record an error.
    private func row(_ index: Int32) -> OpaquePointer? {
        guard let pointer, hasRow, index >= 0, index < sqlite3_data_count(pointer) else { return nil }
        return pointer
    }

    func type(at index: Int32) -> SqliteValueType {
        row(index).flatMap { SqliteValueType(rawValue: sqlite3_column_type($0, index)) } ?? .null
    }

    func int64(at index: Int32) -> Int64 {
        row(index).map { sqlite3_column_int64($0, index) } ?? 0
    }

    func double(at index: Int32) -> Double {
        row(index).map { sqlite3_column_double($0, index) } ?? 0
    }

    /// Text with its embedded NULs; `nil` for NULL and for invalid UTF-8.
    func text(at index: Int32) -> String? {
        guard let pointer = row(index), let start = sqlite3_column_text(pointer, index) else { return nil }
        let bytes = UnsafeBufferPointer(start: start, count: Int(sqlite3_column_bytes(pointer, index)))
        return String(validating: bytes, as: UTF8.self)
    }

    /// Terminated text inside SQLite, valid until the next step, reset or conversion.
    func textPointer(at index: Int32) -> UnsafePointer<UInt8>? {
        row(index).flatMap { sqlite3_column_text($0, index) }
    }

    /// Calls `body` with the bytes of a blob, or of a text as UTF-8, inside SQLite; `nil` for NULL.
    @discardableResult
    func withBytes<T, E: Error>(
        at index: Int32,
        _ body: (UnsafeRawBufferPointer) throws(E) -> T
    ) throws(E) -> T? {
        guard let pointer = row(index) else { return nil }
        let type = sqlite3_column_type(pointer, index)
        guard type != SqliteValueType.null.rawValue else { return nil }
        // A text as blob would be in the encoding of the database. An empty blob has a null pointer.
        let isText = type == SqliteValueType.text.rawValue
        let start = isText ? UnsafeRawPointer(sqlite3_column_text(pointer, index)) : sqlite3_column_blob(pointer, index)
        let count = start == nil ? 0 : Int(sqlite3_column_bytes(pointer, index))
        return try body(UnsafeRawBufferPointer(start: start, count: count))
    }
}

@available(*, unavailable, message: "A Statement belongs to the thread that uses its Database.")
extension Statement: Sendable {}

extension Statement: ConnectionHandle {}

extension DatabaseError {
    static var statementRunning: DatabaseError {
        DatabaseError(
            extendedCode: SQLITE_MISUSE,
            reason: .misuse,
            message: "The statement was stepped by a function that it calls itself. Use another statement there."
        )
    }

    static var statementClosed: DatabaseError {
        DatabaseError(
            extendedCode: SQLITE_MISUSE,
            reason: .misuse,
            message: "The statement is closed or holds no SQL. Prepare it anew."
        )
    }

    static func valuesMissing(_ sql: String?) -> DatabaseError {
        DatabaseError(
            extendedCode: SQLITE_MISUSE,
            reason: .misuse,
            message: "The values could not be bound. Nothing was executed; bind them again first.",
            sql: sql
        )
    }
}
