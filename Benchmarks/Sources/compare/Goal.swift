import Wire

/// What SealedDB wants to be, in figures that one run measures.
struct Goal {
    enum Measure {
        case ratio(Comparison.Series, Comparison.Series)
        /// Of the encrypted SealedDB for a unit of work, beyond what C does.
        case allocations(id: String)
    }

    enum Limit: String, Codable { case atMost, atLeast }

    let title: String
    let measure: Measure
    var limit = Limit.atMost
    let bound: Double

    /// Against C, on the encrypted engine.
    private static func wrapper(_ title: String, _ id: String, _ bound: Double) -> Goal {
        let measure = Measure.ratio(encrypted(id), Comparison.Series(id: id, engine: .encrypted, subject: .c))
        return Goal(title: "\(title), against C", measure: measure, bound: bound)
    }

    /// Encrypted against GRDB in the clear.
    private static func peer(_ title: String, _ id: String) -> Goal {
        let measure = Measure.ratio(encrypted(id), Comparison.Series(id: id, engine: .plain, subject: .grdb))
        return Goal(title: "\(title): encrypted against GRDB plain", measure: measure, bound: 1)
    }

    private static func allocations(_ title: String, _ id: String) -> Goal {
        Goal(title: "\(title): allocations a row", measure: .allocations(id: id), bound: 0)
    }

    private static func encrypted(_ id: String) -> Comparison.Series {
        Comparison.Series(id: id, engine: .encrypted, subject: .sealed)
    }

    static let all = [
        wrapper("Bind and step, 5 × Int64, typed", "bind.integer.prepared", 1.1),
        wrapper("Bind and step, 5 × Double, typed", "bind.real.prepared", 1.1),
        wrapper("Bind and step, 5 × String, typed", "bind.text.prepared", 1.3),
        wrapper("Bind and step, mixed, [Any]", "bind.mixed.prepared-any", 2),
        wrapper("Scan of 5 × Int64", "read.integer.index", 1.1),
        wrapper("Scan of 5 × Double", "read.real.index", 1.1),
        wrapper("Scan of 5 × String, which C copies too", "read.text.copied", 1.3),
        wrapper("Tuples of 5 × Int64", "read.integer.tuple", 1.3),
        wrapper("Tuples, mixed, which C copies too", "read.mixed.tuple", 1.3),
        wrapper("Closure of the columns, mixed, which C copies too", "read.mixed.closure", 1.3),
        wrapper("Codable, mixed, which C copies too", "read.mixed.codable", 2.5),
        wrapper("Cold scan", "scan.cold", 0.75),
        wrapper("Cold point query", "point.small.transaction.typed", 0.8),
        peer("Insert 1,000 rows and commit (WAL, NORMAL)", "transaction.wal.normal.1000"),
        peer("Scan, mixed", "read.mixed.index"),
        peer("Point query, all pages cached", "point.warm.transaction.typed"),
        peer("Codable, mixed", "read.mixed.codable"),
        Goal(
            title: "Durable rows a second: 64 tasks that share commits, against one by one",
            measure: .ratio(encrypted("concurrency.writers.1"), encrypted("concurrency.tasks.64")),
            limit: .atLeast,
            bound: 10
        ),
        Goal(
            title: "Durable rows a second: 64 threads that share commits, against one by one",
            measure: .ratio(encrypted("concurrency.writers.1"), encrypted("concurrency.batched.64")),
            limit: .atLeast,
            bound: 10
        ),
        Goal(
            title: "Queries a second: 8 readers on all cores, against one",
            measure: .ratio(encrypted("concurrency.readers.1"), encrypted("concurrency.readers.8")),
            limit: .atLeast,
            bound: 1.7
        ),
        Goal(
            title: "Queries a second on cold pages: 8 readers on all cores, against one",
            measure: .ratio(encrypted("concurrency.cold.1"), encrypted("concurrency.cold.8")),
            limit: .atLeast,
            bound: 1.7
        ),
        Goal(
            title: "Rows of 8 connections that write all the while: the slowest against the fastest",
            measure: .ratio(encrypted("concurrency.turns.last"), encrypted("concurrency.turns.first")),
            bound: 1.5
        ),
        Goal(
            title: "Point query when nobody waits: by await, against a call that parks its thread",
            measure: .ratio(encrypted("concurrency.await"), encrypted("concurrency.parked")),
            bound: 1.5
        ),
        Goal(
            title: "Open a pool of 8 with a passphrase, against one derivation",
            measure: .ratio(
                encrypted("open.pool.passphrase"),
                Comparison.Series(id: "limit.derivation", engine: .encrypted, subject: .c)
            ),
            bound: 1.2
        ),
        wrapper("Rotate a large store; C copies it by the backup API", "store.large.rotate", 0.35),
        wrapper("Back a large store up under its key; C copies it by the backup API", "store.large.backup", 0.25),
        wrapper("Check the codes of a large store; C runs cipher_integrity_check", "store.large.pages", 0.35),
        wrapper("Verify a large store; C runs cipher_integrity_check", "store.large.verify", 0.35),
        Goal(
            title: "Rotate a large store, against what libcrypto takes for its pages on all cores",
            measure: .ratio(
                encrypted("store.large.rotate"),
                Comparison.Series(id: "limit.rotate", engine: .encrypted, subject: .c)
            ),
            bound: 1.3
        ),
        Goal(
            title: "Commits while the store is shipped to a directory, against commits alone",
            measure: .ratio(encrypted("replication.writer.shipped"), encrypted("replication.writer.alone")),
            bound: 1.05
        ),
        wrapper("Snapshot of a store into a repository; C copies the file", "replication.snapshot", 1 / 0.7),
        wrapper("Restore of a store from a repository; C copies the file", "replication.restore", 1 / 0.7),
        allocations("Bind and step, 5 × Int64", "bind.integer.prepared"),
        allocations("Scan of 5 × Int64", "read.integer.index"),
        allocations("Tuples of 5 × Int64", "read.integer.tuple"),
    ]
}
