import ArgumentParser
import Foundation
import SealedDB

struct BackupCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "backup",
        abstract: "Make encrypted copies of stores while they are in use.",
        discussion: """
            The copy is that of one moment, verified page by page, and an ordinary store: under the same key, or under \
            one of its own. A file that exists is never overwritten (exit 73). In WAL mode (SQLite's write-ahead \
            log) nobody notices; in the other journal modes writers wait until it is done.

              sealdb backup app.db /backups/app-monday.db --key-file app.key
              sealdb backup *.db --into /backups/monday --key-file app.key --jobs 2
              sealdb backup app.db - --key-file app.key | ssh other 'cat > app.db.backup'

            With --keep-… the backups in the directory have date and time (UTC) in their names, and those that no rule keeps \
            are removed, after the new one is verified. The rules are those of restic: --keep-daily 7 keeps the last backup \
            of each of the last 7 days that have one (and, while there are fewer, the oldest), and a backup stays as long as one rule keeps it. Before others are \
            removed, the pages of those that stay are verified, and the structure and the indexes of the new one: if something is \
            wrong there, none is removed (exit 2).

            Only what such a run has made of this store is ever removed, as its list .app.db.sealdb-backups in the directory \
            tells, and only if it is unchanged, not in use, and opens with the key at hand. All else with the name of a \
            backup stays, does not count, and is told: also backups under a former key, and those that are later than the \
            clock. Remove these by hand. If the new backup has less than a tenth of the pages of one before it, none is \
            removed (exit 2), until you say once that it may: --allow-smaller.

              sealdb backup app.db --into /backups --key-file app.key --keep-daily 7
              sealdb backup *.db --into /backups --key-file app.key \\
                  --keep-last 3 --keep-weekly 4 --keep-yearly 10 --dry-run
              sealdb restore /backups/app.db.2026-11-24T03.55.04Z app.db \\
                  --key-file app.key --replace

            A name in a directory belongs to one store of one machine, as that list says. Another store of that \
            name is refused (exit 73), and so is a second run at the same time (exit 75).

            A backup to - goes to standard output, once it is complete and verified; until then it lies in $TMPDIR, \
            encrypted.

            After the key of the store is changed, its backups still open with the old one. The backup of a store with key \
            slots takes its slots along, in files beside it, unless it gets a key of its own.
            """
    )

    @OptionGroup
    var list: StoreListOptions

    @Option(
        help: ArgumentHelp(
            "Directory for the backups, which have the names of their stores. Without it: two arguments, store and backup.",
            valueName: "directory"
        ),
        completion: .directory
    )
    var into: String?

    @OptionGroup(title: "Dated backups")
    var retentionOptions: RetentionOptions

    @OptionGroup(title: "Key")
    var keyOptions: KeyOptions

    @OptionGroup(title: "Configuration")
    var configurationOptions: ConfigurationOptions

    @OptionGroup(title: "Key")
    var keyTable: KeyTableOptions

    @OptionGroup(title: "Key of the backup; without any of these the store's own")
    var newKeyOptions: NewKeyOptions

    @OptionGroup(title: "Cipher settings of a store that has other ones than SQLCipher 4's, and so will the backup")
    var cipherOptions: CipherOptions

    @OptionGroup
    var batchOptions: BatchOptions

    @OptionGroup
    var lockOptions: LockOptions

    @OptionGroup
    var progressOptions: ProgressOptions

    @OptionGroup(title: "Output")
    var reportOptions: ReportOptions

    func validate() throws {
        try keyTable.validate(with: keyOptions.choice)
        try newKeyOptions.choice.validate(isRequired: false)
        try retentionOptions.validate(into: into)
        guard into == nil else { return }
        guard list.stores.count == 2, list.fromFile == nil, list.fromFileWithNULs == nil else {
            throw ValidationError("Give a store and its backup, or stores and --into.")
        }
        if PipedFile.isMeant(by: list.stores[1]) { try reportOptions.requireNoJSON() }
    }

    func run() throws {
        reportOptions.begin()
        let map = try keyTable.map()
        var list = list
        var target: String?
        var pipe: PipedFile?
        if into == nil {
            let name = list.stores.removeLast()
            if PipedFile.isMeant(by: name) {
                try PipedFile.requireNoTerminal()
                pipe = PipedFile()
            }
            target = try pipe?.path ?? Store.literalPath(name)
        }
        let stores = try list.items(or: map?.entries.map(\.path) ?? [])
        if list.isSingle { reportOptions.begin(stores[0].path) }
        if let target { try Store.requireAbsent(target) }
        let paths = try backupPaths(stores, target)
        let keys = try keyTable.assignment(keyOptions.choice, map, stores)
        let piped = pipe
        let whose = piped != nil ? "the backup" : target.map { TerminalText.escaped($0) } ?? "the backups"
        let backupKey =
            newKeyOptions.choice.isGiven
            ? try newKeyOptions.choice.key(prompt: "New passphrase of \(whose): ", confirm: true) : nil
        let ciphers = try cipherOptions.assignment()
        let directory = into
        let work = StoreWork(
            isSingle: list.isSingle,
            batchOptions: batchOptions,
            progressOptions: progressOptions,
            reportOptions: reportOptions,
            doneText: "backed up"
        ) {
            [lockWait = lockOptions.lockWait, policy = retentionOptions.policy, retentionOptions]
            store,
            progress in
            if let policy, let directory {
                return try DatedBackup(
                    store: store,
                    directory: directory,
                    policy: policy,
                    mayBeSmaller: retentionOptions.allowSmaller,
                    keys: keys,
                    backupKey: backupKey,
                    settings: ciphers.settings(of: store),
                    lockWait: lockWait
                ).report(isPlan: retentionOptions.dryRun, progress)
            }
            if piped != nil, backupKey == nil, KeySlots.exist(beside: store.path) {
                throw Failure(
                    .usage,
                    "\(store.name) has key slots, which a pipe does not take along: give the backup a key of its own. "
                        + "Nothing was done."
                )
            }
            let path = paths[ExactText(store.identity)]!
            let settings = ciphers.settings(of: store)
            // Without it, no backup is recorded, and one is due.
            let mark = try? StoreMark(path: store.path)
            let report = try keys.withKey(of: store) { key, _ in
                try piped?.prepare()
                let copy = StoreBackup(
                    path: store.path,
                    key: key,
                    cipherSettings: settings,
                    to: path,
                    backupKey: backupKey,
                    busyTimeout: .seconds(lockWait)
                )
                let (report, doubt) = try copy.runWithDoubt(progress: progress)
                if let doubt { store.warn(of: doubt) }
                return report
            }
            // Whether it arrived at the other end of a pipe, nobody knows here.
            if piped != nil { return StoreReport(text: .lines([])) }
            StoreRecords.note(.backup, of: store.path, .init(mark, backupPath: path))
            let name = TerminalText.escaped(path)
            let remark = settings.remarkOnAuthentication
            return StoreReport(
                text: .lines(["\(name): backup of \(report.pageCount.counted("page"))\(remark)"]),
                content: BackupContent(backupPath: StoreItem.identity(of: path), pageCount: report.pageCount)
            )
        }
        defer { pipe?.remove() }
        try work.run(stores)
        try pipe?.writeOutput()
    }

    /// The path of the backup of each store, by the identity of the store.
    private func backupPaths(_ stores: [StoreItem], _ target: String?) throws(Failure) -> [ExactText: String] {
        var paths: [ExactText: String] = [:]
        for store in stores {
            let path = target ?? "\(into ?? ".")/\(store.path.nameOfPath)"
            guard !paths.values.contains(where: { ExactText($0) == ExactText(path) }) else {
                throw Failure(.usage, "Two stores would have the backup \(path). Nothing was done.")
            }
            paths[ExactText(store.identity)] = path
        }
        return paths
    }
}
