/// The benchmarks that say most, for a chart; those of them that say enough, for a short table.
enum Highlights {
    private static let all: [(label: String, id: String)] = [
        ("Bind and insert, rolled back", "bind.mixed.prepared"),
        ("Read rows, all pages cached", "read.mixed.index"),
        ("Read rows as Codable structs", "read.mixed.codable"),
        ("Point query, all pages cached", "point.warm.transaction.typed"),
        ("Point query, cache of 16 pages", "point.small.transaction.typed"),
        ("Scan, all pages cached", "scan.warm"),
        ("Scan, no page cached", "scan.cold"),
        ("Insert a durable row (WAL, FULL)", "transaction.wal.full.autocommit"),
        ("Insert 1,000 rows durably (WAL, FULL)", "transaction.wal.full.1000"),
        ("Insert a row (WAL, NORMAL)", "transaction.wal.normal.autocommit"),
        ("Insert 1,000 rows (WAL, NORMAL)", "transaction.wal.normal.1000"),
        ("Insert a durable row (rollback journal, FULL)", "transaction.delete.full.autocommit"),
        ("64 writers that share commits (WAL, FULL)", "concurrency.batched.64"),
        ("Package index: load", "packages.load"),
        ("Package index: read everything", "packages.read"),
        ("Package index: look up by name", "packages.lookup"),
        ("Package index: search all texts", "packages.search"),
        ("Full text: insert", "fts.insert"),
        ("Full text: ranked search", "fts.match"),
        ("Backup", "store.backup"),
        ("Open with a raw key", "open.raw"),
    ]

    private static let short: Set = [
        "bind.mixed.prepared", "read.mixed.index", "read.mixed.codable", "point.warm.transaction.typed", "scan.cold",
        "transaction.wal.full.autocommit", "transaction.wal.normal.1000", "concurrency.batched.64", "packages.load",
        "packages.read", "open.raw",
    ]

    static func rows(_ report: Report, short isShort: Bool = false) -> [(label: String, row: Report.Row)] {
        all.compactMap { label, id in
            guard !isShort || short.contains(id), let row = report.row(id) else { return nil }
            return (label, row)
        }
    }
}
