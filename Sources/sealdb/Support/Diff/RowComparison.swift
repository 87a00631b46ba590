import SealedDB

/// The rows of one table in two stores. They are matched by the primary key, or by the row id where there is none.
struct RowComparison {
    private let first: (contents: TableContents, database: Database)
    private let second: (contents: TableContents, database: Database)
    /// The columns of the key.
    let key: [String]

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
        } else if let rowID = first.rowID {
            self.first = (first, firstDatabase)
            self.second = (second, secondDatabase)
            key = [rowID]
        } else {
            throw Failure(
                .data,
                "The rows of \"\(first.table)\" have no key by which they could be found: its columns hide the row id."
            )
        }
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
        let conditions = key.enumerated().map { "\(SQLLiteral.name($1)) = ?\($0 + 1)" }
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
            return "\(SQLLiteral.name(name)) = \(SQLLiteral.text(of: row[place]))"
        }.joined(separator: " AND ")
    }
}
