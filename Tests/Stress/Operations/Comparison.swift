import SealedDB

/// Compares a client's rows with what it knows, through the library.
struct Comparison {
    let owner: Int
    let state: ClientState

    /// - Throws: ``Violation``, or what the library throws.
    func run(on db: Database, _ tables: [Table]? = nil) throws {
        for table in tables ?? Table.fixed + (state.hasOwnTable ? [.own] : []) {
            let expected = state.rows[table] ?? [:]
            let rows = try db.executeQuery(
                "SELECT key, value FROM \(raw: table.name(for: owner)) WHERE owner = ?",
                values: [owner]
            )
            defer { rows.close() }
            var count = 0
            while try rows.nextWithError() {
                let key = rows.long(forColumnIndex: 0)
                count += 1
                let isSame = rows.withUnsafeBytes(forColumnIndex: 1) { bytes in
                    expected[key].map { $0.firstDifference(from: bytes) == nil } ?? false
                }
                guard isSame == true else { throw Violation("\(table) \(key) of client \(owner) reads as another.") }
            }
            guard count == expected.count else {
                throw Violation("Client \(owner) reads \(count) rows of \(table), and wrote \(expected.count).")
            }
        }
    }
}
