import RawStore

/// What is shipped to a repository, and restored from it.
enum ReplicationOperations {
    private static let repository = "repo"

    static func table(in directory: String) throws -> [Operation] {
        [try first(in: directory), try once(in: directory), try restoration(in: directory)]
    }

    /// `sealdb replicate --once` to a repository that is to be made.
    private static func first(in directory: String) throws -> Operation {
        let seed = try Seed(.walHot, key: .old, in: directory)
        let store = Operation.State.store(.old, digest: seed.digest)
        return shipping(
            "first",
            files: seed.files.merging(TestKey.files) { first, _ in first },
            store: store,
            before: .repository(.old, digest: nil),
            after: .repository(.old, digest: seed.digest)
        )
    }

    /// And to one that holds an older state. The store is another file than then, so a generation begins.
    private static func once(in directory: String) throws -> Operation {
        let repository = try RepositorySeed(in: directory)
        return shipping(
            "once",
            files: repository.files,
            store: .store(.old, digest: repository.newDigest),
            before: .repository(.old, digest: repository.digest),
            after: .repository(.old, digest: repository.newDigest)
        )
    }

    private static func shipping(
        _ variant: String,
        files: [String: Files.Bytes],
        store: Operation.State,
        before: Operation.State,
        after: Operation.State
    ) -> Operation {
        Operation(
            name: "replicate",
            variant: variant,
            arguments: [Program.sealdb, "replicate", "db", "--to", repository, "--once", "--adopt"]
                + ["--key-file", TestKey.old.file],
            files: files,
            targets: [
                .init(file: "db", before: store, after: store),
                .init(file: repository, before: before, after: after),
            ],
            // An object that is written counts also if what comes after it fails.
            failure: .either,
            folders: [repository]
        )
    }

    /// `sealdb restore --from`: all of the store or nothing.
    private static func restoration(in directory: String) throws -> Operation {
        let seed = try RepositorySeed(in: directory)
        let state = Operation.State.repository(.old, digest: seed.digest)
        return Operation(
            name: "replicate",
            variant: "restore",
            arguments: [Program.sealdb, "restore", "--from", repository, "db"],
            files: seed.files.filter { !$0.key.hasPrefix("db") },
            targets: [
                .init(file: repository, before: state, after: state),
                .init(file: "db", before: .absent, after: .store(.old, digest: seed.digest)),
            ],
            saysAfter: [OperationTable.isComplete],
            folders: [repository]
        )
    }

    /// A repository with a snapshot and segments, and its store, which has changed since.
    private struct RepositorySeed {
        let files: [String: Files.Bytes]
        /// What the repository holds.
        let digest: UInt64
        /// What the store holds.
        let newDigest: UInt64

        init(in directory: String) throws {
            let seed = try Seed(.wal, key: .old, in: directory)
            try Files.fill(directory, with: seed.files.merging(TestKey.files) { first, _ in first })
            // Keeps the log, so that the second call goes on in it.
            let connection = try RawConnection(directory + "/db", key: TestKey.old.specification)
            try connection.run("PRAGMA wal_autocheckpoint = 0; UPDATE people SET name = 'y' WHERE id = 1")
            for isFirst in [true, false] {
                let shipped = try Command.run(
                    [Program.sealdb, "replicate", "db", "--to", repository, "--once", "--key-file", "old.key"],
                    directory: directory
                )
                guard shipped.status == 0 else { throw HarnessError("The seed is not shipped: \(shipped.error)") }
                if isFirst { try connection.run("UPDATE people SET name = 'z', bio = 'b' WHERE id = 2") }
            }
            digest = try Contents(of: connection).digest
            try connection.run("DELETE FROM people WHERE id % 2 = 0")
            newDigest = try Contents(of: connection).digest
            connection.close()
            files = try Files.contents(of: directory).filter {
                !$0.key.hasSuffix("-shm") && !$0.key.hasSuffix("-lock")
            }
            guard files.keys.contains(where: { $0.hasSuffix("segment-000000000001") }) else {
                throw HarnessError("The seed has no segment.")
            }
        }
    }
}
