/// What SealedDB does, by the ids of cases: through a queue or a pool, as it is meant to be used.
enum SealedMakers {
    static var all: [String: Maker] {
        merged([
            bind, typedBind, read, typedRead, queries, functions, blobs, transactions, concurrency, packages, stores,
            slots, replication, ciphers,
        ])
    }
}
