import SealedDB

/// The rows of one table in two stores. They are matched by the primary key, or by the row id where there is none.
struct RowComparison {
    private let first: (contents: TableContents, database: Database)
    private let second: (contents: TableContents, database: Database)
    /// The columns of the key.
    let key: [String]
    /// How the columns of the key are compared, if that is not as each column is by itself.
    private let collations: [ExactText: String]

    /// What is written of the second table.
    var contents: TableContents { second.contents }

    /// - Returns: `nil` if the tables do not have the same columns and key.
    /// - Throws: ``Failure`` if rows cannot be told from each other.
    init?(_ first: TableContents, _ firstDatabase: Database, _ second: TableContents, _ secondDatabase: Database) throws
    {
        guard RowComparison.areSame(first.columns, second.columns),
            RowComparison.areSame(first.primaryKey, second.primaryKey)
        else { return nil }
        // A primary key may be NULL in several rows, unless SQL forbids it. https://www.sqlite.org/lang_createtable.html
        let databases = [firstDatabase, secondDatabase]
        let hasNulls = try databases.contains { try RowComparison.hasNullInKey(first, in: $0) }
        if !first.primaryKey.isEmpty, !hasNulls {
            self.first = (first.withoutRowID, firstDatabase)
            self.second = (second.withoutRowID, secondDatabase)
            key = first.primaryKey
            collations = try RowComparison.collations(of: first, in: firstDatabase)
            guard try collations == RowComparison.collations(of: second, in: secondDatabase) else { return nil }
        } else if let rowID = first.rowID {
            self.first = (first, firstDatabase)
            self.second = (second, secondDatabase)
            key = [rowID]
            collations = [:]
        } else {
            throw Failure(
                .data,
                "The rows of \"\(first.table)\" have no key by which they could be found: its columns hide the row id."
            )
        }
    }

    /// A key may compare texts otherwise than its columns do: `a TEXT COLLATE NOCASE, PRIMARY KEY (a COLLATE BINARY)`.
    private static func collations(of contents: TableContents, in database: Database) throws -> [ExactText: String] {
        var result: [ExactText: String] = [:]
        // Without that word in its statement, a table has no collation but SQLite's own.
        let mention = try database.prepare("SELECT 1 FROM sqlite_schema WHERE name = ? AND sql LIKE '%collate%'")
        defer { mention.close() }
        guard mention.bind(with: [contents.table]) else { throw database.lastError() }
        guard try mention.nextWithError() else { return result }
        let table = SQLLiteral.name(contents.table)
        let indexes = try database.executeQuery(SQL(raw: "PRAGMA index_list(\(table))"))
        defer { indexes.close() }
        // https://www.sqlite.org/pragma.html#pragma_index_list
        while try indexes.nextWithError() {
            guard indexes.string(forColumnIndex: 3) == "pk", let index = indexes.string(forColumnIndex: 1) else {
                continue
            }
            let columns = try database.executeQuery(SQL(raw: "PRAGMA index_xinfo(\(SQLLiteral.name(index)))"))
            defer { columns.close() }
            while try columns.nextWithError() {
                guard columns.longLongInt(forColumnIndex: 5) == 1, let name = columns.string(forColumnIndex: 2),
                    let collation = columns.string(forColumnIndex: 4)
                else { continue }
                result[ExactText(name: name)] = collation.foldedForSQL
            }
        }
        return result
    }

    /// The comparison of a column of the key with a value.
    private func comparison(_ name: String, _ value: String) -> String {
        let collation = collations[ExactText(name: name)].map { " COLLATE \(SQLLiteral.name($0))" } ?? ""
        return "\(SQLLiteral.name(name))\(collation) = \(value)"
    }

    private static func hasNullInKey(_ contents: TableContents, in database: Database) throws -> Bool {
        guard !contents.primaryKey.isEmpty else { return false }
        let condition = contents.primaryKey.map { "\(SQLLiteral.name($0)) IS NULL" }.joined(separator: " OR ")
        let rows = try database.executeQuery(SQL(raw: contents.query(where: condition) + " LIMIT 1"))
        defer { rows.close() }
        return try rows.nextWithError()
    }

    private static func areSame(_ first: [String], _ second: [String]) -> Bool {
        first.count == second.count && zip(first, second).allSatisfy { $0.isSame(as: $1) }
    }

    struct Counts: Equatable {
        var onlyInFirst = 0
        var onlyInSecond = 0
        var different = 0
    }

    func counts() throws -> Counts {
        var counts = Counts()
        try forEachDifference(ofFirst: true) { _, exists in
            if exists { counts.different += 1 } else { counts.onlyInFirst += 1 }
        }
        try forEachDifference(ofFirst: false) { _, exists in
            if !exists { counts.onlyInSecond += 1 }
        }
        return counts
    }

    /// Calls `body` with each row that the other store does not have, or has otherwise, and with whether it has its key.
    func forEachDifference(ofFirst: Bool, _ body: (_ row: [Cell], _ exists: Bool) throws -> Void) throws {
        let (own, other) = ofFirst ? (first, second) : (second, first)
        let conditions = key.enumerated().map { comparison($1, "?\($0 + 1)") }
        let search = try other.database.prepare(
            SQL(raw: other.contents.query(where: conditions.joined(separator: " AND ")))
        )
        defer { search.close() }
        let places = key.map { name in contents.columns.firstIndex { $0.isSame(as: name) }! }
        try own.contents.forEachRow(in: own.database) { row in
            let values = places.compactMap { row[$0].bindable }
            let found: [Cell]?
            if values.count == places.count {
                guard search.bind(with: values) else { throw other.database.lastError() }
                found = try search.nextWithError() ? other.contents.row(search) : nil
            } else {
                // Text that is not valid can be written as SQL, but not be bound.
                let rows = try other.database.executeQuery(SQL(raw: other.contents.query(where: condition(of: row))))
                defer { rows.close() }
                found = try rows.nextWithError() ? other.contents.row(rows) : nil
            }
            guard let found else { return try body(row, false) }
            if !zip(row, found).allSatisfy({ $0.isSame(as: $1) }) { try body(row, true) }
        }
    }

    /// The condition that is true for this row alone.
    func condition(of row: [Cell]) -> String {
        key.map { name in
            let place = contents.columns.firstIndex { $0.isSame(as: name) }!
            return comparison(name, SQLLiteral.text(of: row[place]))
        }.joined(separator: " AND ")
    }
}
