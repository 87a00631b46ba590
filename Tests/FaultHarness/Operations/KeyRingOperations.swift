/// Changes of a key ring, and a rotation that takes its keys from one.
enum KeyRingOperations {
    static func table(in directory: String) throws -> [Operation] {
        [
            change("add", ["added", "--activate"], to: .ring(active: "added", ids: ["old", "new", "added"])),
            change("activate", ["new"], to: .ring(active: "new", ids: ["old", "new"])),
            change("remove", ["new", "--yes", "--keep", "0"], to: .ring(active: "old", ids: ["old"])),
            change("remove", ["new", "--yes"], as: "retire", to: .ring(active: "old", ids: ["old", "retired:new"])),
            creation(),
            try rotation(in: directory),
        ]
    }

    private static let name = "app.ring"

    /// A ring of the keys `old`, which is active, and `new`.
    private static func contents(active: TestKey) -> Files.Bytes {
        let keys = [TestKey.old, .new].map { "\($0) key \($0.hexadecimal)\n" }
        return Array("sealdb-keyring 1\nactive \(active)\n\(keys.joined())".utf8)
    }

    private static func change(
        _ verb: String,
        _ arguments: [String],
        as variant: String? = nil,
        to after: Operation.State
    ) -> Operation {
        Operation(
            name: "keyring",
            variant: variant ?? verb,
            arguments: [Program.sealdb, "keyring", verb, name] + arguments,
            files: [name: contents(active: .old)],
            targets: [.init(file: name, before: .ring(active: "old", ids: ["old", "new"]), after: after)],
            saysAfter: ["is changed, but after a power failure may be as before"],
            saysUnknown: ["is probably changed"],
            openFiles: [name],
            temporaries: [".\(name).sealdb-"],
            leavesStore: false
        )
    }

    private static func creation() -> Operation {
        Operation(
            name: "keyring",
            variant: "create",
            arguments: [Program.sealdb, "keyring", "create", name, "first"],
            files: [:],
            targets: [.init(file: name, before: .absent, after: .ring(active: "first", ids: ["first"]))],
            saysAfter: [OperationTable.isComplete],
            openFiles: [name],
            temporaries: [".\(name).sealdb-"],
            leavesStore: false
        )
    }

    /// `sealdb rotate --key-ring`: to the active key from whichever the store has.
    private static func rotation(in directory: String) throws -> Operation {
        let seed = try Seed(.wal, key: .old, in: directory)
        return Operation(
            name: "rotate",
            variant: "ring",
            arguments: [Program.sealdb, "rotate", "db", "--key-ring", name],
            files: seed.files.merging([name: contents(active: .new)]) { first, _ in first }
                .merging(TestKey.files) { first, _ in first },
            unsynced: [name],
            targets: [
                .init(file: name, before: .anything, after: .anything),
                .init(file: "db", before: .store(.old, digest: seed.digest), after: .store(.new, digest: seed.digest)),
            ],
            saysAfter: ["The store now has the new contents and key", "The store has the new key"],
            openFiles: [name]
        )
    }
}
