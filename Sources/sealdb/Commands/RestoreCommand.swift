import ArgumentParser
import SealedDB

struct RestoreCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "restore",
        abstract: "Put a backup in a store's place.",
        discussion: """
            Verifies the backup, copies it, verifies the copy, and puts it in the store's place in one step. A store \
            that exists is only replaced with --replace, and then kept beside the new one, with its log and journal, \
            under a name that is printed. A store in use is not touched (exit 75); a damaged backup is refused (exit 65).

              sealdb restore /backups/app-monday.db app.db --key-file app.key --replace
              ssh other cat app.db.backup | sealdb restore - app.db --key-file app.key

            The backup - comes from standard input, and lies in $TMPDIR meanwhile. The key is the backup's, and becomes the store's.
            """
    )

    @Argument(help: "The backup.", completion: .file())
    var backup: String

    @Argument(help: "The store.", completion: .file())
    var store: String

    @Flag(help: "Replace a store that exists, and keep it under another name.")
    var replace = false

    @OptionGroup(title: "Key of the backup")
    var keyOptions: KeyOptions

    @OptionGroup(title: "Configuration")
    var configurationOptions: ConfigurationOptions

    @OptionGroup(title: "Cipher settings of a backup that has other ones than SQLCipher 4's")
    var cipherOptions: CipherOptions

    @OptionGroup
    var forceOptions: ForceOptions

    @OptionGroup
    var progressOptions: ProgressOptions

    @OptionGroup(title: "Output")
    var reportOptions: ReportOptions

    func validate() throws {
        try keyOptions.choice.validate(isRequired: true)
        if PipedFile.isMeant(by: backup), keyOptions.choice.descriptor == 0 {
            throw ValidationError("Standard input cannot give both the key and the backup.")
        }
    }

    func run() throws {
        let path = try Store.literalPath(store)
        reportOptions.begin(path)
        if !replace { try Store.requireAbsent(path) }
        let pipe = PipedFile.isMeant(by: backup) ? PipedFile() : nil
        defer { pipe?.remove() }
        if let pipe {
            // From here on a signal must not leave the file.
            SignalWatch.start()
            try pipe.readInput()
        }
        let backupPath = try pipe?.path ?? Store.literalPath(backup)
        let settings = try cipherOptions.settings(of: backupPath, or: path)
        let report = try keyOptions.withKey(of: backupPath, or: path) { key in
            let restore = StoreRestore(
                backupPath: backupPath,
                key: key,
                cipherSettings: settings,
                to: path,
                replaces: replace,
                ignoresUnseenUsers: forceOptions.force
            )
            let run = { try progressOptions.watchingSignals { try restore.run(progress: $0) } }
            return try pipe?.naming(run) ?? run()
        }
        // The key is the backup's, and as old as that; and the store is not the one that was verified and backed up.
        StoreRecords.forget(path)
        var text = "\(TerminalText.escaped(store)): restored \(report.pageCount.counted("page"))\n"
        if let replaced = report.replacedPath {
            text += "The store that was there is now \(TerminalText.escaped(replaced))\n"
        }
        try reportOptions.report(text, Restored(pageCount: report.pageCount, replacedPath: report.replacedPath))
    }

    /// The members of the JSON object.
    private struct Restored: Encodable, Sendable {
        let pageCount: Int64
        /// Where the store is that was there before.
        let replacedPath: String?
    }
}
