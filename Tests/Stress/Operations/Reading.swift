import SealedDB

/// What others have written, as one moment had it; and a client's own rows, all of them.
enum Reading {
    static let all: [Operation] = plain + shared

    private static let plain: [Operation] = [
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
                let first = try db.executeQuery(sql).all((Int, Double, Int?).self)
                try checkLedger(db)
                let second = try db.executeQuery(sql).all((Int, Double, Int?).self)
                guard first.count == 1, second.count == 1, first[0] == second[0] else {
                    throw Violation("A snapshot changed: \(first), then \(second).")
                }
            }
        },
        Operation(name: "search", weights: [.reader: 1]) { client, _ in
            try client.service.access.read { db in
                let found = try db.executeQuery("SELECT count(*) FROM words WHERE words MATCH 'canary'").scalar(
                    Int.self
                )
                let present = try db.executeQuery("SELECT count(*) FROM words WHERE length(value) >= 6").scalar(
                    Int.self
                )
                guard found != nil, found == present else {
                    throw Violation("The index finds \(found ?? -1) of \(present ?? -1) texts.")
                }
            }
        },
    ]

    /// What is one pool's or queue's own: exclusive access, kept states, memory that is given back.
    private static let shared: [Operation] = [
        Operation(name: "barrier", weights: [.reader: 1, .janitor: 1]) { client, _ in
            try client.service.access.barrier(waitingAtMost: .seconds(5)) { db in try checkLedger(db) }
        },
        Operation(name: "barrier that is cancelled", weights: [.reader: 1]) { client, step in
            let service = client.service
            var random = step.random
            let yields = random.int(0..<20)
            try client.awaiting {
                let barrier = Task { try await service.access.barrier { db in try checkLedger(db) } }
                for _ in 0..<yields { await Task.yield() }
                barrier.cancel()
                do { try await barrier.value } catch is CancellationError {}
            }
        },
        Operation(name: "kept snapshot", weights: [.reader: 2]) { client, _ in
            guard case .pool(let pool) = client.service else { return }
            let snapshot = try pool.snapshot()
            defer { snapshot.close() }
            let sql: SQL = "SELECT count(*), total(length(value)), max(owner * 1000 + key) FROM note"
            let first = try snapshot.read { db in try db.executeQuery(sql).all((Int, Double, Int?).self) }
            try snapshot.read { db in try checkLedger(db) }
            try pool.read { db in try checkLedger(db) }
            let second = try snapshot.read { db in try db.executeQuery(sql).all((Int, Double, Int?).self) }
            guard first.count == 1, second.count == 1, first[0] == second[0] else {
                throw Violation("A kept snapshot changed: \(first), then \(second).")
            }
        },
        Operation(name: "memory given back", weights: [.janitor: 2]) { client, _ in
            client.service.access.releaseMemory()
        },
    ]

    private static func checkLedger(_ db: Database) throws {
        let wrong = try db.executeQuery(
            """
            SELECT count(*) FROM ledger WHERE notes <> (SELECT count(*) FROM note WHERE note.owner = ledger.owner)
                OR pairs <> (SELECT count(*) FROM pair WHERE pair.owner = ledger.owner)
            """
        ).scalar(Int.self)
        guard wrong == 0 else { throw Violation("A reader saw \(wrong ?? -1) clients in the middle of a transaction.") }
    }
}
