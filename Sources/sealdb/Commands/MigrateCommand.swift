import ArgumentParser
import SealedDB

struct MigrateCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "migrate",
        abstract: "Bring a store to SQLCipher 4's format, or to other cipher settings.",
        discussion: """
            What the store has now is found out by itself, for SQLCipher 1, 2 and 3 and for other settings; a plaintext \
            header must be given. Writes a copy beside the store, compares everything in it with the store, and puts it \
            in the store's place in one step, as "sealdb rotate" does. The key stays. A store that is as it is to be is \
            left alone (exit 0).

              sealdb migrate old.db --passphrase-file app.pass
              sealdb migrate app.db --key-file app.key --new-page-size 8192

            Other settings than SQLCipher 4's own must be given at every use of the store.
            """
    )

    @Argument(help: "The store.", completion: .file())
    var store: String

    @OptionGroup(title: "Key")
    var keyOptions: KeyOptions

    @OptionGroup(title: "Cipher settings that the store has; without any of these they are found out")
    var cipherOptions: CipherOptions

    @OptionGroup(title: "Cipher settings that it is to have; without any of these SQLCipher 4's")
    var newCipherOptions: NewCipherOptions

    @Flag(name: .shortAndLong, help: "Check key, locks, space and permissions, tell the plan, and write nothing.")
    var dryRun = false

    @OptionGroup
    var lockOptions: LockOptions

    @OptionGroup
    var progressOptions: ProgressOptions

    func validate() throws {
        try keyOptions.choice.validate(isRequired: true)
    }

    func run() throws {
        try keyOptions.withKey(of: store) { key in try migrate(Store.literalPath(store), key: key) }
    }

    private func migrate(_ path: String, key: Key) throws {
        let old = try cipherOptions.givenSettings ?? found(path, key: key)
        let new = newCipherOptions.settings
        let output = StandardOutput()
        let name = TerminalText.escaped(store)
        if old.isSame(as: new) {
            // Not believed, but tried.
            try Store.openReadOnly(path, key: key, settings: old, lockWait: lockOptions.lockWait).close()
            try output.write("\(name): has these settings already (\(new)); nothing was changed\n")
            return try output.flush()
        }
        let migration = StoreMigration(path: path, key: key, from: old, to: new, busyTimeout: lockOptions.lockWait)
        if dryRun {
            let plan = try migration.plan()
            try output.write("\(name): from \(old) to \(new), \(ByteText.size(plan.fileSize)); nothing was written\n")
        } else {
            let report = try progressOptions.watchingSignals { try migration.run(progress: $0) }
            try output.write("\(name): migrated from \(old) to \(new), \(report.pageCount) pages\n")
        }
        try output.flush()
    }

    private func found(_ path: String, key: Key) throws -> CipherSettings {
        let diagnosis = try StoreDiagnosis.examine(path: path, key: key)
        guard let settings = diagnosis.cipherSettings, diagnosis.damagedPages.isEmpty else {
            throw diagnosis.error
        }
        return settings
    }
}
