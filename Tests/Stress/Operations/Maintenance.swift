import SealedDB

/// What changes files and no rows.
enum Maintenance {
    static let all: [Operation] = [
        statement("VACUUM", weight: 3) { _ in "VACUUM" },
        statement("incremental_vacuum", weight: 2) { "PRAGMA incremental_vacuum(\($0.int(0..<50)))" },
        statement("auto_vacuum", weight: 2) { "PRAGMA auto_vacuum = \($0.int(0..<3))" },
        statement("cache_size", weight: 1) { "PRAGMA cache_size = \($0.pick([10, 200, -2000, -32000]))" },
        // With FULL a power failure could undo the last commits of a rollback journal.
        statement("synchronous", weight: 1) { "PRAGMA synchronous = \($0.pick(["3", "EXTRA"]))" },
        statement("CREATE INDEX", weight: 1) { "CREATE INDEX IF NOT EXISTS pair_\($0.int(0..<3)) ON pair (value)" },
        statement("DROP INDEX", weight: 1) { "DROP INDEX IF EXISTS pair_\($0.int(0..<3))" },
        statement("REINDEX", weight: 1) { _ in "REINDEX" },
        statement("ANALYZE", weight: 1) { _ in "ANALYZE" },
        statement("merge the full text", weight: 1) { _ in "INSERT INTO words (words) VALUES ('optimize')" },
        Operation(name: "checkpoint", weights: [.janitor: 5, .soloist: 2, .peer: 1]) { client, step in
            var random = step.random
            let mode = random.pick([CheckpointMode.passive, .full, .restart, .truncate])
            try client.direct { db in try db.checkpoint(mode) }
        },
    ]

    private static func statement(
        _ name: String,
        weight: Int,
        _ sql: @escaping @Sendable (inout Random) -> String
    ) -> Operation {
        Operation(name: name, weights: [.janitor: weight, .soloist: 1]) { client, step in
            var random = step.random
            let text = sql(&random)
            try client.direct { db in
                guard db.executeStatements(text) else { throw db.lastError() }
            }
        }
    }
}
