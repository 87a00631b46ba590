import SQLiteEngine

/// SQLite's own C interface and nothing else, so that what checks a store has no code in common with what wrote it.
public final class RawConnection {
    public struct Failure: Error, CustomStringConvertible {
        public let code: Int32
        public let message: String
        public var description: String { "\(message) (\(code))" }
    }

    private var handle: OpaquePointer?

    /// - Parameters:
    ///   - key: as `sqlite3_key` takes it, such as `x'…'`; `nil` for a database in the clear.
    ///   - pragmas: cipher settings that differ from SQLCipher 4's.
    public init(_ path: String, key: String?, pragmas: [String] = [], creates: Bool = false) throws(Failure) {
        var opened: OpaquePointer?
        let flags = SQLITE_OPEN_READWRITE | (creates ? SQLITE_OPEN_CREATE : 0)
        let code = sqlite3_open_v2(path, &opened, flags, nil)
        guard code == SQLITE_OK, let opened else {
            sqlite3_close(opened)
            throw Failure(code: code, message: "cannot open \(path)")
        }
        handle = opened
        if let key {
            guard sealeddb_key(handle, key, Int32(key.utf8.count)) == SQLITE_OK else { throw failure() }
            try run("PRAGMA cipher_log = off")
            for pragma in pragmas { try run("PRAGMA \(pragma)") }
        }
    }

    deinit {
        close()
    }

    public func close() {
        sqlite3_close(handle)
        handle = nil
    }

    public func run(_ sql: String) throws(Failure) {
        guard sqlite3_exec(handle, sql, nil, nil, nil) == SQLITE_OK else { throw failure() }
    }

    /// The rows of a query; NULL is "NULL", and blobs are in hex.
    public func rows(_ sql: String) throws(Failure) -> [[String]] {
        var statement: OpaquePointer?
        defer { sqlite3_finalize(statement) }
        guard sqlite3_prepare_v2(handle, sql, -1, &statement, nil) == SQLITE_OK else { throw failure() }
        var result: [[String]] = []
        while true {
            switch sqlite3_step(statement) {
            case SQLITE_ROW:
                result.append((0..<sqlite3_column_count(statement)).map { text(of: statement, $0) })
            case SQLITE_DONE:
                return result
            default:
                throw failure()
            }
        }
    }

    public func value(_ sql: String) throws(Failure) -> String { try rows(sql).first?.first ?? "" }

    /// Calls the block with each row of a query, whose values are valid until it returns.
    public func forEachRow(_ sql: String, _ body: (RawRow) throws -> Void) throws {
        var statement: OpaquePointer?
        defer { sqlite3_finalize(statement) }
        guard sqlite3_prepare_v2(handle, sql, -1, &statement, nil) == SQLITE_OK, let statement else { throw failure() }
        while true {
            switch sqlite3_step(statement) {
            case SQLITE_ROW: try body(RawRow(statement: statement))
            case SQLITE_DONE: return
            default: throw failure()
            }
        }
    }

    private func text(of statement: OpaquePointer?, _ column: Int32) -> String {
        switch sqlite3_column_type(statement, column) {
        case SQLITE_NULL:
            return "NULL"
        case SQLITE_BLOB:
            let count = Int(sqlite3_column_bytes(statement, column))
            guard let bytes = sqlite3_column_blob(statement, column) else { return "x" }
            return "x"
                + UnsafeRawBufferPointer(start: bytes, count: count).map { String($0, radix: 16) }.joined(
                    separator: "."
                )
        default:
            return sqlite3_column_text(statement, column).map { String(cString: $0) } ?? ""
        }
    }

    private func failure() -> Failure {
        Failure(code: sqlite3_errcode(handle), message: String(cString: sqlite3_errmsg(handle)))
    }
}
