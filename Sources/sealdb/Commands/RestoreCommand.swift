import ArgumentParser
import SealedDB

struct RestoreCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "restore",
        abstract: "Put a backup, or a moment of a repository, in a store's place.",
        discussion: """
            Verifies the backup, copies it, verifies the copy, and puts it in the store's place in one step. A store \
            that exists is only replaced with --replace, and then kept beside the new one, with its log and journal, \
            under a name that is printed. A store in use is not touched (exit 75); a damaged backup is refused (exit 65).

              sealdb restore /backups/app-monday.db app.db --key-file app.key --replace
              ssh other cat app.db.backup | sealdb restore - app.db --key-file app.key

            The backup - comes from standard input, and lies in $TMPDIR meanwhile. The key is the backup's, and becomes the store's.

            With --from, a store is put together from a repository of "sealdb replicate", as it was after the last commit \
            that was shipped, or at another moment. That needs no key: digests, checksums and sizes are checked, and then the \
            file takes its name by the same rules. If something is missing or damaged (exit 65), the latest moment before it \
            that can be had is named. The store opens with the key that it had then.

              sealdb restore --from /mnt/backup/app app.db
              sealdb restore --from /mnt/backup/app app.db --at 2026-11-25T18:04:00Z
              sealdb restore --from /mnt/backup/app app.db --generation 3 --replace
              sealdb restore --from s3://backups/app app.db
            """
    )

    @Argument(help: "The backup; with --from, the store.", completion: .file())
    var backup: String

    @Argument(help: ArgumentHelp("The store; not with --from.", valueName: "store"), completion: .file())
    var givenStore: String?

    @OptionGroup(title: "Repository")
    var repositoryOptions: RepositoryOptions

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
        let option = keyOptions.choice.given.first?.name
        try repositoryOptions.validate(
            hasTwo: givenStore != nil,
            hasKey: option.flatMap { $0.begins(with: "--") ? $0 : nil }
        )
        guard repositoryOptions.from == nil else { return }
        try keyOptions.choice.validate(isRequired: true)
        if PipedFile.isMeant(by: backup), keyOptions.choice.descriptor == 0 {
            throw ValidationError("Standard input cannot give both the key and the backup.")
        }
    }

    private var store: String { givenStore ?? backup }

    func run() throws {
        let path = try Store.literalPath(store)
        reportOptions.begin(path)
        if !replace { try Store.requireAbsent(path) }
        if let repository = repositoryOptions.from {
            try repositoryOptions.restore(
                repository,
                to: path,
                replaces: replace,
                forceOptions,
                progressOptions,
                reportOptions
            )
            // The store is not the one that was verified and backed up.
            return StoreRecords.forget(path)
        }
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
            var restore = StoreRestore(
                backupPath: backupPath,
                key: key,
                cipherSettings: settings,
                to: path,
                replaces: replace,
                ignoresUnseenUsers: forceOptions.force
            )
            restore.endsWithPages = pipe != nil
            let run = { [restore] in try progressOptions.watchingSignals { try restore.run(progress: $0) } }
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
