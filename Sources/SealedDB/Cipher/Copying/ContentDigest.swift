internal import SQLiteEngine

/// A hash of all that a database holds, whatever its pages look like: two databases with the same digest answer every
/// query alike.
///
/// It covers the schema, every row of every table with its row id, and what the header keeps for the application. Rows
/// are taken in the order of the table's own tree, so that nothing has to be sorted.
struct ContentDigest {
    private let hash: SHA256Hash
    private var buffer: [UInt8] = []
    private static let bufferSize = 65536

    init() throws(DatabaseError) {
        hash = try SHA256Hash()
    }

    /// Of a whole database, read in a transaction that is open already.
    /// - Parameter goesOn: asked time and again; throws to stop.
    static func of(
        _ connection: Connection,
        goesOn: () throws(DatabaseError) -> Void = {}
    ) throws(DatabaseError) -> [UInt8] {
        try connection.inStoredOrder { () throws(DatabaseError) in
            var digest = try ContentDigest()
            try digest.addSchema(of: connection)
            for table in try TableLayout.all(of: connection) {
                try digest.add(table, of: connection, goesOn: goesOn)
            }
            return digest.value()
        }
    }

    /// Of the tables and indexes one by one, for connections of a caller's, which may know other collations and functions
    /// than the schema names.
    struct Parts {
        private let schema: [UInt8]
        /// By what it is of, in words. Without what cannot be had there: indexes, and tables WITHOUT ROWID, for which the
        /// connection lacks a collation or function.
        private let parts: [[UInt8]: [UInt8]]

        /// In a transaction that is open already.
        init(of connection: Connection) throws(DatabaseError) {
            (schema, parts) = try connection.inStoredOrder { () throws(DatabaseError) in
                try Parts.digests(of: connection)
            }
        }

        private static func digests(
            of connection: Connection
        ) throws(DatabaseError) -> (schema: [UInt8], parts: [[UInt8]: [UInt8]]) {
            var schema = try ContentDigest()
            try schema.addSchema(of: connection)
            var parts: [[UInt8]: [UInt8]] = [:]
            for table in try TableLayout.all(of: connection) {
                var digest = try ContentDigest()
                do throws(DatabaseError) {
                    try digest.add(table, of: connection)
                } catch {
                    guard error.code == SQLITE_ERROR, table.rowID == nil else { throw error }
                    continue
                }
                parts[Array("table ".utf8) + table.identifier] = digest.value()
                for index in try table.indexes(of: connection) {
                    defer { index.rows.close() }
                    var digest = try ContentDigest()
                    while try index.rows.step() { digest.add(row: index.rows) }
                    parts[Array("index \(index.name)".utf8)] = digest.value()
                }
            }
            return (schema.value(), parts)
        }

        /// What is not the same, of what could be read on both sides, in words.
        func differences(from other: Parts) -> [String] {
            guard schema == other.schema else { return ["the schema"] }
            return parts.filter { part in other.parts[part.key].map { $0 != part.value } ?? false }
                .map { String(decoding: $0.key, as: UTF8.self) }.sorted()
        }
    }

    private mutating func add(
        _ table: TableLayout,
        of connection: Connection,
        goesOn: () throws(DatabaseError) -> Void = {}
    ) throws(DatabaseError) {
        begin(table)
        let rows = try table.rows(of: connection)
        defer { rows.close() }
        var count = 0
        while try rows.step() {
            add(rows)
            count += 1
            if count.isMultiple(of: 1000) { try goesOn() }
        }
    }

    /// The present row.
    mutating func add(_ rows: TableRows) {
        for part in rows.parts { add(row: part) }
    }

    /// The objects by name, because the order in which they were made is lost in a copy.
    mutating func addSchema(of connection: Connection) throws(DatabaseError) {
        let objects = try connection.prepare(
            "SELECT type, name, tbl_name, sql FROM main.sqlite_schema ORDER BY type, name COLLATE BINARY"
        )
        defer { objects.close() }
        var isEmpty = true
        while try objects.step() {
            add(row: objects)
            isEmpty = false
        }
        // With nothing in it there may be no page, and the others are those that the connection would give it.
        for pragma in ["user_version", "application_id"] + (isEmpty ? [] : ["encoding", "auto_vacuum"]) {
            add(text: try connection.text("PRAGMA \(pragma)") ?? "")
        }
    }

    mutating func begin(_ table: TableLayout) {
        // No row begins so.
        buffer.append(0xfe)
        add(Int64(table.identifier.count))
        buffer.append(contentsOf: table.identifier)
    }

    private mutating func add(row: Statement) {
        for column in 0..<row.columnCount {
            let type = row.type(at: column)
            buffer.append(UInt8(type.rawValue))
            switch type {
            case .null: break
            case .integer: add(row.int64(at: column))
            case .float: add(Int64(bitPattern: row.double(at: column).bitPattern))
            case .text, .blob:
                row.withBytes(at: column) { bytes in
                    add(Int64(bytes.count))
                    add(bytes)
                }
            }
        }
        buffer.append(0xff)
        if buffer.count >= ContentDigest.bufferSize { flush() }
    }

    private mutating func add(_ value: Int64) {
        withUnsafeBytes(of: value.littleEndian) { buffer.append(contentsOf: $0) }
    }

    /// What is large is not copied before.
    private mutating func add(_ bytes: UnsafeRawBufferPointer) {
        guard bytes.count >= ContentDigest.bufferSize else { return buffer.append(contentsOf: bytes) }
        flush()
        hash.update(bytes)
    }

    private mutating func add(text: String) {
        add(Int64(text.utf8.count))
        buffer.append(contentsOf: text.utf8)
    }

    private mutating func flush() {
        buffer.withUnsafeBytes { hash.update($0) }
        buffer.removeAll(keepingCapacity: true)
    }

    mutating func value() -> [UInt8] {
        flush()
        return hash.value()
    }
}

extension Connection {
    /// Has rows come in the order of their tree, whatever the connection's user has set.
    fileprivate func inStoredOrder<T>(_ body: () throws(DatabaseError) -> T) throws(DatabaseError) -> T {
        try with("reverse_unordered_selects", false, body)
    }
}
