import SealedDB

/// Tables that come and go, temporary ones, attached stores, migrations.
enum Schema {
    static let all: [Operation] = [
        Operation(
            name: "own table",
            weights: [.writer: 2, .soloist: 2, .peer: 1],
            isLedgered: true,
            canFail: true
        ) { random, scale in
            random.oneIn(3)
                ? [.drop] : [.create] + (0..<random.int(1..<8)).map { _ in Plans.put(.own, &random, scale) }
        } run: { client, step in
            try client.write { db in try client.make(step, on: db) }
        },
        Operation(name: "ALTER TABLE", weights: [.writer: 1, .soloist: 1]) { client, step in
            let table = Table.own.name(for: client.id)
            try client.write { db in
                guard db.tableExists(table) else { return }
                let isThere = db.columnExists("more", inTableWithName: table)
                let sql = isThere ? "DROP COLUMN more" : "ADD COLUMN more DEFAULT 'more'"
                try db.executeUpdate("ALTER TABLE \(raw: table) \(raw: sql)", values: nil)
            }
        },
        Operation(name: "temporary table", weights: [.writer: 1, .soloist: 1]) { client, _ in
            try client.direct { db in
                try db.executeUpdate("CREATE TEMP TABLE scratch AS SELECT * FROM note ORDER BY value", values: nil)
                defer { _ = db.executeUpdate("DROP TABLE temp.scratch", withArgumentsIn: []) }
                let owned = try db.executeQuery("SELECT count(*) FROM scratch WHERE owner = \(client.id)").scalar(
                    Int.self
                )
                guard owned == client.state.count(.note) else {
                    throw Violation("A temporary copy has \(owned ?? -1).")
                }
            }
        },
        Operation(name: "migration", weights: [.soloist: 1], isLedgered: true, plan: Plans.mixed) { client, step in
            var migrator = Migrator()
            for name in client.state.migrations { migrator.register(name) { _ in } }
            migrator.register(step.migration) { db in try client.make(step, on: db) }
            try migrator.migrate(client.database())
        },
        Operation(name: "failed migration", weights: [.soloist: 1]) { client, step in
            var migrator = Migrator()
            for name in client.state.migrations { migrator.register(name) { _ in } }
            // The result is not looked at, which must not make the half of it permanent.
            migrator.register("fails-\(step.id)") { db in
                _ = db.executeStatements("DELETE FROM note; INSERT INTO nowhere VALUES (1)")
            }
            do { try migrator.migrate(client.database()) } catch is DatabaseError { return }
            throw Violation("A migration in which a statement failed was reported as done.")
        },
        Operation(name: "attached store", weights: [.soloist: 3]) { random, scale in
            (0..<random.int(1..<5)).map { _ in Plans.put(.side, &random, scale) }
        } run: { client, step in
            let db = try client.database()
            try db.attach(client.place.side, as: "beside", key: client.place.key(Place.sideKey))
            do { try db.inTransaction { try client.make(step, on: db) } } catch {
                try db.detach("beside")
                throw error
            }
            try db.detach("beside")
        },
    ]
}

extension Step {
    /// The name of the migration that the step makes.
    var migration: String { "step-\(id)" }
}
