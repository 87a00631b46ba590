import SealedDB

/// Gives one store its new key, or finds out that it already has it.
struct StoreRotation: Sendable {
    let old: KeyAssignment
    /// `nil` to use the active key of the store's ring.
    let new: KeyAssignment?
    let ciphers: CipherAssignment
    let lockWait: Double
    /// If not `nil`, the old file is kept, under the store's name followed by this suffix.
    let oldFileSuffix: String?
    let ignoresUnseenUsers: Bool
    /// What becomes of the other slots; `nil` if the data keys of stores with slots stay.
    var reencryption: Reencryption?
    /// The key files to replace; `nil` to leave them as they are.
    var keyFiles: KeyFilePlan?

    /// What becomes of the slots besides that whose key is replaced.
    struct Reencryption: Sendable {
        let keep: [String]
        let removesOthers: Bool
        /// Whether there may be a terminal to ask on.
        let asks: Bool
    }

    enum Result: Sendable {
        case planned(KeyRotation.Plan)
        case changed(KeyRotation.Report, hasNewDataKey: Bool)
        /// The id is that of the key in the ring; `nil` without a ring's id.
        case unchanged(id: String?)

        /// The members of the JSON object for this result.
        var content: any Encodable & Sendable {
            switch self {
            case .planned(let plan): plan
            case .changed(let report, _): report
            case .unchanged: [String: String]()
            }
        }

        /// The result as one line of text.
        func line(_ store: StoreItem, _ settings: CipherSettings) -> String {
            let name = TerminalText.escaped(store.name)
            switch self {
            case .planned(let plan):
                let time = DurationText.clock(plan.estimatedSeconds ?? 0)
                return "\(name): can be changed, \(ByteText.size(plan.fileSize)), journal mode \(plan.journalMode), "
                    + "about \(time)" + (plan.removedSlots.map { $0.isEmpty ? "" : "; \(plan.slotsText)" } ?? "")
            case .changed(let report, let hasNewDataKey):
                let pages = report.pageCount.counted("page")
                // After a run that was cut off, the key may have been the new one already.
                let what = hasNewDataKey ? "has the new key and a new data key" : "key changed"
                return "\(name): \(what), \(pages) in \(DurationText.seconds(report.seconds))"
                    + settings.remarkOnAuthentication
            case .unchanged(let id):
                let key = id.map { "the active key \($0)" } ?? "the new key"
                // An old key that opens no slot may also be a wrong one.
                let remark = id == nil && KeySlots.exist(beside: store.path) ? ", and the old key opens no slot" : ""
                return "\(name): has \(key) already\(remark); nothing was changed"
            }
        }
    }

    /// Checks everything that a rotation needs. Writes nothing.
    func plan(_ store: StoreItem) throws -> Result {
        try attempt(store, isLooking: true) { rotation in
            let plan = try rotation.plan()
            if let reencryption, !reencryption.removesOthers {
                try KeptSlot.requireConsent(plan.removedSlots ?? [], asks: false)
            }
            return .planned(plan)
        }
    }

    /// - Parameter isThoughtDone: whether the store is expected to have the new key already, so that this is checked
    ///   first.
    func run(
        _ store: StoreItem,
        isThoughtDone: Bool = false,
        progress: @escaping (KeyRotation.Progress) throws -> Void
    ) throws -> Result {
        try attempt(store, isLooking: false) { rotation in
            if isThoughtDone, try rotation.isDone() { return .unchanged(id: nil) }
            // Without it, records of the store do not count any more, and what they told is due.
            let mark = try? StoreMark(path: store.path)
            let report = try consented(rotation).run(progress: progress)
            StoreRecords.note(.key, of: store.path)
            StoreRecords.carryOver(store.path, from: mark)
            return .changed(report, hasNewDataKey: reencryption != nil)
        }
    }

    /// Whether the rotation of the store writes a copy of it.
    func copies(_ store: StoreItem) -> Bool { reencryption != nil || !KeySlots.exist(beside: store.path) }

    /// The rotation, which may remove those slots only that were looked at.
    private func consented(_ rotation: KeyRotation) throws -> KeyRotation {
        guard let reencryption else { return rotation }
        let lost = try rotation.slotsLost()
        if !reencryption.removesOthers { try KeptSlot.requireConsent(lost, asks: reencryption.asks) }
        return rotation.removing(Set(lost))
    }

    /// Refuses a new key that is not the one that an earlier run gave to these stores. Otherwise the others would get a third
    /// key, and that of these may be in no file any more.
    func requireSameNewKey(as stores: [StoreItem]) throws {
        guard new != nil else { return }
        var known: [Key] = []
        for store in stores {
            // What cannot be known now is told when it is the store's turn.
            guard let key = try? keyFiles?.keyInPlace(of: store) ?? newKey(of: store, nil), !known.contains(key) else {
                continue
            }
            known.append(key)
            let isOther = isWrongKey { try require(key, of: store) } && isWrongKey { try requireOldKey(of: store) }
            guard isOther else { continue }
            throw Failure(
                .wrongKey,
                "An earlier run has given \(store.name) a key that is neither the new one that is given now nor the old one. "
                    + "Nothing was changed. Give the new key of that run, or rotate the other stores with a journal of "
                    + "their own (--journal)."
            )
        }
    }

    private func requireOldKey(of store: StoreItem) throws {
        // It is not asked for again here.
        if case .typed(let key, _) = old { return try require(key, of: store) }
        try old.withKey(of: store) { key, _ in try require(key, of: store) }
    }

    private func isWrongKey(_ body: () throws -> Void) -> Bool {
        do {
            try body()
            return false
        } catch {
            return (error as? DatabaseError)?.reason == .wrongKey
        }
    }

    // MARK: Steps

    private func attempt(
        _ store: StoreItem,
        isLooking: Bool,
        _ body: (KeyRotation) throws -> Result
    ) throws -> Result {
        if let key = try keyFiles?.keyInPlace(of: store) {
            try requireDone(store, key, isLooking: isLooking)
            keyFiles?.hold(key, of: store)
            return .unchanged(id: nil)
        }
        var newKey: Key?
        var oldKey: Key?
        let result: Result = try old.withKey(of: store) { key, fromRing in
            let target = try newKey ?? self.newKey(of: store, fromRing?.ring)
            newKey = target
            oldKey = nil
            guard key != target else {
                guard let id = fromRing?.id, new == nil else {
                    throw Failure(.usage, "The new key is the old one. The store is unchanged.")
                }
                try require(key, of: store)
                // An earlier run may have been cut off before the new file was there for good.
                if !isLooking { try synchronizeDirectory(of: store.identity) }
                return .unchanged(id: id)
            }
            let rotation = KeyRotation(
                path: store.path,
                from: key,
                to: target,
                cipherSettings: ciphers.settings(of: store),
                busyTimeout: .seconds(lockWait),
                oldFileSuffix: oldFileSuffix,
                ignoresUnseenUsers: ignoresUnseenUsers,
                reencryption: try reencryption.map {
                    .init(keeping: try $0.keep.map { try KeptSlot.slot($0, of: store) })
                }
            )
            do {
                let result = try body(rotation)
                oldKey = key
                return result
            } catch let error as DatabaseError
                where reencryption == nil && [.wrongKey, .alreadyExists].contains(error.reason)
            {
                // With a new data key the rotation itself goes on where an earlier one ended.
                // An earlier run may have changed the key without its end being recorded, and may have kept the old
                // file.
                if isLooking {
                    // The reason does not matter: the store does not open with the new key either.
                    guard (try? require(target, of: store)) != nil else { throw error }
                } else {
                    guard try rotation.isDone() else { throw error }
                }
                return Result.unchanged(id: nil)
            }
        }
        if let newKey { keyFiles?.hold(newKey, of: store, replacing: oldKey) }
        return result
    }

    /// Makes sure that a store has the key that an earlier run put into its key file.
    private func requireDone(_ store: StoreItem, _ key: Key, isLooking: Bool) throws {
        guard !isLooking else { return try require(key, of: store) }
        let rotation = KeyRotation(
            path: store.path,
            from: key,
            to: key,
            cipherSettings: ciphers.settings(of: store),
            busyTimeout: .seconds(lockWait)
        )
        guard try rotation.isDone() else { return try require(key, of: store) }
    }

    /// Puts the new key file in the place of the old one, if no store of this run needs the old one any more.
    /// - Parameter recording: called before the first step.
    /// - Returns: what was done; `nil` if nothing is to be done now.
    func replaceKeyFile(
        of store: StoreItem,
        recording: (KeyFileReplacement) throws -> Void = { _ in }
    ) throws -> KeyFileReplacement? {
        guard let (files, key, old) = try keyFiles?.completed(by: store) else { return nil }
        try recording(files)
        do {
            try files.run(key, replacing: old)
        } catch {
            let (status, message) = ErrorReport.statusAndMessage(of: error)
            throw Failure(
                ExitStatus(rawValue: status) ?? .inputOutput,
                "It has the new key, but \(files.newFile) has not taken the place of \(files.file), or not for good. "
                    + "\(message) Keep \(files.file), \(files.newFile) and \(files.formerFile), as far as they are there. "
                    + "To go on, run the same command."
            )
        }
        return files
    }

    /// Makes sure that the key opens the store. Writes nothing.
    private func require(_ key: Key, of store: StoreItem) throws {
        _ = try StoreInfo.inspect(path: store.path, key: key, cipherSettings: ciphers.settings(of: store))
    }

    private func newKey(of store: StoreItem, _ ring: KeyRing?) throws -> Key {
        if let new { return try new.newKey(of: store) }
        guard let ring else {
            throw Failure(.usage, "\(store.name) has no new key: give one, or a key ring, whose active key it then is.")
        }
        return try ring.activeKey()
    }
}

extension KeyRotation.Plan {
    /// Which slots go.
    var slotsText: String { "slots to be removed: \((removedSlots ?? []).joined(separator: ", "))" }
}
