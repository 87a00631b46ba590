import RawStore

/// Compares rows with the model, both ways.
struct ContentCheck {
    let connection: RawConnection
    /// The second store; without it, its rows are not looked at.
    var side: RawConnection?

    /// - Returns: `nil` if the client's rows are exactly these.
    func difference(of client: Int, from state: ClientState) throws -> String? {
        let name = Table.own.name(for: client)
        let hasOwnTable = try connection.value("SELECT count(*) FROM sqlite_schema WHERE name = '\(name)'") == "1"
        guard hasOwnTable == state.hasOwnTable else { return "The table \(name) is there: \(hasOwnTable)." }
        for table in Table.fixed + (hasOwnTable ? [.own] : []) {
            if let text = try difference(of: client, table, from: state.rows[table] ?? [:]) { return text }
        }
        if let side, let text = try difference(of: client, .side, from: state.rows[.side] ?? [:], side) { return text }
        let ledger = try connection.rows("SELECT step, notes, pairs FROM ledger WHERE owner = \(client)").first
        let expected = state.ledger.map { ["\($0)"] }
        guard ledger.map({ [$0[0]] }) == expected else {
            return
                "Client \(client) should have come to \(state.ledger ?? -1) in the ledger, which says \(ledger ?? [])."
        }
        return try differenceOfIDs(client, state.ids)
    }

    private func difference(of client: Int, _ table: Table, from expected: [Int: Value], _ other: RawConnection? = nil)
        throws -> String?
    {
        var result: [String] = []
        var missing = Set(expected.keys)
        let name = table == .side ? "side" : table.name(for: client)
        let sql = "SELECT key, value FROM \(name) WHERE owner = \(client)"
        try (other ?? connection).forEachRow(sql) { row in
            let key = row.integer(0)
            guard let value = expected[key], missing.remove(key) != nil else {
                result.append("\(table) \(key) of client \(client) is there and should not be.")
                return
            }
            let position = row.withBytes(1) { value.firstDifference(from: $0) }
            if let position {
                result.append("\(table) \(key) of client \(client) is not \(value) from \(position) on.")
            }
            if row.isBlob(1) != value.isBlob { result.append("\(table) \(key) of client \(client) has another type.") }
        }
        result += missing.sorted().map { "\(table) \($0) of client \(client) is missing: \(expected[$0]!)." }
        guard !result.isEmpty else { return nil }
        return result.prefix(4).joined(separator: " ") + (result.count > 4 ? " And \(result.count - 4) more." : "")
    }

    private func differenceOfIDs(_ client: Int, _ ids: [Int: Int]) throws -> String? {
        var found: [Int: Int] = [:]
        try connection.forEachRow("SELECT key, id FROM entry WHERE owner = \(client)") { row in
            found[row.integer(0)] = row.integer(1)
        }
        for (key, id) in ids.sorted(by: { $0.key < $1.key }) where found[key] != id {
            return "RETURNING reported \(id) for entry \(key) of client \(client), and it is \(found[key] ?? -1)."
        }
        return nil
    }

    /// Nobody but the clients has rows.
    func requireNoOthers(_ clients: [Int: ClientState]) throws {
        for table in Table.fixed {
            let expected = clients.values.reduce(0) { $0 + $1.count(table) }
            let found = try connection.value("SELECT count(*) FROM \(table)")
            guard found == "\(expected)" else { throw Violation("\(table) has \(found) rows, not \(expected).") }
        }
    }
}
