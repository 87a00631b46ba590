import ArgumentParser
import Foundation
import SealedDB

struct RotateCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "rotate",
        abstract: "Change the keys of stores: copy, verify, swap.",
        discussion: """
            Writes a copy under the new key beside the store, verifies it, and puts it in the store's place in one \
            step. Until then the store is whole under the old key, whatever fails, and nothing needs to be cleaned \
            up. It needs as much free space as the store is large. A store in use is not touched (exit 75).

              sealdb rotate app.db --key-file app.key --new-key-file new.key

            With a key ring the new key is its active one, unless another is given; a store that has its new key \
            already is left alone.

              sealdb rotate app.db --key-ring app.ring

            Several stores get one key, or each its own by a template or a map. A journal tells how far that came; \
            after an interruption, the same command goes on. By default the first failure ends it.

              sealdb rotate *.db --key-file old.key --new-key-file new.key --jobs 4
              sealdb rotate --from-file stores --key-template key-file:{dir}/{stem}.key \\
                  --new-key-template key-file:{dir}/{stem}.new --continue-on-error
              sealdb rotate --key-map keys.tsv --dry-run
              sealdb status sealdb-rotate.journal

            With --replace-key-files each new key file then takes the place of the old one, so that nothing else has to \
            be changed: app.key.new becomes app.key, and the old key stays as app.key.old, because backups still need \
            it. A file that several stores use is replaced when all of them have the new key, so name them all. Nothing \
            is overwritten: if app.key.old holds another key, nothing is rotated (exit 73).

              sealdb keygen app.key.new
              sealdb rotate app.db --key-file app.key --new-key-file app.key.new \\
                  --replace-key-files
              sealdb rotate *.db --key-template key-file:{stem}.key \\
                  --new-key-template key-file:{stem}.new \\
                  --replace-key-files=.$(date +%F)

            After an interruption the same command goes on with that, too. Until then keep all three files.

            In a store with key slots the slot of the old key is replaced, in milliseconds, and the data key stays. With \
            --reencrypt it is replaced too: whoever knew the old key then opens only old copies. A slot can only get the \
            new data key from its own key: those of which none is given are removed.

              sealdb rotate app.db --key-file old.key --new-key-file new.key --reencrypt \\
                  --keep recovery=key-file:safe.key

            Copies made earlier, such as backups, still open with the old key.
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

    @OptionGroup(title: "New key")
    var newKeyOptions: NewKeyOptions

    @Option(help: ArgumentHelp("New key: source for each store, as --key-template.", valueName: "source"))
    var newKeyTemplate: String?

    @OptionGroup(title: "Cipher settings of stores that have other ones than SQLCipher 4's, and keep them")
    var cipherOptions: CipherOptions

    @Flag(
        name: [.customShort("n"), .long],
        help: "Check keys, locks, space and permissions, tell the plan, and write nothing."
    )
    var dryRun = false

    @OptionGroup(title: "Output")
    var reportOptions: ReportOptions

    @OptionGroup
    var batchOptions: BatchOptions

    @OptionGroup
    var rotationOptions: RotationOptions

    @OptionGroup
    var reencryptionOptions: ReencryptionOptions

    @OptionGroup
    var lockOptions: LockOptions

    @OptionGroup
    var forceOptions: ForceOptions

    @OptionGroup
    var progressOptions: ProgressOptions

    func validate() throws {
        let old = keyOptions.choice
        let new = newKeyOptions.choice
        try keyTable.validate(with: old)
        if let given = new.given.first?.name ?? (newKeyTemplate == nil ? nil : "--new-key-template") {
            guard keyTable.keyMap == nil else {
                throw ValidationError("\(given) and --key-map, which has the new keys too, exclude each other.")
            }
        }
        if let newKeyTemplate {
            if let name = new.given.first?.name {
                throw ValidationError("\(name) and --new-key-template exclude each other: give one key source.")
            }
            try KeyTableOptions.check(newKeyTemplate)
        }
        let hasNewKeys = keyTable.isGiven || newKeyTemplate != nil || old.isRing || old.isConfigured
        try new.validate(isRequired: !hasNewKeys)
        if reencryptionOptions.reencrypt, rotationOptions.oldFileSuffix != nil {
            throw ValidationError(
                "--keep-old and --reencrypt exclude each other: the old file would be left without slots. Make a backup."
            )
        }
        if let descriptor = old.descriptor, descriptor == new.descriptor {
            throw ValidationError("\(old.given[0].name) and \(new.given[0].name) name the same descriptor.")
        }
    }

    func run() throws {
        reportOptions.begin()
        let map = try keyTable.map()
        let stores = try list.items(or: map?.entries.map(\.path) ?? [])
        if list.isSingle { reportOptions.begin(stores[0].path) }
        try Engine.requireEncryption()
        let isSingle = list.isSingle && rotationOptions.journal == nil && !rotationOptions.resumeOnly
        let whose = isSingle ? "of \(TerminalText.escaped(list.stores[0]))" : "of the stores"
        let keyFiles = try rotationOptions.formerKeyEnding.map { ending in
            try KeyFilePlan(stores, ending: ending) { store in (try oldOrigin(store, map), try newOrigin(store, map)) }
        }
        let rotation = StoreRotation(
            old: try keyFiles.map { _ in .each { store in try oldOrigin(store, map) } } ?? oldKeys(map, whose),
            new: try keyFiles.map { _ in .each { store in try newOrigin(store, map) } } ?? newKeys(map, whose),
            ciphers: try cipherOptions.assignment(),
            lockWait: lockOptions.lockWait,
            oldFileSuffix: rotationOptions.oldFileSuffix,
            ignoresUnseenUsers: forceOptions.force,
            reencryption: reencryptionOptions.reencrypt
                ? .init(
                    keep: reencryptionOptions.keep,
                    removesOthers: reencryptionOptions.yes,
                    asks: isSingle
                ) : nil,
            keyFiles: keyFiles
        )
        guard !isSingle else { return try rotateOne(stores[0], rotation) }
        let batch = RotationBatch(
            stores: stores,
            rotation: rotation,
            runner: batchOptions.runner(rotationOptions.control),
            rateLimit: rotationOptions.rateLimit,
            journalPath: rotationOptions.journal ?? RotationBatch.defaultJournal,
            isResumeOnly: rotationOptions.resumeOnly,
            reportOptions: reportOptions,
            progressMode: progressOptions.progress
        )
        let status = try dryRun ? batch.plan() : batch.run()
        guard status == 0 else { throw ExitCode(status) }
    }

    // MARK: Keys

    private func oldKeys(_ map: KeyMap?, _ whose: String) throws -> KeyAssignment {
        if let map { return .each { store in try map.oldAndNew(store).old } }
        if let template = keyTable.keyTemplate { return try KeyTableOptions.assignment(template: template) }
        let prompt = "Passphrase \(whose): "
        return try keyOptions.choice.assignment(prompt: prompt, confirm: false, asksAgain: list.isSingle)
    }

    private func newKeys(_ map: KeyMap?, _ whose: String) throws -> KeyAssignment? {
        if let map { return .each { store in try map.oldAndNew(store).new } }
        if let newKeyTemplate { return try KeyTableOptions.assignment(template: newKeyTemplate) }
        guard !newKeyOptions.choice.given.isEmpty else { return nil }
        return try newKeyOptions.choice.assignment(prompt: "New passphrase \(whose): ", confirm: true)
    }

    /// The source of a store's key, when the file that it is in is to be replaced.
    private func oldOrigin(_ store: StoreItem, _ map: KeyMap?) throws -> KeyChoice.Origin {
        if let map { return try map.oldAndNew(store).old }
        if let template = keyTable.keyTemplate { return try KeySourceText(template).origin(for: store) }
        return try keyOptions.choice.origin(for: store)
    }

    private func newOrigin(_ store: StoreItem, _ map: KeyMap?) throws -> KeyChoice.Origin {
        if let map { return try map.oldAndNew(store).new }
        if let newKeyTemplate { return try KeySourceText(newKeyTemplate).origin(for: store) }
        // The new key would be the active one of the ring.
        if newKeyOptions.choice.given.isEmpty, case .ring(let path) = try oldOrigin(store, map) { return .ring(path) }
        guard let origin = newKeyOptions.choice.given.first?.origin else {
            throw Failure(
                .usage,
                "--replace-key-files needs a new key in a file: give --new-key-file. Nothing was done."
            )
        }
        return origin
    }

    // MARK: One store

    private func rotateOne(_ store: StoreItem, _ rotation: StoreRotation) throws {
        reportOptions.begin(store.path)
        try rotation.keyFiles?.check(nil, isLooking: dryRun)
        guard !dryRun else {
            let files = rotation.keyFiles?.replacement(of: store)
            return try print(try rotation.plan(store), files, store, rotation.ciphers.settings(of: store))
        }
        let control = rotationOptions.control
        let rateLimit = rotationOptions.rateLimit
        var copied: Int64 = 0
        do {
            var files: KeyFileReplacement?
            let result = try progressOptions.watchingSignals { progress in
                let result = try rotation.run(store) { state in
                    try progress(state)
                    rateLimit?.pay(state, copied: &copied, control)
                    try control.check()
                }
                files = try rotation.replaceKeyFile(of: store)
                return result
            }
            try print(result, files, store, rotation.ciphers.settings(of: store))
        } catch let error as DatabaseError where error.reason == .interrupted && SignalWatch.exitStatus == nil {
            throw Failure(.busy, "The deadline came. \(error.message)")
        }
    }

    private func print(
        _ result: StoreRotation.Result,
        _ files: KeyFileReplacement?,
        _ store: StoreItem,
        _ settings: CipherSettings
    ) throws {
        let content = RotatedStore(result: result, files: files)
        let remark = files.map { "; " + (dryRun ? $0.planText : $0.doneText) } ?? ""
        switch result {
        case .planned(let plan):
            var fields = [
                ("store", plan.path),
                (
                    "size",
                    "\(ByteText.size(plan.fileSize)), \(plan.pageCount.counted("page")) of \(plan.pageSize) bytes"
                ),
                ("journal mode", plan.journalMode),
                ("free space", "\(ByteText.size(plan.freeSpace)), needed \(ByteText.size(plan.neededSpace))"),
                ("time", "about \(DurationText.clock(plan.estimatedSeconds ?? 0))"),
            ]
            if let removed = plan.removedSlots, !removed.isEmpty { fields.append(("slots", plan.slotsText)) }
            if let files { fields.append(("key file", files.planText)) }
            fields.append(("result", "the key can be changed; nothing was written"))
            try reportOptions.report(FieldList(fields).text, content, status: "planned")
        case .changed:
            try reportOptions.report(result.line(store, settings) + remark + "\n", content)
        case .unchanged:
            try reportOptions.report(result.line(store, settings) + remark + "\n", content, status: "unchanged")
        }
    }
}
