/// The rows of one client, as far as they were acknowledged.
struct ClientState: Codable, Hashable, Sendable {
    var rows: [Table: [Int: Value]] = [:]
    /// The ids that SQLite reported for rows of ``Table/entry``.
    var ids: [Int: Int] = [:]
    /// Whether ``Table/own`` is there.
    var hasOwnTable = false
    /// The last change that is in the ledger; with it, a change that is lost is noticed whatever came after.
    var ledger: Int?

    /// The names of the migrations that were made, in their order.
    var migrations: [String] = []

    mutating func apply(_ step: Step, ids newIDs: [Int: Int]) {
        for change in step.changes {
            switch change {
            case .put(let table, let key, let value):
                if table == .own, !hasOwnTable { continue }
                rows[table, default: [:]][key] = value
            case .remove(let table, let key):
                rows[table]?[key] = nil
                if table == .entry { ids[key] = nil }
            case .removeRange(let table, let range):
                rows[table] = rows[table]?.filter { !range.contains($0.key) }
                if table == .entry { ids = ids.filter { !range.contains($0.key) } }
            case .create:
                hasOwnTable = true
            case .drop:
                hasOwnTable = false
                rows[.own] = nil
            }
        }
        for (key, id) in newIDs { ids[key] = id }
        if step.operation.name == "migration" { migrations.append(step.migration) }
        if step.isLedgered { ledger = step.id }
    }

    func count(_ table: Table) -> Int { rows[table]?.count ?? 0 }
}
