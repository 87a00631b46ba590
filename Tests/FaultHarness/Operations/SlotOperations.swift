/// Changes of the key slots of a store.
enum SlotOperations {
    static func table(in directory: String) throws -> [Operation] {
        let seed = try SlotSeed(.delete, in: directory)
        let wal = try SlotSeed(.wal, in: directory)
        let oldAndThird = seed.state([.old, .third])
        return [
            seed.operation(
                "add",
                ["slots", "add", "db", "new", "--key-file", "old.key", "--new-key-file", "new.key"],
                from: seed.state([.old, .third], none: [.new]),
                to: seed.state([.old, .third, .new])
            ),
            seed.operation(
                "remove",
                ["slots", "remove", "db", "recovery", "--key-file", "old.key", "--yes"],
                from: oldAndThird,
                to: seed.state([.old], none: [.third])
            ),
            seed.operation(
                "rename",
                ["slots", "rename", "db", "main", "ops", "--key-file", "old.key"],
                from: oldAndThird,
                to: oldAndThird
            ),
            seed.operation("rotate", rotation, from: oldAndThird, to: seed.state([.new, .third], none: [.old])),
            wal.operation(
                "rotate-wal",
                rotation,
                from: wal.state([.old, .third]),
                to: wal.state([.new, .third], none: [.old])
            ),
            reencryption(seed, "rotate-reencrypt"), reencryption(wal, "rotate-reencrypt-wal"),
            seed.operation(
                "reencrypt",
                ["slots", "reencrypt", "db", "--key-file", "old.key", "--keep", "recovery=key-file:third.key"],
                from: oldAndThird,
                to: oldAndThird
            ),
            seed.operation(
                "import",
                ["slots", "import", "db", "text", "--key-file", "old.key"],
                from: oldAndThird,
                to: oldAndThird
            ),
            try initialization(in: directory),
            backup(seed),
            creation(),
        ]
    }

    private static let rotation = ["rotate", "db", "--key-file", "old.key", "--new-key-file", "new.key"]

    /// The slot of the old key and the data key at once.
    private static func reencryption(_ seed: SlotSeed, _ variant: String) -> Operation {
        var operation = seed.operation(
            variant,
            rotation + ["--reencrypt", "--keep", "recovery=key-file:third.key"],
            from: seed.state([.old, .third], none: [.new]),
            to: seed.state([.new, .third], none: [.old])
        )
        operation.saysAfter.append("The store now has the new contents and key")
        return operation
    }

    /// The store's own key becomes the data key.
    private static func initialization(in directory: String) throws -> Operation {
        let seed = try Seed(.delete, key: .old, in: directory)
        return Operation(
            name: "slots",
            variant: "init",
            arguments: [Program.sealdb, "slots", "init", "db", "--key-file", "old.key"]
                + ["--recovery-key-file", "third.key"],
            files: seed.files.merging(TestKey.files) { first, _ in first },
            unsynced: ["third.key"],
            targets: [
                .init(
                    file: "db",
                    before: .store(.old, digest: seed.digest),
                    after: .slots(all: [.old, .third], none: [.new], digest: seed.digest)
                ), .init(file: "db.slots", before: .anything, after: .anything),
                .init(file: "db.slots.2", before: .anything, after: .anything),
            ],
            saysAfter: ["The store has slots now"],
            saysUnknown: ["could not be removed"],
            temporaries: SlotSeed.temporaries
        )
    }

    private static func backup(_ seed: SlotSeed) -> Operation {
        var operation = seed.operation(
            "backup",
            ["backup", "db", "copy", "--key-file", "old.key"],
            from: seed.state([.old, .third]),
            to: seed.state([.old, .third])
        )
        operation.targets += [
            .init(file: "copy", before: .absent, after: seed.state([.old, .third])),
            .init(file: "copy.slots", before: .anything, after: .anything),
            .init(file: "copy.slots.2", before: .anything, after: .anything),
        ]
        operation.temporaries += [".copy.sealdb-", ".copy.slots.sealdb-", ".copy.slots.2.sealdb-"]
        operation.saysAfter.append(OperationTable.isComplete)
        return operation
    }

    private static func creation() -> Operation {
        Operation(
            name: "slots",
            variant: "create",
            arguments: [Program.sealdb, "create", "db", "--slots"]
                + ["--key-file", "old.key", "--recovery-key-file", "third.key"],
            files: TestKey.files,
            unsynced: ["old.key", "third.key"],
            targets: [
                .init(
                    file: "db",
                    before: .absent,
                    after: .slots(all: [.old, .third], none: [], digest: OperationTable.emptyDigest)
                ), .init(file: "db.slots", before: .anything, after: .anything),
                .init(file: "db.slots.2", before: .anything, after: .anything),
            ],
            saysAfter: [OperationTable.isComplete, "was made, and is empty"],
            temporaries: SlotSeed.temporaries
        )
    }
}

/// A store with slots of the keys `old` and `third`, the latter for recovery.
struct SlotSeed {
    static let temporaries = [".db.sealdb-", ".db.slots.sealdb-", ".db.slots.2.sealdb-"]

    private let files: [String: Files.Bytes]
    private let digest: UInt64

    init(_ shape: Seed.Shape, in directory: String) throws {
        let seed = try Seed(shape, key: .old, in: directory)
        try Files.fill(directory, with: seed.files.merging(TestKey.files) { first, _ in first })
        let made = try Command.run(
            [Program.sealdb, "slots", "init", "db", "--key-file", "old.key", "--recovery-key-file", "third.key"]
                + ["--fresh-data-key"],
            directory: directory
        )
        guard made.status == 0 else { throw HarnessError("The seed has no slots: \(made.error)") }
        let text = try Command.run(
            [Program.sealdb, "slots", "export", "db", "--key-file", "old.key"],
            directory: directory
        )
        guard text.status == 0 else { throw HarnessError("The slots cannot be exported: \(text.error)") }
        try Files.write(directory + "/text", Array(text.output.utf8))
        files = try Files.contents(of: directory).filter { !$0.key.hasSuffix("-shm") && !$0.key.hasSuffix("-lock") }
        digest = seed.digest
    }

    func state(_ all: Set<TestKey>, none: Set<TestKey> = []) -> Operation.State {
        .slots(all: all, none: none, digest: digest)
    }

    func operation(
        _ variant: String,
        _ arguments: [String],
        from before: Operation.State,
        to after: Operation.State
    ) -> Operation {
        Operation(
            name: "slots",
            variant: variant,
            arguments: [Program.sealdb] + arguments,
            files: files,
            targets: [
                .init(file: "db", before: before, after: after),
                .init(file: "db.slots", before: .anything, after: .anything),
                .init(file: "db.slots.2", before: .anything, after: .anything),
            ],
            saysAfter: ["The store has the new key"],
            saysUnknown: [
                "The slots may be changed", "could not be removed again", "the slots still list the old one",
                "The new key opens the store, and so may the old one still", "has the change",
            ],
            temporaries: SlotSeed.temporaries
        )
    }
}
