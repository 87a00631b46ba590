import SealedDB

/// Tells whether the index of a full-text table that has its text elsewhere is the one that "rebuild" makes of that text.
///
/// An index may hold only some rows, or be older than the text. FTS5 compares the two only in a command that writes, but a
/// store that is dumped is only read. So the text is indexed anew, in memory and piece by piece, and the sums of what both
/// indexes hold are compared, as FTS5 does it.
struct ExternalIndex {
    let name: String
    /// In lower case.
    let module: String
    /// What made it.
    let statement: String
    /// The table or view that holds the text.
    let contentTable: String
    let database: Database

    /// So many bytes of text are in memory at a time.
    private static let pieceSize = 1 << 22
    private static let vocabulary = "temp.sealdb_vocabulary"

    private var quotedName: String { SQLLiteral.name(name) }

    struct Difference {
        let reason: String
        var isMendedByRebuild = false
    }

    /// - Returns: why "rebuild" would not make the same index; `nil` if it would.
    func difference() throws -> Difference? {
        do throws(any Error) {
            // If there is no text, SQLite says so in the same words for both modules.
            let rows = "SELECT count(*) FROM main.\(SQLLiteral.name(contentTable))"
            let count = try database.executeQuery(SQL(raw: rows)).scalar(Int.self) ?? 0
            return try module == "fts5" ? differenceOfFTS5(count) : differenceOfFTS4()
        } catch let error as DatabaseError where error.code == SQLITE_ERROR {
            return Difference(reason: "does not find its text in \"\(contentTable)\" (\(error.message))")
        }
    }

    private var isOther: Difference {
        Difference(
            reason: "has an index that is not the one of all the text in \"\(contentTable)\"",
            isMendedByRebuild: true
        )
    }

    private func differenceOfFTS4() throws -> Difference? {
        // Before 3.44, SQLite says "ok" without a look. https://www.sqlite.org/releaselog/3_44_0.html
        let version = Database.sqliteLibVersion().split(separator: ".").compactMap { Int($0) }
        guard !version.lexicographicallyPrecedes([3, 44]) else {
            return Difference(
                reason: "has an index that this version of SQLite does not compare with the text in \"\(contentTable)\""
            )
        }
        let columns = try columns().map(SQLLiteral.name).joined(separator: ", ")
        let text = try database.executeQuery(SQL(raw: "SELECT \(columns) FROM main.\(quotedName) LIMIT 1"))
        defer { text.close() }
        // Fails if one of the columns is missing.
        _ = try text.nextWithError()
        let rows = try database.executeQuery("PRAGMA main.integrity_check(\(identifier: name))")
        defer { rows.close() }
        return try rows.nextWithError() && rows.string(forColumnIndex: 0) == "ok" ? nil : isOther
    }

    /// - Parameter textCount: how many rows the content table has.
    private func differenceOfFTS5(_ textCount: Int) throws -> Difference? {
        // A view may name one that SQLite then does not read, and that must be there all the same.
        guard try database.compilesWithoutVirtualTables(SQL(raw: "SELECT * FROM main.\(SQLLiteral.name(contentTable))"))
        else {
            return Difference(reason: "takes its text from a virtual table, of which FTS5 makes no index anew")
        }
        let (made, count) = try sumOfText(columns())
        // The table shows no row of a view whose id is none, but "rebuild" would take it for 0.
        guard count == textCount, try RowSum.ofIndex(named: name, in: database) == made else { return isOther }
        return nil
    }

    private func columns() throws -> [String] {
        let rows = try database.executeQuery("PRAGMA main.table_xinfo(\(identifier: name))")
        defer { rows.close() }
        var columns: [String] = []
        while try rows.nextWithError() {
            if rows.int(forColumn: "hidden") == 0 { columns.append(rows.string(forColumn: "name") ?? "") }
        }
        return columns
    }

    /// Indexes the text that the table finds.
    private func sumOfText(_ columns: [String]) throws -> (RowSum, rowCount: Int) {
        let memory = Database(path: nil)
        guard memory.open() else { throw memory.lastError() }
        defer { memory.close() }
        // The text does not have to be there: it is inserted.
        try memory.execute(script: SQL(raw: statement))
        let names = (["rowid"] + columns.map(SQLLiteral.name)).joined(separator: ", ")
        // The table reads its text as "rebuild" does.
        let rows = try database.executeQuery(SQL(raw: "SELECT \(names) FROM main.\(quotedName)"))
        defer { rows.close() }
        let places = Array(repeating: "?", count: columns.count + 1).joined(separator: ", ")
        guard memory.beginTransaction() else { throw memory.lastError() }
        let insertion = try memory.prepare(SQL(raw: "INSERT INTO main.\(quotedName)(\(names)) VALUES (\(places))"))
        defer { insertion.close() }
        var (sum, count, size) = (RowSum(), 0, 0)
        while try rows.nextWithError() {
            let values = (0...columns.count).map { rows.heldValue(forColumnIndex: Int32($0)) }
            try insertion.bind(values)
            try insertion.stepWithError()
            count += 1
            size += values.reduce(64) { $0 + $1.byteCount }
            guard size > ExternalIndex.pieceSize else { continue }
            try sum.add(RowSum.ofIndex(named: name, in: memory))
            try memory.execute(script: SQL(raw: VirtualTable.command("delete-all", name)))
            size = 0
        }
        try sum.add(RowSum.ofIndex(named: name, in: memory))
        return (sum, count)
    }

    /// A sum of the hashes of rows, whatever their order.
    private struct RowSum: Equatable {
        private var first: UInt64 = 0
        private var second: UInt64 = 0

        /// The sum of all that an FTS5 table knows of words: where they are, and how many each row has.
        static func ofIndex(named name: String, in database: Database) throws -> RowSum {
            let table = SQLLiteral.name(name)
            var sum = RowSum()
            try database.execute(
                script: SQL(raw: "CREATE VIRTUAL TABLE \(vocabulary) USING fts5vocab(main, \(table), 'instance')")
            )
            try sum.addRows("SELECT term, doc, col, offset FROM \(vocabulary)", in: database)
            try database.execute(script: SQL(raw: "DROP TABLE \(vocabulary)"))
            let sizes = "SELECT count(*) FROM main.sqlite_schema WHERE type = 'table' AND name = ? COLLATE NOCASE"
            guard try database.executeQuery(sizes, values: [name + "_docsize"]).scalar(Int.self) == 1 else {
                return sum
            }
            try sum.addRows("SELECT id, sz FROM main.\(SQLLiteral.name(name + "_docsize"))", in: database)
            return sum
        }

        private mutating func addRows(_ query: String, in database: Database) throws {
            let rows = try database.executeQuery(SQL(raw: query))
            defer { rows.close() }
            while try rows.nextWithError() {
                // Hashes have another seed in each process.
                var (one, other) = (Hasher(), Hasher())
                other.combine(true)
                for column in 0..<rows.columnCount {
                    rows.heldValue(forColumnIndex: column).hash(into: &one)
                    rows.heldValue(forColumnIndex: column).hash(into: &other)
                }
                add(
                    RowSum(
                        first: UInt64(bitPattern: Int64(one.finalize())),
                        second: UInt64(bitPattern: Int64(other.finalize()))
                    )
                )
            }
        }

        mutating func add(_ sum: RowSum) {
            first &+= sum.first
            second &+= sum.second
        }
    }
}

extension HeldValue {
    fileprivate var byteCount: Int {
        switch self {
        case .text(let bytes), .blob(let bytes): bytes.count
        case .null, .integer, .real: 0
        }
    }

    fileprivate func hash(into hasher: inout Hasher) {
        switch self {
        case .null: hasher.combine(0)
        case .integer(let value):
            hasher.combine(1)
            hasher.combine(value)
        case .real(let value):
            hasher.combine(2)
            hasher.combine(value.bitPattern)
        case .text(let bytes):
            hasher.combine(3)
            hasher.combine(bytes.count)
            hasher.combine(bytes: bytes)
        case .blob(let bytes):
            hasher.combine(4)
            hasher.combine(bytes.count)
            hasher.combine(bytes: bytes)
        }
    }
}
