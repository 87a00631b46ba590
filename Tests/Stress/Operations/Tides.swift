/// A store that grows by many pages and shrinks again, while others work: what is copied meanwhile must follow.
enum Tides {
    static let all: [Operation] = [
        Operation(name: "flood", weights: [.tide: 2], isLedgered: true) { random, scale in
            let count = [Scale.small: 60, .medium: 250, .large: 1200, .huge: 2500][scale]!
            return (0..<count).map { index in
                let value = Value(tag: random.next(), length: random.int(10_000..<60_000), isBlob: random.oneIn(2))
                return .put(.pair, key: firstKey + index, value)
            }
        } run: { client, step in
            try client.write { db in try client.make(step, on: db) }
        },
        ebb("ebb", vacuum: nil),
        ebb("ebb and VACUUM", vacuum: "VACUUM"),
        ebb("ebb and incremental_vacuum", vacuum: "PRAGMA incremental_vacuum"),
    ]

    private static let firstKey = 100_000

    private static func ebb(_ name: String, vacuum: String?) -> Operation {
        Operation(name: name, weights: [.tide: 1], isLedgered: true) { _, _ in
            [.removeRange(.pair, firstKey..<2 * firstKey)]
        } run: { client, step in
            try client.write { db in try client.make(step, on: db) }
            guard let vacuum else { return }
            try client.direct { db in
                // What was removed stays so, whether it works or not.
                _ = db.executeStatements(vacuum)
            }
        }
    }
}
