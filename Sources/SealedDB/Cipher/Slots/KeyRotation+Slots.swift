import Foundation

/// Rotations of stores with slots: the slot of the old key is replaced.
extension KeyRotation {
    var hasSlots: Bool { KeySlots.exist(beside: path) }

    func slots(_ key: Key) -> KeySlots {
        KeySlots(path: path, key: key, cipherSettings: settings, busyTimeout: .seconds(busyTimeout))
    }

    func planOfSlots() throws(DatabaseError) -> Plan {
        try requireNothingToKeep()
        guard oldKey != newKey else { throw KeyRotation.sameKey }
        let slots = slots(oldKey)
        let opening = try slots.opening()
        try newKey.confirm()
        return try opening.look { connection throws(DatabaseError) in
            guard try slots.slots(opening, connection).slot != nil else {
                throw .malformedKey("The data key itself has no slot to replace. Add one for the new key.")
            }
            let totals = try PageTotals(of: connection)
            let file = opening.path ?? path
            return Plan(
                path: file,
                fileSize: Int64(try FileSystem.status(file).st_size),
                pageCount: totals.count,
                pageSize: totals.size,
                journalMode: try connection.storedJournalMode(Sealing(key: oldKey, settings: settings)),
                freeSpace: try FileSystem.freeSpace(at: FileSystem.directory(of: file)),
                neededSpace: Int64(4 * SlotsParser.sizeLimit),
                estimatedSeconds: 0
            )
        }
    }

    func replaceSlot() throws(DatabaseError) -> Report {
        let start = DispatchTime.now().uptimeNanoseconds
        try requireNothingToKeep()
        let (slots, totals) = try slots(oldKey).replace(with: newKey, scrypt: .usual)
        return Report(
            path: slots.path,
            pageCount: totals.count,
            pageSize: totals.size,
            seconds: KeyRotation.seconds(since: start)
        )
    }

    private func report(since start: UInt64, path: String) throws(DatabaseError) -> Report {
        let size: PageTotals
        do throws(DatabaseError) {
            size = try StoreOpening.existing(path, key: newKey, settings: settings).look {
                connection throws(DatabaseError) in try PageTotals(of: connection)
            }
        } catch {
            throw error.adding(context: "The store has the new key, but could not be looked at again")
        }
        return Report(
            path: path,
            pageCount: size.count,
            pageSize: size.size,
            seconds: KeyRotation.seconds(since: start)
        )
    }

    private static func seconds(since start: UInt64) -> Double {
        Double(DispatchTime.now().uptimeNanoseconds - start) / 1e9
    }

    // MARK: A new data key

    func planOfReencryption(_ reencryption: Reencryption) throws(DatabaseError) -> Plan {
        let (slots, replacement) = try slotsToReencrypt(reencryption)
        try newKey.confirm()
        var plan = try slots.planOfReencryption(ignoresUnseenUsers: ignoresUnseenUsers)
        plan.removedSlots = try slots.slotsLost(replacingKeyBy: replacement, keeping: reencryption.keeping)
        return plan
    }

    func reencrypt(
        _ reencryption: Reencryption,
        progress: ((Progress) throws -> Void)?
    ) throws(DatabaseError) -> Report {
        let start = DispatchTime.now().uptimeNanoseconds
        let (slots, replacement) = try slotsToReencrypt(reencryption)
        if replacement == nil, try slots.endReencryption() { return try report(since: start, path: path) }
        return try slots.reencrypt(
            to: replacement,
            keeping: reencryption.keeping,
            removing: reencryption.removing,
            ignoresUnseenUsers: ignoresUnseenUsers,
            progress: progress
        ).store
    }

    /// The labels of the slots that ``run(progress:)`` would remove, because nothing is given that could wrap a new data key
    /// for them.
    package func slotsLost() throws(DatabaseError) -> [String] {
        guard let reencryption else { return [] }
        let (slots, replacement) = try slotsToReencrypt(reencryption)
        return try slots.slotsLost(replacingKeyBy: replacement, keeping: reencryption.keeping)
    }

    /// The same rotation, which may remove only the slots of these labels.
    package func removing(_ labels: Set<String>) -> KeyRotation {
        KeyRotation(
            path: path,
            from: oldKey,
            to: newKey,
            cipherSettings: settings,
            busyTimeout: .seconds(busyTimeout),
            oldFileSuffix: oldFileSuffix,
            ignoresUnseenUsers: ignoresUnseenUsers,
            reencryption: reencryption.map { Reencryption(keeping: $0.keeping, removing: labels) }
        )
    }

    /// The slots, opened by the old key, with the new one that replaces it. If only the new one opens them, an earlier run
    /// has come so far, or the slot was replaced without a new data key: then none is replaced, and the data key is. Not so if
    /// that would remove a slot, which the old key may be meant to open, and was given wrongly.
    private func slotsToReencrypt(
        _ reencryption: Reencryption
    ) throws(DatabaseError) -> (slots: KeySlots, replacement: Key?) {
        guard hasSlots else {
            throw .notAllowed(
                """
                \(path) has no key slots, whose data key could be replaced: without asking for that, a rotation encrypts the \
                whole store under the new key. Nothing was changed.
                """
            )
        }
        try requireNothingToKeep()
        guard oldKey != newKey else { throw KeyRotation.sameKey }
        let (old, new) = (slots(oldKey), slots(newKey))
        guard try !old.fits(), try new.fits() else { return (old, newKey) }
        let lost = try new.slotsLost(replacingKeyBy: nil, keeping: reencryption.keeping)
        guard lost.isEmpty else {
            throw DatabaseError(
                extendedCode: SQLITE_NOTADB,
                reason: .wrongKey,
                message: """
                    The old key opens no slot of \(path), and the new key opens one, as after an earlier run. Nothing was \
                    changed: a new data key would remove slots, of which the old key may have been meant: \
                    \(lost.joined(separator: ", ")). If the new key is in its place already, \
                    `sealdb slots reencrypt` with it, and with --keep for these slots, replaces the data key.
                    """
            )
        }
        return (new, nil)
    }

    private func requireNothingToKeep() throws(DatabaseError) {
        guard oldFileSuffix != nil else { return }
        throw .notAllowed(
            """
            \(path) has key slots: a rotation replaces no file that could be kept, and what a new data key replaces would be \
            without slots. Nothing was changed.
            """
        )
    }
}
