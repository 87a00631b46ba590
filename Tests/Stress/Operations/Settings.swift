import SealedDB

/// Modes of a connection that has the store for itself.
enum Settings {
    static let all: [Operation] = [
        Operation(name: "journal_mode", weights: [.soloist: 4]) { client, step in
            var random = step.random
            let mode = random.pick(["wal", "delete", "truncate", "persist"])
            let db = try client.database()
            let found = try db.executeQuery(SQL(raw: "PRAGMA journal_mode = \(mode)")).scalar(String.self)
            guard found == mode else { throw Violation("journal_mode is \(found ?? "nothing") and not \(mode).") }
        },
        Operation(name: "open again", weights: [.soloist: 2, .peer: 1]) { client, _ in
            client.closeDatabase()
            _ = try client.database()
        },
    ]
}
