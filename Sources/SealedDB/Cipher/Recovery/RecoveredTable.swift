/// Puts the rows of a salvaged table into the same table of a new store.
final class RecoveredTable {
    private let target: Connection
    private let name: String
    private let encoding: SalvagedEncoding
    /// The columns in the order in which a record has their values. The name is `nil` for a generated one, which cannot
    /// be set.
    private var fields: [String?] = []
    /// The place among them of the column that is the row id.
    private var rowIDField: Int?
    /// The name by which the row id is set: that of a column, or one that no column has; `nil` if there is none.
    private var rowIDName: String?
    /// What SQLite makes of the values of each field.
    private var affinities: [Affinity] = []
    let hasRowIDs: Bool
    private var insertions: [Int: Statement] = [:]

    init(_ name: String, in target: Connection, encoding: SalvagedEncoding) throws(DatabaseError) {
        (self.target, self.name, self.encoding) = (target, name, encoding)
        // https://www.sqlite.org/pragma.html#pragma_table_xinfo
        let information = try target.prepare("PRAGMA main.table_xinfo(\(name.quotedIdentifier))")
        defer { information.close() }
        var columns: [(name: String, hidden: Int64, key: Int64, type: String)] = []
        while try information.step() {
            columns.append(
                (
                    information.text(at: 1) ?? "", information.int64(at: 6), information.int64(at: 5),
                    (information.text(at: 2) ?? "").foldedForSQL
                )
            )
        }
        let indexes = try target.prepare("PRAGMA main.index_list(\(name.quotedIdentifier))")
        defer { indexes.close() }
        var keyIndex: String?
        while try indexes.step() { if indexes.text(at: 3) == "pk" { keyIndex = indexes.text(at: 1) } }
        let free = ["rowid", "_rowid_", "oid"].first { candidate in
            !columns.contains { $0.name.foldedForSQL.isSame(as: candidate) }
        }
        let list = try target.prepare("PRAGMA main.table_list(\(name.quotedIdentifier))")
        defer { list.close() }
        var isWithoutRowID = false
        var isStrict = false
        while try list.step() {
            guard list.text(at: 0) == "main" else { continue }
            isWithoutRowID = list.int64(at: 4) != 0
            isStrict = list.int64(at: 5) != 0
        }
        hasRowIDs = !isWithoutRowID
        if hasRowIDs {
            // A virtual generated column is in no record.
            let stored = columns.filter { $0.hidden != 2 }
            fields = stored.map { $0.hidden == 0 ? $0.name : nil }
            if keyIndex == nil, columns.filter({ $0.key > 0 }).count == 1 {
                rowIDField = stored.firstIndex { $0.key == 1 && $0.type.isSame(as: "integer") }
            }
            rowIDName = rowIDField.flatMap { fields[$0] } ?? free
        } else if let keyIndex {
            // The columns of the key come first, then the others.
            let order = try target.prepare("PRAGMA main.index_xinfo(\(keyIndex.quotedIdentifier))")
            defer { order.close() }
            while try order.step() {
                let column = order.text(at: 2) ?? ""
                let isGenerated = columns.contains { $0.name.isSame(as: column) && $0.hidden != 0 }
                fields.append(isGenerated ? nil : column)
            }
        }
        affinities = fields.map { field in
            let column = columns.first { column in field.map { column.name.isSame(as: $0) } ?? false }
            return Affinity(ofType: column?.type ?? "", isStrict: isStrict)
        }
    }

    deinit { close() }

    func close() {
        for insertion in insertions.values { insertion.close() }
        insertions = [:]
    }

    /// Inserts a row.
    /// - Returns: false if the row does not fit the table: it has more values, it violates a constraint, or SQLite would
    ///   store other values, because the type of a column was changed behind its back.
    func insert(_ row: SalvagedTrees.Row) throws(DatabaseError) -> Bool {
        let values = row.record.values
        guard values.count <= fields.count, !fields.isEmpty, (row.rowID != nil) == hasRowIDs else { return false }
        for (position, value) in values.enumerated() where position != rowIDField && fields[position] != nil {
            if affinities[position].changes(value, encoding) { return false }
        }
        do throws(DatabaseError) {
            let insertion = try insertion(of: values.count)
            defer { insertion.reset() }
            var index: Int32 = 0
            if rowIDName != nil, let rowID = row.rowID {
                index += 1
                try insertion.bind(rowID, at: index)
            }
            for (position, value) in values.enumerated() where position != rowIDField && fields[position] != nil {
                index += 1
                try value.bind(to: insertion, at: index, encoding: encoding)
            }
            _ = try insertion.step()
            return true
        } catch {
            // SQLITE_ERROR: a function or collation of an application is missing, or the name of a column is no text.
            guard [SQLITE_CONSTRAINT, SQLITE_MISMATCH, SQLITE_ERROR].contains(error.code) else { throw error }
            return false
        }
    }

    /// A statement that inserts a row with so many fields. Columns that were added after the row was written get their
    /// defaults, as SQLite gives them.
    private func insertion(of count: Int) throws(DatabaseError) -> Statement {
        if let insertion = insertions[count] { return insertion }
        let others = fields.prefix(count).enumerated().compactMap { $0.offset == rowIDField ? nil : $0.element }
        let names = ((rowIDName.map { [$0] } ?? []) + others).map(\.quotedIdentifier)
        let marks = [String](repeating: "?", count: names.count).joined(separator: ", ")
        let values = names.isEmpty ? "DEFAULT VALUES" : "(\(names.joined(separator: ", "))) VALUES (\(marks))"
        let insertion = try target.prepare("INSERT OR ABORT INTO main.\(name.quotedIdentifier) \(values)")
        insertions[count] = insertion
        return insertion
    }
}
