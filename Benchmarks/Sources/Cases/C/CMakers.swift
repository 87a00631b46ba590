/// What C does, by the ids of cases.
enum CMakers {
    static var all: [String: Maker] {
        merged([
            statements, transactions, queries, functions, blobs, packages, concurrency, stores, replication, ciphers,
            limits,
        ])
    }
}

func merged(_ makers: [[String: Maker]]) -> [String: Maker] {
    makers.reduce(into: [:]) { result, makers in
        result.merge(makers) { _, _ in fatalError("Two makers have the same id.") }
    }
}
