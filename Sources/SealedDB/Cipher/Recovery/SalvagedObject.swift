/// A table, index, view or trigger of a damaged store, as far as its row of the schema can be read.
/// <https://www.sqlite.org/schematab.html>
struct SalvagedObject {
    let type, name, table: String
    /// The first page; 0 for what has none.
    let root: Int64
    /// The bytes of the statement that creates it, in UTF-8 if the store has valid texts, up to a NUL, at which SQLite stops reading,
    /// too; `nil` for indexes that belong to a constraint.
    let statement: [UInt8]?

    var sql: String? { statement.map { String(decoding: $0, as: UTF8.self) } }
    var isSequence: Bool { name.isSame(as: "sqlite_sequence") }

    /// - Returns: `nil` if this is not a row of a schema.
    init?(_ record: SalvagedRecord, _ encoding: SalvagedEncoding) {
        let values = record.values
        guard values.count == 5, let type = values[0].text(encoding),
            ["table", "index", "view", "trigger"].contains(where: { $0.isSame(as: type) }),
            let name = values[1].text(encoding), let table = values[2].text(encoding)
        else { return nil }
        switch values[4] {
        case .null: statement = nil
        case .text(let bytes):
            let text =
                encoding == .utf8 ? bytes : Array(String(decoding: encoding.units(bytes), as: UTF16.self).utf8)
            statement = Array(text.prefix { $0 != 0 })
        default: return nil
        }
        (self.type, self.name, self.table) = (type, name, table)
        root = values[3].integer ?? 0
        if let sql, !sql.foldedForSQL.begins(with: "create") { return nil }
    }

    /// Whether the statement begins as SQLite writes it into a schema: so it makes this object, and runs nothing else. A
    /// forged one could be `CREATE TABLE … AS SELECT`.
    var isPlain: Bool {
        guard let statement else { return false }
        let words = statement.withUnsafeBufferPointer { bytes in
            var tokenizer = SQLTokenizer(bytes)
            return (0..<8).compactMap { _ in tokenizer.next().map { tokenizer.name($0) } }
        }
        func begins(_ start: String...) -> Bool { words.starts(with: start) }
        switch type {
        case "table" where root > 0:
            guard begins("create", "table") else { return false }
            let name = begins("create", "table", "if", "not", "exists") ? 5 : 2
            return words.dropFirst(name + 1).first == "("
                || words.dropFirst(name + 1).prefix(3).last == "("
                    && words.dropFirst(name + 1).first == "."
        case "table": return begins("create", "virtual", "table")
        case "index": return begins("create", "index") || begins("create", "unique", "index")
        default: return begins("create", type)
        }
    }
}
