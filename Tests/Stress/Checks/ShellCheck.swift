import Foundation

/// What SQLCipher's own shell reads.
struct ShellCheck {
    let place: Place
    let key: Int

    func run(_ model: StoreModel) throws {
        let tables = Table.fixed
        let counts = tables.map { "SELECT count(*), total(length(CAST(value AS BLOB))) FROM \($0);" }
        let text = try Command.shell(place.store, key: place.keyLiteral(key), counts.joined(separator: "\n"))
        let expected = tables.map { table in
            let rows = model.clients.values.flatMap { ($0.rows[table] ?? [:]).values }
            return "\(rows.count)|\(rows.reduce(0) { $0 + $1.length }).0"
        }
        guard text.split(separator: "\n").map(String.init) == expected else {
            throw Violation("The stock shell reads \(text) where \(expected) is stored.")
        }
    }
}
