internal import SQLiteEngine

/// A hash of everything that a database holds, independent of its pages: two databases with the same digest answer
/// every query alike.
///
/// It covers the schema, every row of every table with its row id, and the header values that belong to the
/// application. Rows are read in the order of the table's B-tree, so nothing has to be sorted.
struct ContentDigest {
    private let hash: SHA256Hash
    private var buffer = [UInt8](repeating: 0, count: ContentDigest.bufferSize)
    /// How many bytes at the start of the buffer are not hashed yet.
    private var used = 0
    /// Whether the database stores texts in UTF-16.
    private let isUTF16: Bool
    private static let bufferSize = 1 << 17

    init(of connection: Connection) throws(DatabaseError) {
        hash = try SHA256Hash()
        isUTF16 = try connection.text("PRAGMA encoding") != "UTF-8"
    }

    /// The digest of a whole database. If a transaction is open, the database is read within it.
    static func of(_ connection: Connection) throws(DatabaseError) -> [UInt8] {
        try connection.inStoredOrder { () throws(DatabaseError) in
            var digest = try ContentDigest(of: connection)
            try digest.addSchema(of: connection)
            for table in try TableLayout.all(of: connection) {
                try digest.add(table, of: connection)
            }
            return try digest.value()
        }
    }

    /// Separate digests of the tables and indexes, for connections of the library's users. Such a connection may lack
    /// some of the collations and functions that the schema names, or have others of the same name.
    struct Parts {
        private let schema: [UInt8]
        /// The digests by a name for people, such as `table t`. Indexes and tables WITHOUT ROWID for which the
        /// connection lacks a collation or function are left out.
        private let parts: [[UInt8]: [UInt8]]

        /// Reads the database. Call it within an open transaction, so that everything is of one moment.
        init(of connection: Connection) throws(DatabaseError) {
            (schema, parts) = try connection.inStoredOrder { () throws(DatabaseError) in
                try Parts.digests(of: connection)
            }
        }

        private static func digests(
            of connection: Connection
        ) throws(DatabaseError) -> (schema: [UInt8], parts: [[UInt8]: [UInt8]]) {
            var schema = try ContentDigest(of: connection)
            try schema.addSchema(of: connection)
            var parts: [[UInt8]: [UInt8]] = [:]
            for table in try TableLayout.all(of: connection) {
                var digest = try ContentDigest(of: connection)
                do throws(DatabaseError) {
                    try digest.add(table, of: connection)
                } catch {
                    guard error.code == SQLITE_ERROR, table.rowID == nil else { throw error }
                    continue
                }
                parts[Array("table ".utf8) + table.identifier] = try digest.value()
                for index in try table.indexes(of: connection) {
                    defer { index.rows.close() }
                    var digest = try ContentDigest(of: connection)
                    try connection.holdingMutex { () throws(DatabaseError) in
                        while try index.rows.step() { try digest.add(row: index.rows) }
                    }
                    parts[Array("index \(index.name)".utf8)] = try digest.value()
                }
            }
            return (try schema.value(), parts)
        }

        /// What differs, in words. Compares only what could be read on both sides.
        func differences(from other: Parts) -> [String] {
            guard schema == other.schema else { return ["the schema"] }
            return parts.filter { part in other.parts[part.key].map { $0 != part.value } ?? false }
                .map { String(decoding: $0.key, as: UTF8.self) }.sorted()
        }
    }

    private mutating func add(_ table: TableLayout, of connection: Connection) throws(DatabaseError) {
        try begin(table)
        let rows = try table.rows(of: connection)
        defer { rows.close() }
        try connection.holdingMutex { () throws(DatabaseError) in while try rows.step() { try add(rows) } }
    }

    /// Adds the current row. Call it within ``Connection/holdingMutex(_:)``.
    mutating func add(_ rows: TableRows) throws(DatabaseError) {
        for part in rows.parts { try add(row: part) }
    }

    /// Adds the objects of the schema, sorted by name, because a copy does not keep the order in which they were
    /// created.
    mutating func addSchema(of connection: Connection) throws(DatabaseError) {
        let objects = try connection.prepare(
            "SELECT type, name, tbl_name, sql FROM main.sqlite_schema ORDER BY type, name COLLATE BINARY"
        )
        defer { objects.close() }
        var isEmpty = true
        try connection.holdingMutex { () throws(DatabaseError) in
            while try objects.step() {
                try add(row: objects)
                isEmpty = false
            }
        }
        // A database without objects may have no pages. The connection then reports the encoding and auto_vacuum that
        // it would give a new file.
        for pragma in ["user_version", "application_id"] + (isEmpty ? [] : ["encoding", "auto_vacuum"]) {
            try add(text: try connection.text("PRAGMA \(pragma)") ?? "")
        }
    }

    mutating func begin(_ table: TableLayout) throws(DatabaseError) {
        // No row begins with this byte.
        try add([0xfe])
        try add(counted: table.identifier)
    }

    private mutating func add(row: Statement) throws(DatabaseError) {
        if used > ContentDigest.bufferSize / 2 { try flush() }
        let isUTF16 = isUTF16
        let written = try buffer.withUnsafeMutableBufferPointer { [used] buffer throws(DatabaseError) in
            let rest = UnsafeMutableRawBufferPointer(UnsafeMutableBufferPointer(rebasing: buffer[used...]))
            return try row.write(into: rest, isUTF16: isUTF16)
        }
        if let written {
            used += written
            return
        }
        // A large row is hashed where SQLite has it.
        try flush()
        try row.forEachPiece(isUTF16: isUTF16) { (piece) throws(DatabaseError) in try hash.update(piece) }
    }

    private mutating func add(_ bytes: [UInt8]) throws(DatabaseError) {
        try flush()
        try update(bytes[...])
    }

    private mutating func add(counted bytes: [UInt8]) throws(DatabaseError) {
        try add(withUnsafeBytes(of: Int64(bytes.count).littleEndian) { Array($0) })
        try add(bytes)
    }

    private mutating func add(text: String) throws(DatabaseError) { try add(counted: Array(text.utf8)) }

    private mutating func flush() throws(DatabaseError) {
        guard used > 0 else { return }
        try update(buffer[..<used])
        used = 0
    }

    private func update(_ bytes: ArraySlice<UInt8>) throws(DatabaseError) {
        try bytes.withUnsafeBufferPointer { (bytes) throws(DatabaseError) in
            try hash.update(UnsafeRawBufferPointer(bytes))
        }
    }

    mutating func value() throws(DatabaseError) -> [UInt8] {
        try flush()
        return try hash.value()
    }
}

extension Connection {
    /// Makes rows come in the order of the table's B-tree, even if the connection's user has set
    /// `reverse_unordered_selects`.
    fileprivate func inStoredOrder<T>(_ body: () throws(DatabaseError) -> T) throws(DatabaseError) -> T {
        try with("reverse_unordered_selects", false, body)
    }
}
