import ArgumentParser
import SealedDB

struct EncryptCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "encrypt",
        abstract: "Copy a plaintext SQLite database into a new encrypted store.",
        discussion: """
            The plaintext database stays as it is; removing it is up to you. The store must not exist yet (exit 73). \
            A file that is not a plaintext SQLite database is refused (exit 65).

              sealdb encrypt old.sqlite app.db --key-file app.key
            """
    )

    @Argument(help: "The plaintext database.", completion: .file())
    var plain: String

    @Argument(help: "The store to make.", completion: .file())
    var store: String

    @OptionGroup(title: "Key")
    var keyOptions: KeyOptions

    @OptionGroup(title: "Configuration")
    var configurationOptions: ConfigurationOptions

    @OptionGroup(title: "Cipher settings; whatever is given here must be given at every use of the store")
    var cipherOptions: CipherOptions

    @OptionGroup
    var progressOptions: ProgressOptions

    @OptionGroup(title: "Output")
    var reportOptions: ReportOptions

    func validate() throws {
        try keyOptions.choice.validate(isRequired: true)
    }

    func run() throws {
        let plain = try Store.literalPath(plain)
        let path = try Store.literalPath(store)
        reportOptions.begin(path)
        try Store.requireAbsent(path)
        let encryption = StoreEncryption(
            plaintextPath: plain,
            path: path,
            key: try keyOptions.keyForNewStore(store),
            cipherSettings: try cipherOptions.settings(of: path)
        )
        let report = try progressOptions.watchingSignals { try encryption.run(progress: $0) }
        StoreRecords.forget(path)
        StoreRecords.note(.key, of: path)
        try reportOptions.report(
            "\(TerminalText.escaped(store)): encrypted \(report.pageCount.counted("page"))\n",
            ["pageCount": report.pageCount]
        )
    }
}
