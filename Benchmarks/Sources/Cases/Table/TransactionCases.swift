import Wire

/// Inserts that are committed, by journal mode, `synchronous`, and rows in a transaction.
enum TransactionCases {
    static let createTable = """
        CREATE TABLE entry (id INTEGER PRIMARY KEY, number INTEGER, title TEXT, price REAL, digest BLOB)
        """
    static let insert = "INSERT INTO entry (number, title, price, digest) VALUES (?, ?, ?, ?)"

    struct Setting {
        let journalMode: String
        let synchronous: String

        var options: StoreOptions { StoreOptions(journalMode: journalMode, synchronous: synchronous) }

        func id(batch: Int) -> String {
            "transaction.\(journalMode).\(synchronous).\(batch == 0 ? "autocommit" : String(batch))"
        }
    }

    static let settings = ["delete", "wal"].flatMap { journalMode in
        ["full", "normal", "off"].map { Setting(journalMode: journalMode, synchronous: $0) }
    }

    /// 0 stands for inserts outside a transaction, of which SQLite makes one each.
    static let batches = [0, 1, 10, 100, 1000]

    /// In a pass.
    static func rows(batch: Int) -> Int { max(batch, 4) / max(batch, 1) * max(batch, 1) }

    static var infos: [CaseInfo] {
        settings.flatMap { setting in
            batches.map { batch in
                let journal = setting.journalMode == "wal" ? "WAL" : "rollback journal"
                let size =
                    switch batch {
                    case 0: "autocommit"
                    case 1: "1 row in a transaction"
                    default: "\(batch) rows in a transaction"
                    }
                return CaseInfo(
                    id: setting.id(batch: batch),
                    group: "Transactions",
                    title: "\(journal), \(setting.synchronous.uppercased()): \(size)",
                    unit: "row"
                )
            }
        }
    }
}
