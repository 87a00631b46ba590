import SealedDB

/// Gives one store its new key, or finds that it has it.
struct StoreRotation: Sendable {
    let old: KeyAssignment
    /// `nil` for the active key of the store's ring.
    let new: KeyAssignment?
    let settings: CipherSettings
    let lockWait: Double
    /// What follows the store's name in that of the old file, which is then kept.
    let oldFileSuffix: String?
    let ignoresUnseenUsers: Bool

    enum Result: Sendable {
        case planned(KeyRotation.Plan)
        case changed(KeyRotation.Report)
        /// The id is that of the ring's key.
        case unchanged(id: String?)

        /// Members of a JSON object.
        var content: any Encodable & Sendable {
            switch self {
            case .planned(let plan): plan
            case .changed(let report): report
            case .unchanged: [String: String]()
            }
        }

        /// As one line.
        func line(_ store: StoreItem, _ settings: CipherSettings) -> String {
            let name = TerminalText.escaped(store.name)
            switch self {
            case .planned(let plan):
                let time = DurationText.clock(plan.estimatedSeconds ?? 0)
                return "\(name): can be changed, \(ByteText.size(plan.fileSize)), journal mode \(plan.journalMode), "
                    + "about \(time)"
            case .changed(let report):
                return "\(name): key changed, \(report.pageCount) pages in \(DurationText.seconds(report.seconds))"
                    + settings.remarkOnAuthentication
            case .unchanged(let id):
                let key = id.map { "the active key \($0)" } ?? "the new key"
                return "\(name): has \(key) already; nothing was changed"
            }
        }
    }

    /// Checks all that a rotation needs, and writes nothing.
    func plan(_ store: StoreItem) throws -> Result {
        try attempt(store, isLooking: true) { rotation in .planned(try rotation.plan()) }
    }

    /// - Parameter isThoughtDone: whether to look for the new key first.
    func run(
        _ store: StoreItem,
        isThoughtDone: Bool = false,
        progress: @escaping (KeyRotation.Progress) throws -> Void
    ) throws -> Result {
        try attempt(store, isLooking: false) { rotation in
            if isThoughtDone, try rotation.isDone() { return .unchanged(id: nil) }
            return .changed(try rotation.run(progress: progress))
        }
    }

    private func attempt(
        _ store: StoreItem,
        isLooking: Bool,
        _ body: (KeyRotation) throws -> Result
    ) throws -> Result {
        var newKey: Key?
        return try old.withKey(of: store) { key, fromRing in
            let target = try newKey ?? self.newKey(of: store, fromRing?.ring)
            newKey = target
            guard key != target else {
                guard let id = fromRing?.id, new == nil else {
                    throw Failure(.usage, "The new key is the old one. The store is unchanged.")
                }
                try require(key, of: store)
                return .unchanged(id: id)
            }
            let rotation = KeyRotation(
                path: store.path,
                from: key,
                to: target,
                cipherSettings: settings,
                busyTimeout: lockWait,
                oldFileSuffix: oldFileSuffix,
                ignoresUnseenUsers: ignoresUnseenUsers
            )
            do {
                return try body(rotation)
            } catch let error as DatabaseError where [.wrongKey, .alreadyExists].contains(error.reason) {
                // Done before, by a run whose end nobody saw, and which may have kept the old file.
                if isLooking {
                    // Why it has not that key either is of no interest.
                    guard (try? require(target, of: store)) != nil else { throw error }
                } else {
                    guard try rotation.isDone() else { throw error }
                }
                return .unchanged(id: nil)
            }
        }
    }

    /// Writes nothing.
    private func require(_ key: Key, of store: StoreItem) throws {
        _ = try StoreInfo.inspect(path: store.path, key: key, cipherSettings: settings)
    }

    private func newKey(of store: StoreItem, _ ring: KeyRing?) throws -> Key {
        if let new { return try new.newKey(of: store) }
        guard let ring else {
            throw Failure(.usage, "\(store.name) has no new key: give one, or a key ring, whose active key it then is.")
        }
        return try ring.activeKey()
    }
}
