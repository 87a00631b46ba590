import ArgumentParser
import SealedDB

struct MigrateCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "migrate",
        abstract: "Bring a store to SQLCipher 4's format, or to other cipher settings.",
        discussion: """
            What the store has now is found out by itself, for SQLCipher 2 and 3 and for other settings; a plaintext \
            header must be given. Formats without page authentication, such as SQLCipher 1, are tried only with \
            --allow-unauthenticated: whoever could write the file, also without the key, can have made one of them of it, \
            with pages exchanged, and the new store would vouch for that. Writes a copy beside the store, compares everything in it with the store, and puts it \
            in the store's place in one step, as "sealdb rotate" does. The key stays. A store that is as it is to be is \
            left alone (exit 0).

              sealdb migrate old.db --passphrase-file app.pass
              sealdb migrate app.db --key-file app.key --new-page-size 8192
              sealdb migrate --from-file stores --key-template key-file:{dir}/{stem}.key \\
                  --continue-on-error

            Other settings than SQLCipher 4's own must be given at every use of the store.
            """
    )

    @OptionGroup
    var list: StoreListOptions

    @OptionGroup(title: "Key")
    var keyOptions: KeyOptions

    @OptionGroup(title: "Configuration")
    var configurationOptions: ConfigurationOptions

    @OptionGroup(title: "Key")
    var keyTable: KeyTableOptions

    @OptionGroup(title: "Cipher settings that the store has; without any of these they are found out")
    var cipherOptions: CipherOptions

    @OptionGroup
    var unauthenticatedOptions: UnauthenticatedOptions

    @OptionGroup(title: "Cipher settings that it is to have; without any of these SQLCipher 4's")
    var newCipherOptions: NewCipherOptions

    @Flag(
        name: [.customShort("n"), .long],
        help: "Check key, locks, space and permissions, tell the plan, and write nothing."
    )
    var dryRun = false

    @OptionGroup
    var batchOptions: BatchOptions

    @OptionGroup
    var lockOptions: LockOptions

    @OptionGroup
    var forceOptions: ForceOptions

    @OptionGroup
    var progressOptions: ProgressOptions

    @OptionGroup(title: "Output")
    var reportOptions: ReportOptions

    func validate() throws {
        try keyTable.validate(with: keyOptions.choice)
    }

    func run() throws {
        reportOptions.begin()
        let map = try keyTable.map()
        let stores = try list.items(or: map?.entries.map(\.path) ?? [])
        if list.isSingle { reportOptions.begin(stores[0].path) }
        let keys = try keyTable.assignment(keyOptions.choice, map, stores)
        let migration = Migration(
            ciphers: try cipherOptions.assignment(),
            allowsUnauthenticated: unauthenticatedOptions.allowUnauthenticated,
            new: newCipherOptions.settings,
            isDryRun: dryRun,
            lockWait: lockOptions.lockWait,
            ignoresUnseenUsers: forceOptions.force
        )
        let work = StoreWork(
            isSingle: list.isSingle,
            batchOptions: batchOptions,
            progressOptions: progressOptions,
            reportOptions: reportOptions,
            doneText: dryRun ? "can be migrated" : "migrated"
        ) { store, progress in
            try keys.withKey(of: store) { key, _ in try migration.run(store, key, progress) }
        }
        try work.run(stores)
    }

    /// The members of the JSON object.
    private struct Settings: Encodable, Sendable {
        let from: CipherSettings
        let to: CipherSettings
        var pageCount: Int64?
    }

    private struct Migration: Sendable {
        /// What is known of the settings that the stores have.
        let ciphers: CipherAssignment
        let allowsUnauthenticated: Bool
        let new: CipherSettings
        let isDryRun: Bool
        let lockWait: Double
        let ignoresUnseenUsers: Bool

        func run(
            _ store: StoreItem,
            _ key: Key,
            _ progress: @escaping (KeyRotation.Progress) throws -> Void
        ) throws -> StoreReport {
            let old = try ciphers.knownSettings(of: store) ?? found(store, key: key)
            let name = TerminalText.escaped(store.name)
            if old.isSame(as: new) {
                // The settings alone do not prove it, so the store is opened with them.
                _ = try StoreInfo.inspect(path: store.path, key: key, cipherSettings: old)
                let line =
                    "\(name): has these settings already (\(new)); nothing was changed"
                    + TerminalText.escaped(ciphers.remark(onNew: new, of: store))
                return StoreReport(text: .lines([line]), isUnchanged: true)
            }
            let migration = StoreMigration(
                path: store.path,
                key: key,
                from: old,
                to: new,
                busyTimeout: .seconds(lockWait),
                ignoresUnseenUsers: ignoresUnseenUsers
            )
            if isDryRun {
                let size = ByteText.size(try migration.plan().fileSize)
                return StoreReport(
                    text: .lines(["\(name): from \(old) to \(new), \(size); nothing was written"]),
                    content: Settings(from: old, to: new),
                    isPlan: true
                )
            }
            let report = try migration.run(progress: progress)
            return StoreReport(
                text: .lines([
                    "\(name): migrated from \(old) to \(new), \(report.pageCount.counted("page"))\(old.remarkOnAuthentication)"
                        + TerminalText.escaped(ciphers.remark(onNew: new, of: store))
                ]),
                content: Settings(from: old, to: new, pageCount: report.pageCount)
            )
        }

        /// Those of the configuration are tried first.
        private func found(_ store: StoreItem, key: Key) throws -> CipherSettings {
            let expected = ciphers.settings(of: store)
            return try StoreDiagnosis.examine(
                path: store.path,
                key: key,
                cipherSettings: expected.isAuthenticated ? expected : CipherSettings(),
                allowsUnauthenticated: allowsUnauthenticated
            ).settingsOfSoundStore()
        }
    }
}
