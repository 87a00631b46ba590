import SealedDB

/// What others have written, as one moment had it; and a client's own rows, all of them.
enum Reading {
    static let all: [Operation] = [
        Operation(name: "read the ledger", weights: [.reader: 4, .writer: 1]) { client, _ in
            try client.service.access.read { db in try checkLedger(db) }
        },
        Operation(name: "awaited read", weights: [.reader: 3]) { client, _ in
            let service = client.service
            try client.awaiting { try await service.access.read { db in try checkLedger(db) } }
        },
        Operation(name: "read one's own rows", weights: [.writer: 2, .soloist: 2, .peer: 2]) { client, _ in
            try client.read { db in try Comparison(owner: client.id, state: client.state).run(on: db) }
        },
        Operation(name: "read twice in one snapshot", weights: [.reader: 2]) { client, _ in
            try client.service.access.read { db in
                let sql: SQL = "SELECT count(*), total(length(value)), max(owner * 1000 + key) FROM note"
                let first = try db.all((Int, Double, Int?).self, sql)
                try checkLedger(db)
                let second = try db.all((Int, Double, Int?).self, sql)
                guard first.count == 1, second.count == 1, first[0] == second[0] else {
                    throw Violation("A snapshot changed: \(first), then \(second).")
                }
            }
        },
        Operation(name: "search", weights: [.reader: 1]) { client, _ in
            try client.service.access.read { db in
                let found = try db.scalar(Int.self, "SELECT count(*) FROM words WHERE words MATCH 'canary'")
                let present = try db.scalar(Int.self, "SELECT count(*) FROM words WHERE length(value) >= 6")
                guard found != nil, found == present else {
                    throw Violation("The index finds \(found ?? -1) of \(present ?? -1) texts.")
                }
            }
        },
    ]

    private static func checkLedger(_ db: Database) throws {
        let wrong = try db.scalar(
            Int.self,
            """
            SELECT count(*) FROM ledger WHERE notes <> (SELECT count(*) FROM note WHERE note.owner = ledger.owner)
                OR pairs <> (SELECT count(*) FROM pair WHERE pair.owner = ledger.owner)
            """
        )
        guard wrong == 0 else { throw Violation("A reader saw \(wrong ?? -1) clients in the middle of a transaction.") }
    }
}
