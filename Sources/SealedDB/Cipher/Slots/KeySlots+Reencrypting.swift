import Foundation

extension KeySlots {
    /// Encrypts the store under a new random data key: copy, verify, swap, as ``KeyRotation`` does it. Whoever knows the
    /// old data key, or has a key and an old copy of the slots, can no longer open the store, but only old copies of it.
    ///
    /// A slot can only get the new data key from somebody who has its key, or its program that wraps. The slots of which
    /// nothing is given are removed.
    ///
    /// Before the swap the files of slots list both data keys, and which of them the store needs is told by its first 16
    /// bytes. The old one stays listed until the swap is known to be durable. So whatever happens in between, the kept slots
    /// open the store.
    /// - Parameters:
    ///   - slots: the slots to be kept besides that of the key, by their labels. A program needs no unwrapping one; if there
    ///     is one, it is tried first.
    ///   - lost: the labels of the slots that may be removed. If others would be, as those that somebody has added meanwhile,
    ///     nothing is done. `nil`, the default, means all.
    ///   - progress: as in ``KeyRotation/run(progress:)``.
    /// - Throws: ``DatabaseError``. Unless its message says otherwise, the store is unchanged.
    public func reencrypt(
        keeping slots: [NewSlot] = [],
        removing lost: Set<String>? = nil,
        progress: ((KeyRotation.Progress) throws -> Void)? = nil
    ) throws(DatabaseError) -> Report {
        try reencrypt(to: nil, keeping: slots, removing: lost, progress: progress).slots
    }

    /// Encrypts the store under a new random data key, and gives the place of the key's slot to another key, with the same
    /// label. If the key opens several slots, all of them go.
    ///
    /// Both come to pass by the swap: before it the old key opens the store, and from then on the new one does. Everything
    /// else is as of ``reencrypt(keeping:removing:progress:)``.
    /// - Parameters:
    ///   - newKey: a raw key without a salt, or a passphrase. Its source is asked a second time before the swap.
    ///   - slots: the slots to be kept besides.
    ///   - lost: the labels of the slots that may be removed; `nil`, the default, means all.
    ///   - progress: as in ``KeyRotation/run(progress:)``.
    /// - Throws: as ``reencrypt(keeping:removing:progress:)``.
    public func reencrypt(
        replacingKeyBy newKey: Key,
        keeping slots: [NewSlot] = [],
        removing lost: Set<String>? = nil,
        progress: ((KeyRotation.Progress) throws -> Void)? = nil
    ) throws(DatabaseError) -> Report {
        try reencrypt(to: newKey, keeping: slots, removing: lost, progress: progress).slots
    }

    /// - Parameters:
    ///   - newKey: the key that takes the place of this one; `nil` if this one stays.
    ///   - scrypt: what the new key is derived with if it is a passphrase.
    func reencrypt(
        to newKey: Key?,
        keeping slots: [NewSlot],
        removing lost: Set<String>?,
        ignoresUnseenUsers: Bool = false,
        scrypt: SlotTable.Scrypt = .usual,
        progress: ((KeyRotation.Progress) throws -> Void)?
    ) throws(DatabaseError) -> (slots: Report, store: KeyRotation.Report) {
        guard newKey != key else { throw KeyRotation.sameKey }
        let (newDataKey, newSecret, newSalt) = try KeySlots.newDataKey()
        try (newKey ?? key).confirm()
        for slot in slots { try slot.confirm() }
        let table = try addDataKey(newSecret, newSalt, newKey, scrypt, slots, removing: lost)
        var replacement = replacement(newDataKey, isRotation: newKey != nil, ignoresUnseenUsers: ignoresUnseenUsers)
        let files = SlotFiles(of: path)
        let hold = KeyHold()
        defer { hold.release() }
        replacement.beforeSwap = { [key] () throws(DatabaseError) in
            // Nobody else has the store open now, so the slots stay as they are from here on. If they do not list the new
            // data key, somebody has changed them before.
            let isListed = files.read().contains { $0.slots?.table.dataKey(salt: newSalt) != nil }
            // From the swap on, only what is tried here opens the store.
            if newKey == nil { try key.keepInRing(hold) }
            let trial = try newKey?.confirmed(keptBy: hold) ?? (newKey ?? key).unused
            let opened = isListed ? try files.open(with: trial, salt: newSalt) : nil
            guard let opened, opened.secret.isEqual(to: newSecret), !opened.needsRepair, opened.table == table else {
                throw DatabaseError(
                    extendedCode: SQLITE_BUSY,
                    reason: .busy,
                    message: "Somebody else changed the slots meanwhile. Try again."
                )
            }
        }
        let store: KeyRotation.Report
        do throws(DatabaseError) {
            store = try replacement.run(progress: progress)
        } catch {
            try settleUnchanged(table, newSalt, error)
        }
        let settled: SlotTable
        do throws(DatabaseError) {
            settled = try opened(by: newKey ?? key).change { (_, _) throws(DatabaseError) in
            } body: { (_, _) throws(DatabaseError) in
            }
        } catch {
            throw error.adding(
                context: """
                    The store \(replacement.words.after), but the slots may list the old data key too; the next change removes \
                    it
                    """
            )
        }
        do throws(DatabaseError) {
            return (try tried(slots, settled), store)
        } catch {
            throw error.adding(context: "The store \(replacement.words.after), but not all of its slots open it")
        }
    }

    /// Checks everything that a re-encryption needs. Writes nothing.
    func planOfReencryption(ignoresUnseenUsers: Bool = false) throws(DatabaseError) -> KeyRotation.Plan {
        try replacement(KeySlots.newDataKey().key, isRotation: true, ignoresUnseenUsers: ignoresUnseenUsers).plan()
    }

    /// The labels of the slots that a re-encryption would remove, because nothing is given that could wrap a new data key
    /// for them.
    func slotsLost(replacingKeyBy newKey: Key?, keeping slots: [NewSlot]) throws(DatabaseError) -> [String] {
        let opening = try opening()
        return try opening.look { connection throws(DatabaseError) in
            let opened = try self.slots(opening, connection)
            var numbers = Set(try opened.slots(openedBy: key).map(\.number))
            if let newKey { numbers.formUnion(try opened.slots(openedBy: newKey).map(\.number)) }
            return opened.table.settled(opened.dataKey).slots
                .filter { slot in !numbers.contains(slot.number) && !slots.contains { $0.label == slot.label } }
                .map(\.label)
        }
    }

    /// Ends a re-encryption that was cut off after its swap.
    /// - Returns: whether there was one.
    func endReencryption() throws(DatabaseError) -> Bool {
        let opening = try opening()
        let isReplaced = try opening.look { connection throws(DatabaseError) in
            let opened = try slots(opening, connection)
            return opened.table.dataKeys.count > 1 && opened.table.dataKeys.last == opened.dataKey
        }
        if isReplaced { _ = try test() }
        return isReplaced
    }

    private func replacement(_ newKey: Key, isRotation: Bool, ignoresUnseenUsers: Bool) -> StoreReplacement {
        StoreReplacement(
            path: path,
            old: Sealing(key: key, settings: settings),
            new: Sealing(key: newKey, settings: settings),
            busyTimeout: busyTimeout,
            ignoresUnseenUsers: ignoresUnseenUsers,
            words: isRotation
                ? .init(
                    name: "The rotation",
                    before: "unchanged under the old key and the old data key",
                    after: "has the new key and a new data key"
                )
                : .init(
                    name: "The re-encryption",
                    before: "unchanged under the old data key",
                    after: "has the new data key"
                )
        )
    }

    /// Ends a re-encryption that failed. If the store is as it was, the new data key is listed for nothing, and goes. If the
    /// store was replaced already, both stay: a power failure may bring the old one back.
    private func settleUnchanged(
        _ table: SlotTable,
        _ newSalt: [UInt8],
        _ error: DatabaseError
    ) throws(DatabaseError) -> Never {
        let file = SlotFiles(of: path).store
        // If that cannot be found out, both stay.
        let header = try? KeySlots.header(of: file)
        let isUnchanged = header.map { $0 != newSalt && table.dataKey(salt: $0) != nil } ?? false
        guard isUnchanged else {
            throw error.adding(context: "The slots list the old and the new data key, until the next change")
        }
        // If this fails, the next change removes the new data key.
        _ = try? change { (_, _) throws(DatabaseError) in
        } body: { (_, _) throws(DatabaseError) in
        }  // See above.
        throw error
    }

    private static func header(of file: String) throws(DatabaseError) -> [UInt8] {
        let connection = try Connection(path: file, flags: SQLITE_OPEN_READONLY)
        defer { connection.close() }
        return try connection.mainFileHeader()
    }

    /// Lists a new data key beside the old one, wrapped for the slots that are kept.
    private func addDataKey(
        _ secret: SecretBytes,
        _ salt: [UInt8],
        _ newKey: Key?,
        _ scrypt: SlotTable.Scrypt,
        _ kept: [NewSlot],
        removing lost: Set<String>?
    ) throws(DatabaseError) -> SlotTable {
        let opening = try opening()
        let connection = try opening.open()
        defer { connection.close() }
        try connection.requireWritable(path)
        let before = try slots(opening, connection)
        guard let own = before.slot else {
            throw .malformedKey("The data key itself has no slot to keep. Give the key of a slot.")
        }
        var table = before.table.settled(before.dataKey)
        let number = before.dataKey.number % SlotTable.maximumNumber + 1
        let dataKey = SlotTable.DataKey(number: number, salt: salt)
        guard number > before.dataKey.number else {
            throw .notAllowed("The store has had too many data keys. Give it slots anew.")
        }
        // Those that go, because the new key takes their place, and that which the new key may have already.
        let olds = newKey == nil ? [] : try before.slots(openedBy: key)
        let target = try newKey.flatMap { key throws(DatabaseError) in try before.slots(openedBy: key).first } ?? own
        for (index, slot) in kept.enumerated() where kept[..<index].contains(where: { $0.label == slot.label }) {
            throw .notAllowed("The slot \(slot.label) is to be kept twice. Nothing was changed.")
        }
        for kept in kept where newKey != nil && olds.contains(where: { $0.label == kept.label }) {
            throw .notAllowed(
                "The slot \(kept.label) is the one whose key is replaced, and so cannot be kept. Nothing was changed."
            )
        }
        table.dataKeys.append(dataKey)
        for index in table.slots.indices where !olds.contains(where: { $0.number == table.slots[index].number }) {
            let slot = table.slots[index]
            let given = kept.first { $0.label == slot.label }
            switch (given?.content, slot.number == target.number) {
            case (.program(let arguments, let unwrap, let timeout), _):
                guard slot.kind == .program else { throw KeySlots.otherKind(slot.label) }
                let command = KeyCommand(arguments, timeout: timeout.seconds, kind: "wrap command")
                let wrap = try table.wrap(secret, dataKey, by: command)
                table.slots[index].wraps.append(wrap)
                guard let unwrap else { continue }
                let other = try Key.program(KeyCommand(unwrap, timeout: timeout.seconds, kind: "unwrap command"))
                guard try table.unwrap(table.slots[index], dataKey, with: other)?.isEqual(to: secret) == true else {
                    throw .keySourceFailed(
                        "What the wrap command of the slot \(slot.label) made does not unwrap. Nothing was changed."
                    )
                }
            case (.key(let other), _):
                guard let found = try before.table.unwrap(slot, before.dataKey, with: other),
                    found.isEqual(to: before.secret)
                else {
                    throw DatabaseError(
                        extendedCode: SQLITE_NOTADB,
                        reason: .wrongKey,
                        message:
                            "The slot \(slot.label) does not open with the key that was given for it. Nothing was changed."
                    )
                }
                let scrypt = slot.wraps.first?.scrypt ?? .usual
                let wrap = try table.wrap(secret, dataKey, slot: slot.number, under: other, scrypt: scrypt)
                table.slots[index].wraps.append(wrap)
            case (_, true):
                guard slot.kind != .program else {
                    throw .malformedKey("The slot \(slot.label) is one of a program, which needs its wrap command.")
                }
                let scrypt = slot.wraps.first?.scrypt ?? .usual
                let wrap = try table.wrap(secret, dataKey, slot: slot.number, under: newKey ?? key, scrypt: scrypt)
                table.slots[index].wraps.append(wrap)
            case (nil, false): break
            }
        }
        for kept in kept where before.table.slot(kept.label) == nil { throw KeySlots.unknown(kept.label) }
        let others = table.slots.filter { slot in
            !slot.wraps.contains { $0.dataKey == number } && !olds.contains { $0.number == slot.number }
        }
        .map(\.label)
        if let newKey, olds.contains(where: { $0.number == target.number }) {
            // Of the slots that share a label, one is of the old data key and one of the new: whichever the store has then,
            // the label stays.
            var new = NewSlot(.key(newKey), label: own.label, isRecovery: own.isRecovery)
            new.scrypt = scrypt
            try table.slots.append(table.slot(new, number: table.nextSlotNumber, secret, dataKey))
        }
        if let lost, let other = others.first(where: { !lost.contains($0) }) {
            throw DatabaseError(
                extendedCode: SQLITE_BUSY,
                reason: .busy,
                message:
                    "Somebody has added the slot \(other) meanwhile, which would be removed. Nothing was changed. Try again."
            )
        }
        return try connection.changeSlots(
            orSay: """
                The store is unchanged under the old data key, but the slots may be changed: they may list a new one too, \
                until the next change
                """
        ) { (isWritten) throws(DatabaseError) in
            let now = try slots(opening, connection)
            guard now.sealed.bytes == before.sealed.bytes else {
                throw DatabaseError(
                    extendedCode: SQLITE_BUSY,
                    reason: .busy,
                    message: "Others changed the slots meanwhile. Nothing was changed. Try again."
                )
            }
            // An earlier re-encryption may have left a data key, which is about to be forgotten.
            _ = try settled(now)
            try connection.requireOwnSlotMemory()
            table.generation = try nextGeneration(now, connection)
            let sealed = try SealedSlots(table, keys: [before.dataKey.number: before.secret, number: secret])
            try now.files.write(sealed, of: now.owner, hasBegun: &isWritten)
            try connection.remember(table)
            return table
        }
    }

    private static func otherKind(_ label: String) -> DatabaseError {
        .malformedKey("The slot \(label) is not one of a program.")
    }
}

extension SlotTable.Wrap {
    /// What the passphrase of the slot is derived with; `nil` for other slots.
    fileprivate var scrypt: SlotTable.Scrypt? {
        if case .sealed(.scrypt(let scrypt), _, _, _) = form { scrypt } else { nil }
    }
}
