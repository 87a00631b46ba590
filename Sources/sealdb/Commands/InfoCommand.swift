import ArgumentParser
import SealedDB

struct InfoCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "info",
        abstract: "Tell what files are, with and without a key.",
        discussion: """
            Without a key, only what anybody can see from outside. The salt, random bytes from which with a passphrase \
            the key is made, is not a secret. With the right key, what \
            is inside too, also of a store of SQLCipher 1, 2 or 3 or with other cipher settings, which are found out: \
            with a passphrase that takes up to a second. A wrong key (exit 77) is told apart from a file that is \
            damaged, cut off, in plaintext or no database (exit 65). With a key ring, also which of its keys the store \
            has. Nothing is ever written.

              sealdb info app.db
              sealdb info app.db --key-file app.key --json
              sealdb info *.db --json --continue-on-error
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

    @OptionGroup(title: "Cipher settings; they are found out but for a plaintext header")
    var cipherOptions: CipherOptions

    @OptionGroup
    var unauthenticatedOptions: UnauthenticatedOptions

    @OptionGroup(title: "Output")
    var reportOptions: ReportOptions

    @OptionGroup
    var batchOptions: BatchOptions

    @OptionGroup
    var progressOptions: ProgressOptions

    func validate() throws {
        try keyTable.validate(with: keyOptions.choice, isRequired: false)
    }

    func run() throws {
        reportOptions.begin()
        let map = try keyTable.map()
        let stores = try list.items(or: map?.entries.map(\.path) ?? [])
        if list.isSingle { reportOptions.begin(stores[0].path) }
        let isGiven = keyOptions.choice.isGiven || keyTable.isGiven
        let configuration = isGiven ? nil : try keyOptions.choice.configuration()
        let hasKeys = isGiven || configuration != nil
        let keys = hasKeys ? try keyTable.assignment(keyOptions.choice, map, stores) : nil
        let search = Search(
            ciphers: try cipherOptions.assignment(),
            allowsUnauthenticated: unauthenticatedOptions.allowUnauthenticated
        )
        let work = StoreWork(
            isSingle: list.isSingle,
            batchOptions: batchOptions,
            progressOptions: progressOptions,
            reportOptions: reportOptions,
            doneText: "examined"
        ) { store, _ in
            let hasKey = configuration?.hasKey(for: store) ?? true
            let result = try InfoCommand.result(store, hasKey ? keys : nil, search)
            return StoreReport(text: .block(FieldList(InfoCommand.rows(result)).text), content: result)
        }
        try work.run(stores)
    }

    /// One JSON object: the members of the store's information, the diagnosis, and what the key ring says.
    private struct Result: Encodable, Sendable {
        let info: StoreInfo
        let diagnosis: StoreDiagnosis
        var keyID: String?
        var needsRotation: Bool?
        let slots: SlotRemarks?

        private enum Names: String, CodingKey {
            case fileKind, diagnosis, keyID, needsRotation, slotCount, slotProblems, hasRecoverySlot
        }

        func encode(to encoder: any Encoder) throws {
            try info.encode(to: encoder)
            var container = encoder.container(keyedBy: Names.self)
            // The kind of the object is another one.
            try container.encode(info.kind, forKey: .fileKind)
            try container.encode(diagnosis, forKey: .diagnosis)
            try container.encodeIfPresent(keyID, forKey: .keyID)
            try container.encodeIfPresent(needsRotation, forKey: .needsRotation)
            try container.encodeIfPresent(slots?.count, forKey: .slotCount)
            try container.encodeIfPresent(slots?.problems, forKey: .slotProblems)
            try container.encodeIfPresent(slots?.hasRecovery, forKey: .hasRecoverySlot)
        }
    }

    /// The settings with which a store is examined.
    private struct Search: Sendable {
        let ciphers: CipherAssignment
        let allowsUnauthenticated: Bool
    }

    private static func result(_ store: StoreItem, _ keys: KeyAssignment?, _ search: Search) throws -> Result {
        guard let keys else { return try result(store, key: nil, search) }
        return try keys.withKey(of: store) { key, fromRing in
            var result = try result(store, key: key, search)
            if let (ring, id) = fromRing, result.info.details != nil {
                result.keyID = id
                result.needsRotation = id != ring.activeID
            }
            return result
        }
    }

    private static func result(_ store: StoreItem, key: Key?, _ search: Search) throws -> Result {
        let path = store.path
        let known = search.ciphers.settings(of: store)
        let diagnosis = try StoreDiagnosis.examine(
            path: path,
            key: key,
            cipherSettings: known,
            allowsUnauthenticated: search.allowsUnauthenticated
        )
        switch diagnosis.finding {
        case .opens, .olderFormat, .otherSettings: break
        case .notPermitted: throw diagnosis.error
        // Without a key there is nothing that could fail to open.
        case _ where key == nil: break
        default: throw diagnosis.error
        }
        let settings = diagnosis.cipherSettings ?? known
        // The contents of a truncated plaintext database cannot be relied on.
        let isReadable = diagnosis.finding != .truncated
        let info =
            isReadable
            ? try StoreInfo.inspect(path: path, key: key, cipherSettings: settings)
            : try StoreInfo.outside(path: path)
        return Result(info: info, diagnosis: diagnosis, slots: SlotRemarks(path))
    }

    private static func rows(_ result: Result) -> [(String, String)] {
        let info = result.info
        let diagnosis = result.diagnosis
        var rows = [
            ("path", info.path),
            ("kind", info.kind.rawValue),
            ("size", "\(info.fileSize) bytes"),
        ]
        if !info.siblings.isEmpty { rows.append(("beside it", info.siblings.joined(separator: ", "))) }
        if let salt = info.salt { rows.append(("salt", salt)) }
        if let slots = result.slots { rows.append(("key slots", slots.text)) }
        rows.append(("finding", diagnosis.explanation))
        guard let details = info.details else {
            if !diagnosis.possiblePageSizes.isEmpty, info.kind == .encrypted {
                let sizes = diagnosis.possiblePageSizes.map { String($0) }.joined(separator: ", ")
                rows.append(("page size", "one of \(sizes), by the length of the file"))
            }
            return rows
        }
        if let settings = diagnosis.cipherSettings { rows.append(("format", settings.description)) }
        rows += [
            ("pages", "\(details.pageCount) of \(details.pageSize) bytes, \(details.freePages) free"),
            ("journal mode", details.journalMode),
            ("user version", String(details.userVersion)),
            ("application id", String(details.applicationID)),
            ("tables", String(details.tableCount)),
        ]
        if let id = result.keyID {
            let isActive = result.needsRotation == false
            rows.append(("key", isActive ? "\(id), active" : "\(id), not the active one: sealdb rotate"))
        }
        rows += details.cipherSettings.map { ("cipher", $0) }
        return rows
    }
}
