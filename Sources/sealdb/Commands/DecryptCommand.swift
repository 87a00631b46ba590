import ArgumentParser
import SealedDB

struct DecryptCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "decrypt",
        abstract: "Copy a store into a new plaintext SQLite database.",
        discussion: """
            Everybody who can read the new file can read everything in it, and deleting it later does not wipe it from \
            the disk. So --allow-plaintext is needed, or on a terminal the answer "yes". The new file is made with \
            mode 0600, and must not exist yet (exit 73). The store stays as it is, and may be in use.

              sealdb decrypt app.db plain.sqlite --key-file app.key --allow-plaintext
              sealdb decrypt app.db - --key-file app.key --allow-plaintext |
                  age -r "$RECIPIENT" > app.age

            To - goes to standard output. Then nothing is written to the disk, and the memory has to hold the database \
            twice.
            """
    )

    @Argument(help: "The store.", completion: .file())
    var store: String

    @Argument(help: "The plaintext database to make.", completion: .file())
    var plain: String

    @Flag(help: "Write everything to disk unencrypted, without asking.")
    var allowPlaintext = false

    @OptionGroup(title: "Key")
    var keyOptions: KeyOptions

    @OptionGroup(title: "Configuration")
    var configurationOptions: ConfigurationOptions

    @OptionGroup(title: "Cipher settings of a store that has other ones than SQLCipher 4's")
    var cipherOptions: CipherOptions

    @OptionGroup
    var progressOptions: ProgressOptions

    @OptionGroup(title: "Output")
    var reportOptions: ReportOptions

    func validate() throws {
        if PipedFile.isMeant(by: plain) { try reportOptions.requireNoJSON() }
        try keyOptions.choice.validate(isRequired: true)
    }

    func run() throws {
        let path = try Store.literalPath(store)
        if PipedFile.isMeant(by: plain) { return try writeOutput(path) }
        reportOptions.begin(path)
        let plain = try Store.literalPath(plain)
        try Store.requireAbsent(plain)
        if !allowPlaintext { try confirm() }
        let settings = try cipherOptions.settings(of: path)
        let report = try keyOptions.withKey(of: store) { key in
            let decryption = StoreDecryption(path: path, key: key, cipherSettings: settings, plaintextPath: plain)
            return try progressOptions.watchingSignals { try decryption.run(progress: $0) }
        }
        let name = TerminalText.escaped(self.plain)
        try reportOptions.report(
            "\(name): \(report.pageCount.counted("page")) in plaintext\(settings.remarkOnAuthentication)\n",
            Copy(plaintextPath: StoreItem.identity(of: plain), pageCount: report.pageCount)
        )
    }

    private func writeOutput(_ path: String) throws {
        try PipedFile.requireNoTerminal()
        if !allowPlaintext { try confirm() }
        let settings = try cipherOptions.settings(of: path)
        let database = try keyOptions.withKey(of: store) {
            try Store.openWhole(path, key: $0, settings: settings, lockWait: 2, looks: true)
        }
        defer { database.close() }
        let image = try database.plaintextSerialized()
        try database.requireStill()
        let output = ResultOutput()
        try image.withUnsafeBytes { try output.write($0) }
        try output.flush()
    }

    /// The members of the JSON object.
    private struct Copy: Encodable, Sendable {
        let plaintextPath: String
        let pageCount: Int64
    }

    private func confirm() throws {
        let names = "\(TerminalText.escaped(store)) to \(TerminalText.escaped(plain))"
        guard try Confirmation.ask("Write all of \(names) unencrypted? [yes/no] ") else {
            throw Failure(
                .usage,
                "Not confirmed, or there is no terminal to ask on: give --allow-plaintext. Nothing was done."
            )
        }
    }
}
