import ArgumentParser
import SealedDB

struct RotateCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "rotate",
        abstract: "Change a store's key: copy, verify, swap.",
        discussion: """
            Writes a copy under the new key beside the store, verifies it, and puts it in the store's place in one \
            step. Until then the store is whole under the old key, whatever fails, and nothing needs to be cleaned \
            up. It needs as much free space as the store is large. A store in use is not touched (exit 75).

              sealdb rotate app.db --key-file app.key --new-key-file new.key

            With a key ring the new key is its active one, unless another is given; a store that has it already is left \
            alone.

              sealdb rotate app.db --key-ring app.ring

            Copies made earlier, such as backups, still open with the old key.
            """
    )

    @Argument(help: "The store.", completion: .file())
    var store: String

    @OptionGroup(title: "Key")
    var keyOptions: KeyOptions

    @OptionGroup(title: "New key")
    var newKeyOptions: NewKeyOptions

    @OptionGroup(title: "Cipher settings of a store that has other ones than SQLCipher 4's, and keeps them")
    var cipherOptions: CipherOptions

    @Flag(name: .shortAndLong, help: "Check keys, locks, space and permissions, tell the plan, and write nothing.")
    var dryRun = false

    @Flag(help: "Print one JSON object.")
    var json = false

    @OptionGroup
    var lockOptions: LockOptions

    @OptionGroup
    var progressOptions: ProgressOptions

    func validate() throws {
        try keyOptions.choice.validate(isRequired: true)
        let old = keyOptions.choice
        let new = newKeyOptions.choice
        try new.validate(isRequired: !old.isRing)
        if let descriptor = old.descriptor, descriptor == new.descriptor {
            throw ValidationError("\(old.given[0].name) and \(new.given[0].name) name the same descriptor.")
        }
    }

    func run() throws {
        let path = try Store.literalPath(store)
        let settings = try cipherOptions.settings
        var newKey: Key?
        try keyOptions.withKey(of: store) { key, fromRing in
            let target = try newKey ?? self.newKey(fromRing?.ring)
            newKey = target
            if key == target {
                try printCurrent(path, key: key, fromRing?.id)
            } else {
                let rotation = KeyRotation(
                    path: path,
                    from: key,
                    to: target,
                    cipherSettings: settings,
                    busyTimeout: lockOptions.lockWait
                )
                try rotate(rotation)
            }
        }
    }

    private func newKey(_ ring: KeyRing?) throws -> Key {
        if !newKeyOptions.choice.isGiven, let ring { return try ring.activeKey() }
        return try newKeyOptions.key(of: store)
    }

    private func rotate(_ rotation: KeyRotation) throws {
        if dryRun {
            try printPlan(try rotation.plan())
        } else {
            try printReport(try progressOptions.watchingSignals { try rotation.run(progress: $0) })
        }
    }

    /// For a store that has the active key of its ring already, once it is certain that it has.
    private func printCurrent(_ path: String, key: Key, _ id: String?) throws {
        guard let id, !newKeyOptions.choice.isGiven else {
            throw Failure(.usage, "The new key is the old one. The store is unchanged.")
        }
        try Store.openReadOnly(path, key: key, lockWait: lockOptions.lockWait).close()
        let output = StandardOutput()
        if json {
            try output.writeJSON(Result(status: "current", content: ["path": path]))
        } else {
            try output.write("\(TerminalText.escaped(store)): has the active key \(id) already; nothing was changed\n")
        }
        try output.flush()
    }

    private func printPlan(_ plan: KeyRotation.Plan) throws {
        let output = StandardOutput()
        if json {
            try output.writeJSON(Result(status: "planned", content: plan))
        } else {
            try output.write(
                FieldList([
                    ("store", plan.path),
                    ("size", "\(ByteText.size(plan.fileSize)), \(plan.pageCount) pages of \(plan.pageSize) bytes"),
                    ("journal mode", plan.journalMode),
                    ("free space", "\(ByteText.size(plan.freeSpace)), needed \(ByteText.size(plan.neededSpace))"),
                    ("result", "the key can be changed; nothing was written"),
                ]).text
            )
        }
        try output.flush()
    }

    private func printReport(_ report: KeyRotation.Report) throws {
        let output = StandardOutput()
        if json {
            try output.writeJSON(Result(status: "done", content: report))
        } else {
            let seconds = (report.seconds * 100).rounded() / 100
            try output.write(
                "\(TerminalText.escaped(store)): key changed, \(report.pageCount) pages in \(seconds) s\n"
            )
        }
        try output.flush()
    }

    /// One object: the status beside the content's own members.
    private struct Result<Content: Encodable>: Encodable {
        let status: String
        let content: Content

        private enum Names: String, CodingKey { case status }

        func encode(to encoder: any Encoder) throws {
            try content.encode(to: encoder)
            var container = encoder.container(keyedBy: Names.self)
            try container.encode(status, forKey: .status)
        }
    }
}
