import Wire

/// What shipping a store costs those that write to it, and how fast a repository gets all of it.
enum ReplicationCases {
    /// Commits in a pass, and rows in each.
    static let (commits, rows) = (20, 10)

    static let infos = [
        CaseInfo(
            id: "replication.writer.alone",
            group: "Replication",
            title: "10 rows in a transaction, WAL, FULL",
            unit: "row",
            set: "replication"
        ),
        CaseInfo(
            id: "replication.writer.shipped",
            group: "Replication",
            title: "the same, shipped to a directory every second",
            unit: "row",
            set: "replication"
        ),
        CaseInfo(
            id: "replication.snapshot",
            group: "Replication",
            title: "snapshot into a new repository, authenticated and synced; C copies the file and syncs it",
            unit: "MiB",
            bytes: 1_048_576
        ),
        CaseInfo(
            id: "replication.restore",
            group: "Replication",
            title: "restore from a repository, checked, read back and synced; C copies the file and syncs it",
            unit: "MiB",
            bytes: 1_048_576
        ),
    ]
}
