import SealedDB

/// Changes of the key while the store is used.
enum KeyChanges {
    static let all: [Operation] = [
        Operation(name: "live rotation", weights: [.keeper: 3], changesKey: true) { client, step in
            guard let key = try newKey(client, step) else { return }
            try client.service.rotate(to: key)
            client.station.currentKey = step.newKey!
        },
        Operation(name: "awaited live rotation", weights: [.keeper: 1], changesKey: true) { client, step in
            guard let key = try newKey(client, step) else { return }
            let service = client.service
            try client.awaiting { try await service.rotateAwaiting(to: key) }
            client.station.currentKey = step.newKey!
        },
    ]

    /// `nil` if the store has it already.
    static func newKey(_ client: Client, _ step: Step) throws -> Key? {
        guard let number = step.newKey, number != client.station.currentKey else { return nil }
        return try client.station.place.key(number)
    }
}
