import ArgumentParser
import SealedDB

struct BackupCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "backup",
        abstract: "Make an encrypted copy of a store while it is in use.",
        discussion: """
            The copy is that of one moment, verified page by page, and an ordinary store: under the same key, or under \
            one of its own. A file that exists is never overwritten (exit 73). In WAL mode nobody notices; in the other \
            journal modes writers wait until it is done.

              sealdb backup app.db /backups/app-monday.db --key-file app.key

            After the key of the store is changed, its backups still open with the old one.
            """
    )

    @Argument(help: "The store.", completion: .file())
    var store: String

    @Argument(help: "The backup to make.", completion: .file())
    var backup: String

    @OptionGroup(title: "Key")
    var keyOptions: KeyOptions

    @OptionGroup(title: "Key of the backup; without any of these the store's own")
    var newKeyOptions: NewKeyOptions

    @OptionGroup(title: "Cipher settings of a store that has other ones than SQLCipher 4's, and so will the backup")
    var cipherOptions: CipherOptions

    @OptionGroup
    var lockOptions: LockOptions

    @OptionGroup
    var progressOptions: ProgressOptions

    func validate() throws {
        try keyOptions.choice.validate(isRequired: true)
        try newKeyOptions.choice.validate(isRequired: false)
    }

    func run() throws {
        let path = try Store.literalPath(store)
        let backupPath = try Store.literalPath(backup)
        try Store.requireAbsent(backupPath)
        let settings = try cipherOptions.settings
        let backupKey = newKeyOptions.choice.isGiven ? try newKeyOptions.key(of: backup) : nil
        let report = try keyOptions.withKey(of: store) { key in
            let copy = StoreBackup(
                path: path,
                key: key,
                cipherSettings: settings,
                to: backupPath,
                backupKey: backupKey,
                busyTimeout: lockOptions.lockWait
            )
            return try progressOptions.watchingSignals { try copy.run(progress: $0) }
        }
        let output = StandardOutput()
        try output.write("\(TerminalText.escaped(backup)): backup of \(report.pageCount) pages\n")
        try output.flush()
    }
}
