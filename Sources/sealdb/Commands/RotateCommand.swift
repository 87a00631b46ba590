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
        try newKeyOptions.choice.validate(isRequired: true)
        if let descriptor = keyOptions.passphraseFd, descriptor == newKeyOptions.newPassphraseFd {
            throw ValidationError("--passphrase-fd and --new-passphrase-fd name the same descriptor.")
        }
    }

    func run() throws {
        let path = try Store.literalPath(store)
        let key = try keyOptions.key(of: store)
        let newKey = try newKeyOptions.key(of: store)
        if key == newKey { throw Failure(.usage, "The new key is the old one. The store is unchanged.") }
        let rotation = KeyRotation(
            path: path,
            from: key,
            to: newKey,
            cipherSettings: try cipherOptions.settings,
            busyTimeout: lockOptions.lockWait
        )
        if dryRun {
            try printPlan(try rotation.plan())
        } else {
            try printReport(try progressOptions.watchingSignals { try rotation.run(progress: $0) })
        }
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
