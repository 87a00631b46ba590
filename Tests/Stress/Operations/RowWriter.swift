import Foundation
import SealedDB

/// Makes a change of the model in the store, in one of the many ways that the library has for it.
struct RowWriter {
    let db: Database
    let owner: Int
    private(set) var random: Random
    /// What RETURNING reported, by key.
    private(set) var ids: [Int: Int] = [:]

    init(_ db: Database, owner: Int, random: Random) {
        self.db = db
        self.owner = owner
        self.random = random
    }

    mutating func apply(_ change: Change) throws {
        switch change {
        case .put(let table, let key, let value): try put(table, key, value)
        case .remove(let table, let key): try remove(table, key..<key + 1)
        case .removeRange(let table, let range): try remove(table, range)
        case .create:
            try db.executeUpdate(
                "CREATE TABLE IF NOT EXISTS \(raw: Table.own.name(for: owner)) (owner, key, value)",
                values: nil
            )
            try db.executeUpdate(
                "CREATE UNIQUE INDEX IF NOT EXISTS own_key_\(raw: owner) ON \(raw: Table.own.name(for: owner)) (owner, key)",
                values: nil
            )
        case .drop: try db.executeUpdate("DROP TABLE IF EXISTS \(raw: Table.own.name(for: owner))", values: nil)
        }
    }

    /// Says in the ledger what this transaction was.
    func tell(_ step: Step) throws {
        guard step.isLedgered else { return }
        try db.executeUpdate(
            """
            REPLACE INTO ledger VALUES (?1, ?2,
                (SELECT count(*) FROM note WHERE owner = ?1), (SELECT count(*) FROM pair WHERE owner = ?1))
            """,
            values: [owner, step.id]
        )
    }

    private mutating func remove(_ table: Table, _ keys: Range<Int>) throws {
        let name = table.name(for: owner)
        if table == .own, !(try hasOwnTable()) { return }
        // A row that the same step has made.
        if table == .entry { ids = ids.filter { !keys.contains($0.key) } }
        let rows: (Int, Int) =
            table == .words
            ? (Table.rowID(owner: owner, key: keys.lowerBound), Table.rowID(owner: owner, key: keys.upperBound))
            : (keys.lowerBound, keys.upperBound)
        let condition = table == .words ? "rowid >= ? AND rowid < ?" : "key >= ? AND key < ? AND owner = \(owner)"
        // Interpolation in a literal would bind.
        let sql: String = "DELETE FROM \(name) WHERE \(condition)"
        if random.oneIn(2) {
            try db.executeUpdate(sql, values: [rows.0, rows.1])
        } else {
            try db.executeUpdate(sql, rows.0, rows.1)
        }
    }

    private func hasOwnTable() throws -> Bool { db.tableExists(Table.own.name(for: owner)) }

    private mutating func put(_ table: Table, _ key: Int, _ value: Value) throws {
        if table == .own, !(try hasOwnTable()) { return }
        switch table {
        case .words: try putWords(key, value)
        case .attachment: try putInParts(key, value)
        case .entry: try putEntry(key, value)
        default:
            if value.isBlob {
                try put(table, key, Data(value.bytes))
            } else {
                try put(table, key, value.text)
            }
        }
    }

    private mutating func put<Content: Bindable & Sendable>(_ table: Table, _ key: Int, _ content: Content) throws {
        let name = table.name(for: owner)
        let upsert = "ON CONFLICT (owner, key) DO UPDATE SET value = excluded.value"
        let insert = "INSERT INTO \(name) (owner, key, value) VALUES (?, ?, ?) \(upsert)"
        switch random.int(0..<7) {
        case 0:
            try db.executeUpdate(insert, values: [owner, key, content])
        case 1:
            try db.executeUpdate(insert, owner, key, content)
        case 2:
            let sql: SQL = "INSERT INTO \(raw: name) (value, key, owner) VALUES (\(content), \(key), \(owner)) "
            try db.executeUpdate(sql + SQL(raw: upsert))
        case 3:
            let arguments: [AnyHashable: Any] = ["owner": owner, "key": key, "value": content]
            guard
                db.executeUpdate(
                    "INSERT INTO \(raw: name) (owner, key, value) VALUES (:owner, :key, :value) \(raw: upsert)",
                    withParameterDictionary: arguments
                )
            else { throw db.lastError() }
        case 4:
            let update: String = "UPDATE \(name) SET value = ? WHERE owner = ? AND key = ?"
            try db.executeUpdate(update, content, owner, key)
            if db.changes == 0 {
                guard
                    db.executeUpdate(
                        "INSERT INTO \(raw: name) (owner, key, value) VALUES (?, ?, ?)",
                        withArgumentsIn: [owner, key, content]
                    )
                else { throw db.lastError() }
            }
        case 5:
            guard try db.executeQuery(insert + " RETURNING key", owner, key, content).scalar(Int.self) == key else {
                throw Violation("RETURNING reported another key than \(key).")
            }
        default:
            try putByScript(name, key, content)
        }
    }

    /// Literals, in a script of several statements.
    private func putByScript<Content: Bindable & Sendable>(_ name: String, _ key: Int, _ content: Content) throws {
        let literal =
            (content as? Data).map { "x'" + $0.map { String(format: "%02x", $0) }.joined() + "'" }
            ?? "'\(content)'"
        let isDone = db.executeStatements(
            """
            -- A comment; with a semicolon.
            DELETE FROM \(raw: name) WHERE owner = \(raw: owner) AND key = \(raw: key);
            INSERT INTO \(raw: name) (owner, key, value) VALUES (\(raw: owner), \(raw: key), \(raw: literal));
            """
        )
        if !isDone { throw db.lastError() }
    }

    private mutating func putEntry(_ key: Int, _ value: Value) throws {
        let sql = """
            INSERT INTO entry (owner, key, value) VALUES (?, ?, ?)
            ON CONFLICT (owner, key) DO UPDATE SET value = excluded.value RETURNING id
            """
        ids[key] = try Returning.run(sql, [owner, key, value.isBlob ? Data(value.bytes) : value.text], on: db, &random)
    }

    private func putWords(_ key: Int, _ value: Value) throws {
        try db.executeUpdate(
            "REPLACE INTO words (rowid, owner, key, value) VALUES (?, ?, ?, ?)",
            Table.rowID(owner: owner, key: key),
            owner,
            key,
            value.text
        )
    }

    /// A blob of zeros that is then written through SQLite's handle for blobs.
    private mutating func putInParts(_ key: Int, _ value: Value) throws {
        let sql = "REPLACE INTO attachment (owner, key, value) VALUES (?, ?, zeroblob(?))"
        try db.executeUpdate(sql, owner, key, value.length)
        let blob = try db.openBlob(table: "attachment", column: "value", rowID: db.lastInsertRowId, isWritable: true)
        let bytes = value.bytes
        var position = 0
        while position < bytes.count {
            let end = min(bytes.count, position + random.int(1..<max(2, bytes.count)))
            try blob.write(Data(bytes[position..<end]), at: position)
            position = end
        }
        try blob.close()
    }
}

/// The ways in which a statement with RETURNING is asked for its row.
enum Returning {
    static func run(_ sql: String, _ values: [Any], on db: Database, _ random: inout Random) throws -> Int {
        switch random.int(0..<3) {
        case 0:
            let rows = try db.executeQuery(sql, values: values)
            guard rows.next() else { throw db.lastError() }
            let id = rows.long(forColumnIndex: 0)
            // FMDB's way: the statement is ended before it has said that it is done.
            rows.close()
            if db.hadError() { throw db.lastError() }
            return id
        case 1:
            let rows = try db.executeQuery(sql, values: values)
            defer { rows.close() }
            var id: Int?
            while try rows.nextWithError() { id = rows.long(forColumnIndex: 0) }
            guard let id else { throw Violation("RETURNING reported no row.") }
            return id
        default:
            let id: Int?
            if let data = values[2] as? Data {
                id = try db.executeQuery(sql, values[0] as? Int, values[1] as? Int, data).scalar(Int.self)
            } else {
                id = try db.executeQuery(sql, values[0] as? Int, values[1] as? Int, values[2] as? String).scalar(
                    Int.self
                )
            }
            guard let id else { throw Violation("RETURNING reported no row.") }
            return id
        }
    }
}
