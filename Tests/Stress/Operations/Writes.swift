import Foundation
import SealedDB

/// Transactions that change rows, by each call that runs one.
enum Writes {
    static let all: [Operation] = [
        transaction("write", weight: 6) { client, step, body in try client.service.access.write(body) },
        transaction("write alone", weight: 2) { client, step, body in
            try client.service.access.write(alone: true, body)
        },
        transaction("inTransaction", weight: 2) { client, step, body in
            try client.service.access.inTransaction(body)
        },
        transaction("FMDB's inTransaction", weight: 2) { client, step, body in
            var failure: (any Error)?
            let error = client.service.access.inTransaction { db, rollback in
                do { try body(db) } catch {
                    failure = error
                    rollback.pointee = true
                }
            }
            if let failure = failure ?? error { throw failure }
        },
        transaction("nested savepoints", weight: 2) { client, step, body in
            try client.service.access.write { db in try nested(db, step, body) }
        },
        transaction("savepoint", weight: 1) { client, step, body in try client.service.access.inSavePoint(body) },
        transaction("BEGIN in SQL", weight: 1) { client, step, body in
            try client.service.access.writeWithoutTransaction { db in
                try db.executeUpdate("BEGIN IMMEDIATE", values: nil)
                do {
                    try body(db)
                    try db.executeUpdate("COMMIT", values: nil)
                } catch {
                    if db.isInTransaction { try db.executeUpdate("ROLLBACK", values: nil) }
                    throw error
                }
            }
        },
        transaction("awaited write", weight: 3) { client, step, body in
            let service = client.service
            try client.awaiting { try await service.access.write { db in try body(db) } }
        },
        cancelled,
        transaction("family", weight: 2, plan: Plans.family) { client, step, body in
            try client.service.access.write(body)
        },
        transaction("bulk", weight: 1, plan: Plans.bulk) { client, step, body in
            try client.service.access.write(body)
        },
        transaction("retention", weight: 1, plan: Plans.retention) { client, step, body in
            try client.service.access.write(body)
        },
        own("transaction of a connection") { client, step, db in
            try db.inTransaction { try client.make(step, on: db) }
        },
        own("begin and commit") { client, step, db in
            guard db.beginImmediateTransaction() else { throw db.lastError() }
            do { try client.make(step, on: db) } catch {
                guard db.rollback() else { throw db.lastError() }
                throw error
            }
            guard db.commit() else {
                let error = db.lastError()
                if db.isInTransaction, !db.rollback() { throw db.lastError() }
                throw error
            }
        },
        own("savepoint of a connection") { client, step, db in
            try nested(db, step) { db in try client.make(step, on: db) }
        },
        autocommit, returning, orphan, orphanReturned,
    ]

    typealias Body = @Sendable (Database) throws -> Void

    static func transaction(
        _ name: String,
        weight: Int,
        plan: @escaping @Sendable (inout Random, Scale) -> [Change] = Plans.mixed,
        _ call: @escaping @Sendable (Client, Step, @escaping Body) throws -> Void
    ) -> Operation {
        Operation(
            name: name,
            weights: [.writer: weight],
            isLedgered: true,
            canFail: true,
            plan: plan
        ) { client, step in
            try call(client, step) { db in try client.make(step, on: db) }
        }
    }

    /// On a connection of the client's own.
    private static func own(
        _ name: String,
        _ call: @escaping @Sendable (Client, Step, Database) throws -> Void
    ) -> Operation {
        Operation(
            name: name,
            weights: [.soloist: 3, .peer: 3],
            isLedgered: true,
            canFail: true
        ) { random, scale in
            random.oneIn(4)
                ? Plans.family(&random, scale)
                : random.oneIn(6)
                    ? Plans.bulk(&random, scale)
                    : random.oneIn(6) ? Plans.retention(&random, scale) : Plans.mixed(&random, scale)
        } run: { client, step in
            try call(client, step, client.database())
        }
    }

    /// What is written in the inner savepoints is taken back, that in the outer ones stays.
    private static func nested(_ db: Database, _ step: Step, _ body: Body) throws {
        try db.savepoint {
            try db.savepoint { try body(db) }
            let error = db.inSavePoint { rollback in
                _ = db.executeUpdate("DELETE FROM note", withArgumentsIn: [])
                _ = db.executeUpdate("DELETE FROM pair", withArgumentsIn: [])
                rollback.pointee = true
            }
            if let error { throw error }
        }
    }

    /// Ended by its task at some moment: wholly there or not at all, as the call says.
    private static let cancelled = transaction("cancelled write", weight: 2) { client, step, body in
        let service = client.service
        var random = step.random
        let delay = random.int(0..<3000)
        try client.awaiting {
            let task = Task {
                try await service.access.write { db in
                    try body(db)
                    _ = try db.longForQuery("SELECT count(*) FROM note AS a, note AS b WHERE a.key < b.key")
                }
            }
            try? await Task.sleep(for: .microseconds(delay))
            task.cancel()
            try await task.value
        }
    }

    /// One statement, without a transaction around it.
    private static let autocommit = Operation(name: "autocommit", weights: [.writer: 2, .soloist: 2, .peer: 2]) {
        random,
        scale in
        // Not those whose rows the ledger counts.
        [Plans.put(random.pick([.parent, .words]), &random, scale)]
    } run: { client, step in
        try client.direct { db in
            guard case .put(let table, let key, let value) = step.changes[0] else { return }
            let name = table == .words ? "words (owner, key, value, rowid)" : "\(table) (owner, key, value)"
            let id = table == .words ? ", \(Table.rowID(owner: client.id, key: key))" : ""
            try db.executeUpdate(
                "REPLACE INTO \(raw: name) VALUES (?, ?, ?\(raw: id))",
                values: [client.id, key, value.isBlob ? Data(value.bytes) : value.text]
            )
        }
    }

    /// RETURNING commits when its statement ends.
    private static let returning = Operation(
        name: "autocommit RETURNING",
        weights: [.writer: 3, .soloist: 3, .peer: 3]
    ) { random, scale in
        [Plans.put(.entry, &random, scale)]
    } run: { client, step in
        try client.direct { db in
            try client.make(step, on: db)
        }
    }

    /// A deferred foreign key that is violated: nothing of the transaction may stay.
    private static let orphan = Operation(name: "orphan", weights: [.writer: 1, .soloist: 2, .peer: 1]) {
        client,
        step in
        let key = client.scale.keyCount + 1
        try client.mustFail("A transaction that violates a foreign key") {
            try client.write { db in
                try db.executeUpdate("INSERT INTO child (owner, key, value) VALUES (?, ?, 'orphan')", client.id, key)
            }
        }
    }

    private static let orphanReturned = Operation(
        name: "orphan RETURNING",
        weights: [.writer: 1, .soloist: 1, .peer: 1]
    ) { client, step in
        var random = step.random
        try client.mustFail("RETURNING of a row that violates a foreign key") {
            try client.direct { db in
                _ = try Returning.run(
                    "INSERT INTO child (owner, key, value) VALUES (?, ?, ?) RETURNING key",
                    [client.id, client.scale.keyCount + 2, "orphan"],
                    on: db,
                    &random
                )
            }
        }
    }
}
