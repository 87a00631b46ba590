import SealedDB

/// Changes of the key by the library, while the store is used.
enum KeyChanges {
    static let all: [Operation] = [
        change("live rotation", [.keeper: 3]) { client, key in try client.service.rotate(to: key) },
        change("awaited live rotation", [.keeper: 1]) { client, key in
            let service = client.service
            try client.awaiting { try await service.rotateAwaiting(to: key) }
        },
        change("rotation of a connection", [.soloist: 2]) { client, key in
            try client.database().rotateKey(to: key, progress: nil)
        },
        change("rotation with a temporary table", [.soloist: 1]) { client, key in
            let db = try client.database()
            try db.executeUpdate("CREATE TEMP TABLE kept AS SELECT 42 AS answer", values: nil)
            defer { _ = db.executeUpdate("DROP TABLE IF EXISTS temp.kept", withArgumentsIn: []) }
            try db.rotateKey(to: key, progress: nil)
            guard try db.executeQuery("SELECT answer FROM temp.kept").scalar(Int.self) == 42 else {
                throw Violation("The rotation has lost a temporary table.")
            }
        },
        Operation(name: "rekey in place", weights: [.soloist: 1], changesKey: true) { client, step in
            guard let number = step.newKey, number != client.place.currentKey else { return }
            let db = try client.database()
            guard try db.rekey(client.place.keyLiteral(number)) else { throw db.lastError() }
            client.place.currentKey = number
        },
        change("rotation of an unused store", [.custodian: 1]) { client, key in
            _ = try KeyRotation(path: client.place.store, from: client.currentKey, to: key).run()
        },
    ]

    private static func change(
        _ name: String,
        _ weights: [Role: Int],
        _ body: @escaping @Sendable (Client, Key) throws -> Void
    ) -> Operation {
        Operation(name: name, weights: weights, changesKey: true) { client, step in
            guard let number = step.newKey, number != client.place.currentKey else { return }
            try body(client, client.place.key(number))
            client.place.currentKey = number
        }
    }
}

extension Client {
    var currentKey: Key { get throws(DatabaseError) { try place.key(place.currentKey) } }
}
