import ArgumentParser
import Foundation
import SealedDB

struct KeyringAuditCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "audit",
        abstract: "Tell which key of a ring each store and backup has.",
        discussion: """
            Tries the keys of the ring on each store, the retired ones too, and writes nothing. Exit 0 if all have the \
            active key, 1 if some have another one of the ring; a store that none of them opens is a failure (exit 77, or \
            2 with --continue-on-error).

              sealdb keyring audit app.ring *.db /backups/*.db --continue-on-error
              find /srv -name '*.db' -print0 |
                  sealdb keyring audit app.ring --from0 /dev/stdin --json
            """
    )

    @Argument(help: "The ring.", completion: .file())
    var file: String

    @OptionGroup
    var list: StoreListOptions

    @OptionGroup(title: "Cipher settings of stores that have other ones than SQLCipher 4's")
    var cipherOptions: CipherOptions

    @OptionGroup(title: "Configuration")
    var configurationOptions: ConfigurationOptions

    @OptionGroup
    var batchOptions: BatchOptions

    @OptionGroup(title: "Output")
    var reportOptions: ReportOptions

    @OptionGroup
    var progressOptions: ProgressOptions

    func run() throws {
        reportOptions.begin()
        let audit = KeyringAudit(ring: try KeyRing(contentsOfFile: file), ciphers: try cipherOptions.assignment())
        let stores = try list.items()
        let work = StoreWork(
            isSingle: list.isSingle,
            batchOptions: batchOptions,
            progressOptions: progressOptions,
            reportOptions: reportOptions,
            doneText: "opened"
        ) { store, _ in
            let finding = try audit.finding(store)
            return StoreReport(
                text: .lines(["\(TerminalText.escaped(store.name)): \(finding.text)"]),
                content: finding,
                exitCode: finding.isActive ? 0 : ExitStatus.different.rawValue
            )
        }
        try work.run(stores)
    }
}

struct KeyringRemoveCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "remove",
        abstract: "Remove a key that is not active, first to the retired ones.",
        discussion: """
            Name the stores and backups that the ring is for: if one of them still needs the key, or cannot be opened by \
            any key of the ring, nothing is removed (exit 75). Without names, --yes is needed, or on a terminal the answer \
            "yes": a store that still has the key is lost with it.

              sealdb keyring remove app.ring 2026 *.db /backups/*.db
              sealdb keyring remove app.ring 2026 --from-file stores --keep 90

            The key then no longer opens anything, and stays in the ring as a retired one for 30 days, or --keep. "sealdb \
            keyring reinstate" brings it back. After that time the same command removes it for good, as --keep 0 does at \
            once.
            """
    )

    @Argument(help: "The ring.", completion: .file())
    var file: String

    @Argument(help: "The key's id.")
    var id: String

    @OptionGroup
    var list: StoreListOptions

    @Option(help: ArgumentHelp("For how long to keep it when it is retired; 0 removes it for good.", valueName: "days"))
    var keep: Int?

    @Flag(help: "Remove it although no stores are named.")
    var yes = false

    @OptionGroup(title: "Cipher settings of stores that have other ones than SQLCipher 4's")
    var cipherOptions: CipherOptions

    @OptionGroup(title: "Configuration")
    var configurationOptions: ConfigurationOptions

    @OptionGroup(title: "Output")
    var reportOptions: ReportOptions

    private static let defaultDays = 30

    private var namesStores: Bool {
        !list.stores.isEmpty || list.fromFile != nil || list.fromFileWithNULs != nil
    }

    func validate() throws {
        if let keep, !(0...36500).contains(keep) { throw ValidationError("--keep takes 0 to 36500 days.") }
    }

    func run() throws {
        reportOptions.begin(file)
        let ciphers = try cipherOptions.assignment()
        let stores = namesStores ? try list.items() : nil
        // What can be refused at once is, before anything is asked.
        _ = try decision(KeyRing(contentsOfFile: file))
        if stores == nil, !yes {
            let question = "A store or backup that still has the key \(id) is lost with it. Remove it? [yes/no] "
            guard try Confirmation.ask(question) else {
                throw Failure(
                    .usage,
                    "Not confirmed, or there is no terminal to ask on: name the stores and backups, or give --yes. "
                        + "Nothing was changed."
                )
            }
        }
        var refusal: (any Error)?
        var text = ""
        do {
            // The stores are looked at while nobody else can change the ring.
            try KeyRing.update(file: file) { ring throws(DatabaseError) in
                do {
                    let decision = try decision(ring)
                    if let stores { try KeyringAudit(ring: ring, ciphers: ciphers).requireUnused(id, stores) }
                    SignalWatch.start()
                    text = try decision.carryOut(id, &ring)
                } catch {
                    refusal = error
                    throw DatabaseError(extendedCode: SQLITE_ABORT, reason: .misuse, message: "Nothing was changed.")
                }
            }
        } catch {
            throw refusal ?? error
        }
        try reportOptions.report("\(TerminalText.escaped(file)): \(id) \(text)\n", ["keyID": id])
    }

    /// What is to become of the key.
    private enum Decision {
        case removeForGood
        case retire(until: Date)

        /// - Returns: what was done, in words.
        func carryOut(_ id: String, _ ring: inout KeyRing) throws -> String {
            switch self {
            case .removeForGood:
                try ring.remove(id)
                return "removed for good"
            case .retire(let date):
                try ring.retire(id, until: date)
                return "retired, and kept until \(KeyRing.day(date))"
            }
        }
    }

    /// - Throws: if the id is unknown, that of the active key, or that of a retired key whose time is not over.
    private func decision(_ ring: KeyRing) throws -> Decision {
        var changed = ring
        try changed.remove(id)
        let days = keep ?? KeyringRemoveCommand.defaultDays
        guard days > 0 else { return .removeForGood }
        guard let retired = ring.retiredKeys.first(where: { $0.id.isSame(as: id) }) else {
            return .retire(until: Date.now.addingTimeInterval(Double(days) * 86400))
        }
        guard retired.keptUntil <= KeyRing.day(.now) else {
            throw Failure(
                .busy,
                "\(id) is retired, and to be kept until \(retired.keptUntil). To remove it for good now: --keep 0."
            )
        }
        return .removeForGood
    }
}

/// Which keys of a ring stores have.
struct KeyringAudit: Sendable {
    let ring: KeyRing
    let ciphers: CipherAssignment

    /// The key of one store.
    struct Finding: Encodable, Sendable {
        let keyID: String
        let isActive: Bool
        let isRetired: Bool

        var text: String {
            if isRetired { return "\(keyID), which is retired: sealdb keyring reinstate, then rotate" }
            return isActive ? "\(keyID), active" : "\(keyID), not the active one: sealdb rotate"
        }
    }

    /// - Throws: if no key of the ring opens the store, or it cannot be read.
    func finding(_ store: StoreItem) throws -> Finding {
        do {
            return try ring.withKey(toOpen: store.path) { key, id in
                try store.requireOpens(with: key, ciphers.settings(of: store))
                return Finding(keyID: id, isActive: id.isSame(as: ring.activeID), isRetired: false)
            }
        } catch {
            guard (error as? DatabaseError)?.reason == .wrongKey else { throw error }
            for retired in ring.retiredKeys where try hasRetired(retired.id, store) {
                return Finding(keyID: retired.id, isActive: false, isRetired: true)
            }
            throw error
        }
    }

    private func hasRetired(_ id: String, _ store: StoreItem) throws(DatabaseError) -> Bool {
        let key = try ring.retiredKey(id)
        do throws(DatabaseError) {
            try store.requireOpens(with: key, ciphers.settings(of: store))
            return true
        } catch {
            guard error.reason == .wrongKey else { throw error }
            return false
        }
    }

    /// Makes sure that no store needs the key, also after a power failure. A store that cannot be opened might.
    func requireUnused(_ id: String, _ stores: [StoreItem]) throws {
        var reasons: [String] = []
        for store in stores {
            do {
                if try finding(store).keyID.isSame(as: id) { reasons.append("\(store.name) has it") }
                // A rotation that was cut off has replaced the file, but maybe not for good.
                try synchronizeDirectory(of: store.identity)
            } catch {
                let message = ErrorReport.statusAndMessage(of: error).message
                reasons.append("\(store.name): \(message.ends(with: ".") ? message.withoutLast(bytes: 1) : message)")
            }
        }
        guard !reasons.isEmpty else { return }
        let rest = reasons.count > 5 ? "; and \(reasons.count - 5) more" : ""
        throw Failure(
            .busy,
            "The key \(id) may still be needed: \(reasons.prefix(5).joined(separator: "; "))\(rest). Nothing was changed. "
                + "Rotate the stores first, and keep the key as long as there are backups under it."
        )
    }
}
