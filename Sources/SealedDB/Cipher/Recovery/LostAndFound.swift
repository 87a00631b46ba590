/// The table of rows whose place is not known.
final class LostAndFound {
    private let target: Connection
    private let encoding: SalvagedEncoding
    private let name: String
    private var columnCount = 0
    private var insertions: [Int: Statement] = [:]

    /// A table has at most 2000 columns, four of which are those of the row itself.
    /// https://www.sqlite.org/limits.html#max_column
    private static let maximumValueCount = 1996

    init(in target: Connection, encoding: SalvagedEncoding) throws(DatabaseError) {
        (self.target, self.encoding) = (target, encoding)
        var name = "lost_and_found"
        var number = 0
        // The store may have a table of this name, as one that was recovered before has.
        while try target.integer("SELECT count(*) FROM sqlite_schema WHERE name = '\(name)' COLLATE NOCASE") != 0 {
            name = "lost_and_found_\(number)"
            number += 1
        }
        self.name = name
        try target.run("CREATE TABLE \(name) (rootpgno INTEGER, pgno INTEGER, nfield INTEGER, id INTEGER)")
    }

    func close() {
        for insertion in insertions.values { insertion.close() }
        insertions = [:]
    }

    /// Inserts a row. What it has more than the table has columns comes into a second row, with the number of values
    /// that it has itself.
    /// - Returns: whether there is a second row.
    func insert(_ row: SalvagedTrees.Row, root: Int64?) throws(DatabaseError) -> Bool {
        let values = row.record.values
        try insert(values.prefix(LostAndFound.maximumValueCount), of: row, count: values.count, root)
        let rest = values.dropFirst(LostAndFound.maximumValueCount)
        guard !rest.isEmpty else { return false }
        try insert(rest, of: row, count: rest.count, root)
        return true
    }

    private func insert(
        _ values: ArraySlice<SalvagedValue>,
        of row: SalvagedTrees.Row,
        count: Int,
        _ root: Int64?
    ) throws(DatabaseError) {
        while columnCount < values.count {
            try target.run("ALTER TABLE \(name) ADD COLUMN c\(columnCount)")
            columnCount += 1
        }
        let insertion = try insertion(of: values.count)
        if let root { try insertion.bind(root, at: 1) } else { try insertion.bindNull(at: 1) }
        try insertion.bind(row.page, at: 2)
        try insertion.bind(Int64(count), at: 3)
        if let rowID = row.rowID { try insertion.bind(rowID, at: 4) } else { try insertion.bindNull(at: 4) }
        for (index, value) in values.enumerated() {
            try value.bind(to: insertion, at: Int32(index + 5), encoding: encoding)
        }
        _ = try insertion.step()
        insertion.reset()
    }

    private func insertion(of count: Int) throws(DatabaseError) -> Statement {
        if let insertion = insertions[count] { return insertion }
        let names = ["rootpgno", "pgno", "nfield", "id"] + (0..<count).map { "c\($0)" }
        let marks = [String](repeating: "?", count: names.count).joined(separator: ", ")
        let insertion = try target.prepare("INSERT INTO \(name) (\(names.joined(separator: ", "))) VALUES (\(marks))")
        insertions[count] = insertion
        return insertion
    }
}
