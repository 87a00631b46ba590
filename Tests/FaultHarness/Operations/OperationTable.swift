/// All operations that are disturbed.
enum OperationTable {
    /// - Parameter directory: a place to make databases in.
    static func make(in directory: String) throws -> [Operation] {
        var table: [Operation] = []
        for shape in Seed.Shape.allCases { table.append(try rotation(shape, in: directory)) }
        for shape in [Seed.Shape.delete, .wal] {
            table.append(try rekey(shape, in: directory))
            table.append(try encryption(shape, in: directory))
            table.append(try load(shape, in: directory))
            table.append(try rotationUnderLoad(shape, in: directory))
        }
        for shape in Seed.Shape.allCases { table.append(try transaction(shape, in: directory)) }
        for shape in Seed.Shape.allCases { table.append(try restoration(over: shape, in: directory)) }
        for shape in [Seed.Shape.delete, .walHot] {
            table.append(try backup(shape, under: .new, in: directory))
            table.append(try backup(shape, under: .old, in: directory))
        }
        for shape in [Seed.Shape.delete, .walHot] { table.append(try migration(shape, in: directory)) }
        table.append(try batch(in: directory))
        for isBatch in [false, true] { table.append(try replacement(isBatch: isBatch, in: directory)) }
        table.append(try restoration(in: directory))
        table.append(try decryption(in: directory))
        table.append(creation())
        table.append(keyGeneration())
        table += try KeyRingOperations.table(in: directory)
        table += try SlotOperations.table(in: directory)
        table += try ReplicationOperations.table(in: directory)
        return table
    }

    /// What is done in the wrong order: the only copy of the old key is replaced before the store is rotated.
    static func keyFirst(in directory: String) throws -> Operation {
        let seed = try Seed(.delete, key: .old, in: directory)
        return Operation(
            name: "key-first",
            variant: "delete",
            arguments: [
                Program.subject, "key-first", "db", "--key-file", "app.key", "--new-key-file", TestKey.new.file,
            ],
            files: seed.files.adding(TestKey.files).adding([
                "app.key": TestKey.old.fileContents, "copy." + TestKey.new.file: TestKey.new.fileContents,
            ]),
            targets: [
                .init(file: "app.key", before: .key(.old), after: .key(.new)),
                .init(file: "db", before: .store(.old, digest: seed.digest), after: .store(.new, digest: seed.digest)),
            ],
            openFiles: ["app.key"]
        )
    }

    /// `sealdb rotate`: copy, verify, swap.
    private static func rotation(_ shape: Seed.Shape, in directory: String) throws -> Operation {
        let seed = try Seed(shape, key: .old, in: directory)
        return Operation(
            name: "rotate",
            variant: shape.rawValue,
            arguments: [Program.sealdb, "rotate", "db"] + keyOptions(.old, .new),
            files: seed.files.adding(TestKey.files),
            unsynced: [TestKey.new.file],
            targets: [
                .init(file: "db", before: .store(.old, digest: seed.digest), after: .store(.new, digest: seed.digest))
            ],
            saysAfter: ["The store now has the new contents and key", "The store has the new key"]
        )
    }

    /// `sealdb rotate` with a journal, as one of a batch.
    private static func batch(in directory: String) throws -> Operation {
        let seed = try Seed(.wal, key: .old, in: directory)
        return Operation(
            name: "rotate",
            variant: "batch",
            arguments: [Program.sealdb, "rotate", "db", "--journal", "log"] + keyOptions(.old, .new),
            files: seed.files.adding(TestKey.files),
            unsynced: [TestKey.new.file],
            targets: [
                .init(file: "db", before: .store(.old, digest: seed.digest), after: .store(.new, digest: seed.digest)),
                .init(file: "log", before: .anything, after: .anything),
            ],
            saysAfter: [
                "The store now has the new contents and key", "The store has the new key", "It has the new key",
                "1 of 1 stores have their new key",
            ],
            saysUnknown: ["has one of the two keys"],
            temporaries: [".db.sealdb-", ".log.sealdb-"]
        )
    }

    /// `sealdb rotate --replace-key-files`: and then the new key file in the place of the old one.
    private static func replacement(isBatch: Bool, in directory: String) throws -> Operation {
        let seed = try Seed(.delete, key: .old, in: directory)
        let places = Operation.KeyPlaces(file: "app.key", former: "app.key.old", new: "app.key.new")
        let journal = isBatch ? ["--journal", "log"] : []
        return Operation(
            name: "rotate",
            variant: isBatch ? "replace-batch" : "replace",
            arguments: [Program.sealdb, "rotate", "db", "--replace-key-files"] + journal
                + ["--key-file", places.file, "--new-key-file", places.new],
            // Of each key one file: those that are alike would be one with two names, which is refused.
            files: seed.files.adding([
                places.file: TestKey.old.fileContents, places.new: TestKey.new.fileContents,
                TestKey.third.file: TestKey.third.fileContents,
            ]),
            targets: [
                .init(file: "db", before: .store(.old, digest: seed.digest), after: .store(.new, digest: seed.digest))
            ] + (places.all + (isBatch ? ["log"] : [])).map { .init(file: $0, before: .anything, after: .anything) },
            saysAfter: [
                "The store now has the new contents and key", "The store has the new key", "It has the new key",
                "1 of 1 stores have their new key",
            ],
            saysUnknown: ["has one of the two keys"],
            openFiles: Set(places.all),
            temporaries: [".db.sealdb-", ".app.key.sealdb-", ".app.key.old.sealdb-", ".log.sealdb-"],
            keyPlaces: places
        )
    }

    /// `Database.rekey`: in place.
    private static func rekey(_ shape: Seed.Shape, in directory: String) throws -> Operation {
        let seed = try Seed(shape, key: .old, in: directory)
        return Operation(
            name: "rekey",
            variant: shape.rawValue,
            arguments: [Program.subject, "rekey", "db"] + keyOptions(.old, .new),
            files: seed.files.adding(TestKey.files),
            targets: [
                .init(file: "db", before: .store(.old, digest: seed.digest), after: .store(.new, digest: seed.digest))
            ],
            saysAfter: ["The store has the new key", "Cannot acknowledge"],
            saysUnknown: ["has one of the two keys"]
        )
    }

    /// `sealdb encrypt`: a plaintext database into a new store.
    private static func encryption(_ shape: Seed.Shape, in directory: String) throws -> Operation {
        let seed = try Seed(shape, key: nil, name: "plain", in: directory)
        let plain = Operation.State.store(nil, digest: seed.digest)
        return Operation(
            name: "encrypt",
            variant: shape.rawValue,
            arguments: [Program.sealdb, "encrypt", "plain", "db", "--key-file", TestKey.old.file],
            files: seed.files.adding(TestKey.files),
            unsynced: [TestKey.old.file],
            targets: [
                .init(file: "plain", before: plain, after: plain),
                .init(file: "db", before: .absent, after: .store(.old, digest: seed.digest)),
            ],
            saysAfter: [isComplete],
            openFiles: ["plain", "plain-wal", "plain-shm", "plain-journal"]
        )
    }

    /// `sealdb exec`: one transaction.
    private static func transaction(_ shape: Seed.Shape, in directory: String) throws -> Operation {
        let seed = try Seed(shape, key: .old, in: directory)
        let sql = "UPDATE people SET name = 'x' || id WHERE id % 3 = 0; INSERT INTO people VALUES (99, 'a', 'b')"
        let digest = try seed.digest(after: sql, key: .old, in: directory)
        return Operation(
            name: "exec",
            variant: shape.rawValue,
            arguments: [Program.sealdb, "exec", "db", sql, "--key-file", TestKey.old.file],
            files: seed.files.adding(TestKey.files),
            targets: [
                .init(file: "db", before: .store(.old, digest: seed.digest), after: .store(.old, digest: digest))
            ],
            // As of any transaction: after an I/O error in its end SQLite knows no more.
            failure: .either
        )
    }

    /// A service that commits through a queue.
    private static func load(_ shape: Seed.Shape, in directory: String) throws -> Operation {
        let seed = try Seed(shape, key: .old, in: directory)
        let batches = 8
        let state = Operation.State.store(.old, digest: seed.digest)
        return Operation(
            name: "commit",
            variant: shape.rawValue,
            arguments: [Program.subject, "commit", "db", "--key-file", TestKey.old.file]
                + ["--journal-mode", shape.rawValue, "--batches", "\(batches)"],
            files: seed.files.adding(TestKey.files),
            targets: [.init(file: "db", before: state, after: state)],
            failure: .either,
            load: .init(batches: batches)
        )
    }

    /// A service that gives its store a new key while it commits.
    private static func rotationUnderLoad(_ shape: Seed.Shape, in directory: String) throws -> Operation {
        let seed = try Seed(shape, key: .old, in: directory)
        let batches = 4
        return Operation(
            name: "commit-rotate",
            variant: shape.rawValue,
            arguments: [Program.subject, "commit", "db"] + keyOptions(.old, .new)
                + ["--journal-mode", shape.rawValue, "--batches", "\(batches)", "--rotate-before", "3"],
            files: seed.files.adding(TestKey.files),
            unsynced: [TestKey.new.file],
            targets: [
                .init(file: "db", before: .store(.old, digest: seed.digest), after: .store(.new, digest: seed.digest))
            ],
            failure: .either,
            load: .init(batches: batches)
        )
    }

    /// `sealdb backup`: a copy under a key of its own, while the store stays in use.
    private static func backup(
        _ shape: Seed.Shape,
        under key: TestKey,
        in directory: String
    ) throws -> Operation {
        let seed = try Seed(shape, key: .old, in: directory)
        let store = Operation.State.store(.old, digest: seed.digest)
        let keys = key == .old ? ["--key-file", TestKey.old.file] : keyOptions(.old, key)
        return Operation(
            name: "backup",
            variant: shape.rawValue + (key == .old ? "-same-key" : ""),
            arguments: [Program.sealdb, "backup", "db", "copy"] + keys,
            files: seed.files.adding(TestKey.files),
            unsynced: key == .old ? [] : [TestKey.new.file],
            targets: [
                .init(file: "db", before: store, after: store),
                .init(file: "copy", before: .absent, after: .store(key, digest: seed.digest)),
            ],
            saysAfter: [isComplete],
            temporaries: [".copy.sealdb-"],
            leavesStore: false
        )
    }

    /// `sealdb restore`: a backup under a name that is free.
    private static func restoration(in directory: String) throws -> Operation {
        let backup = try Seed(.delete, key: .new, name: "copy", in: directory)
        let copy = Operation.State.store(.new, digest: backup.digest)
        return Operation(
            name: "restore",
            variant: "absent",
            arguments: [Program.sealdb, "restore", "copy", "db", "--key-file", TestKey.new.file],
            files: backup.files.adding(TestKey.files),
            unsynced: [TestKey.new.file],
            targets: [
                .init(file: "copy", before: copy, after: copy),
                .init(file: "db", before: .absent, after: copy),
            ],
            saysAfter: [isComplete]
        )
    }

    /// `sealdb restore --replace`: a backup in the place of a store under another key, which is kept.
    private static func restoration(over shape: Seed.Shape, in directory: String) throws -> Operation {
        let seed = try Seed(shape, key: .old, in: directory)
        let backup = try Seed(.delete, key: .new, name: "copy", rows: 30, in: directory)
        let copy = Operation.State.store(.new, digest: backup.digest)
        return Operation(
            name: "restore",
            variant: shape.rawValue,
            arguments: [Program.sealdb, "restore", "copy", "db", "--replace", "--key-file", TestKey.new.file],
            files: seed.files.adding(backup.files).adding(TestKey.files),
            unsynced: [TestKey.new.file],
            targets: [
                .init(file: "copy", before: copy, after: copy),
                .init(file: "db", before: .store(.old, digest: seed.digest), after: copy),
            ],
            saysAfter: ["The store now has the new contents and key"],
            keeps: .init(prefix: "db.replaced-", state: .store(.old, digest: seed.digest), mayBeAlone: shape.isHot)
        )
    }

    /// `sealdb migrate`: a store of SQLCipher 3 to SQLCipher 4's format.
    private static func migration(_ shape: Seed.Shape, in directory: String) throws -> Operation {
        let pragmas = ["cipher_compatibility = 3"]
        let seed = try Seed(shape, key: .old, pragmas: pragmas, in: directory)
        return Operation(
            name: "migrate",
            variant: shape.rawValue,
            arguments: [Program.sealdb, "migrate", "db", "--key-file", TestKey.old.file],
            files: seed.files.adding(TestKey.files),
            targets: [
                .init(
                    file: "db",
                    before: .store(.old, settings: pragmas, digest: seed.digest),
                    after: .store(.old, digest: seed.digest)
                )
            ],
            saysAfter: ["The store now has the new contents and key", "The store has the new settings"]
        )
    }

    /// `sealdb decrypt`: into a plaintext database, because the user says so.
    private static func decryption(in directory: String) throws -> Operation {
        let seed = try Seed(.delete, key: .old, in: directory)
        let store = Operation.State.store(.old, digest: seed.digest)
        return Operation(
            name: "decrypt",
            variant: "delete",
            arguments: [Program.sealdb, "decrypt", "db", "plain", "--allow-plaintext", "--key-file", TestKey.old.file],
            files: seed.files.adding(TestKey.files),
            targets: [
                .init(file: "db", before: store, after: store),
                .init(file: "plain", before: .absent, after: .store(nil, digest: seed.digest)),
            ],
            saysAfter: [isComplete],
            openFiles: ["plain"],
            temporaries: [".plain.sealdb-"],
            leavesStore: false
        )
    }

    /// `sealdb create`: an empty store.
    private static func creation() -> Operation {
        Operation(
            name: "create",
            variant: "delete",
            arguments: [Program.sealdb, "create", "db", "--key-file", TestKey.old.file],
            files: TestKey.files,
            unsynced: [TestKey.old.file],
            targets: [.init(file: "db", before: .absent, after: .store(.old, digest: emptyDigest))],
            saysAfter: [isComplete]
        )
    }

    /// `sealdb keygen`: a new key.
    private static func keyGeneration() -> Operation {
        Operation(
            name: "keygen",
            variant: "file",
            arguments: [Program.sealdb, "keygen", "made.key"],
            files: [:],
            targets: [.init(file: "made.key", before: .absent, after: .keyFile)],
            saysAfter: [isComplete],
            openFiles: ["made.key"],
            temporaries: [".made.key.sealdb-"],
            leavesStore: false
        )
    }

    /// What is said of a new file whose directory could not be synced.
    static let isComplete = "is complete, but"

    private static func keyOptions(_ old: TestKey, _ new: TestKey) -> [String] {
        ["--key-file", old.file, "--new-key-file", new.file]
    }

    /// Of a database without tables.
    static var emptyDigest: UInt64 {
        var hash = Hash()
        hash.add("0")
        hash.add("0")
        return hash.value
    }
}

extension [String: Files.Bytes] {
    fileprivate func adding(_ others: Self) -> Self { merging(others) { first, _ in first } }
}
