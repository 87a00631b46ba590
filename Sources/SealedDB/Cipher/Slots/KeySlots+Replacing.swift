import Foundation

extension KeySlots {
    /// Replaces the slot of the key by one of another key, with the same label: a rotation that takes milliseconds. If the
    /// key opens several slots, as after a rotation that was cut off, all of them go.
    ///
    /// First the new slot is added and tried, with the key as its source gives it a second time; then, in the next
    /// generation, the old slot is removed. Whatever happens in between, one of the two keys opens the store, and the same
    /// call goes on.
    /// - Throws: ``DatabaseError``. Its message says if both slots are there.
    public func replace(with newKey: Key) throws(DatabaseError) -> Report {
        try replace(with: newKey, scrypt: .usual).report
    }

    /// - Returns: what the slots are then, and how large the store is.
    func replace(
        with newKey: Key,
        scrypt: SlotTable.Scrypt
    ) throws(DatabaseError) -> (report: Report, totals: PageTotals) {
        guard newKey != key else { throw KeyRotation.sameKey }
        try newKey.confirm()
        let hold = KeyHold()
        defer { hold.release() }
        let session = try SlotSession(self, hold)
        defer { session.close() }
        let opened = try session.slots()
        guard opened.slot != nil else {
            throw .malformedKey("The data key itself has no slot to replace. Add one for the new key.")
        }
        let olds = try opened.slots(openedBy: key)
        // If there is another slot, an earlier call was cut off after its first step, or the key has a slot of its own.
        let isAdded = try opened.slots(openedBy: newKey).contains { slot in
            !olds.contains { $0.number == slot.number }
        }
        let next =
            try isAdded
            ? SlotSession(self.opened(by: newKey), hold)
            : add(newKey, replacing: requireWhole(olds, opened.table), scrypt, session, hold)
        defer { next.close() }
        let table: SlotTable
        do throws(DatabaseError) {
            table = try next.change { (_, opened) throws(DatabaseError) in
                // Those that the old key opens now: a re-encryption may have made others of them.
                try olds + opened.slots(openedBy: key)
            } body: { (table, olds) throws(DatabaseError) in
                try table.drop { slot in olds.contains(where: slot.isSame) }
            }
        } catch {
            throw error.adding(context: "The new key opens the store, and so may the old one still")
        }
        do throws(DatabaseError) {
            return (report(table), try PageTotals(of: next.connection))
        } catch {
            throw error.adding(context: "The store has the new key, but could not be looked at again")
        }
    }

    /// Adds the slot of a new key beside that which it replaces, and tries it.
    /// - Returns: the store, opened by the new slot with the key as its source gives it a second time.
    private func add(
        _ newKey: Key,
        replacing old: SlotTable.Slot,
        _ scrypt: SlotTable.Scrypt,
        _ session: SlotSession,
        _ hold: KeyHold
    ) throws(DatabaseError) -> SlotSession {
        func new(_ label: String, _ isRecovery: Bool) -> NewSlot {
            var new = NewSlot(.key(newKey), label: label, isRecovery: isRecovery)
            new.scrypt = scrypt
            return new
        }
        let table = try session.change(adding: newKey) { (table, opened) throws(DatabaseError) in
            // Somebody may have given it another label, or have removed it and given its number to another one.
            guard let index = table.slots.firstIndex(where: old.isSame) else { throw KeySlots.unknown(old.label) }
            let current = table.slots[index]
            return (
                index,
                try table.slot(
                    new(SlotTable.replacedLabel(current.label), current.isRecovery),
                    number: table.nextSlotNumber,
                    opened.secret,
                    opened.dataKey
                )
            )
        } body: { (table, change) throws(DatabaseError) in
            let (index, slot) = change
            table.slots[index].label = table.freeLabel(slot.label)
            try table.append(slot, isReplacement: true)
        }
        // The one that was appended.
        let added = table.slots[table.slots.count - 1]
        do throws(DatabaseError) {
            // A key can always be tried.
            guard let next = try trial(of: new(added.label, added.isRecovery), hold) else {
                throw KeySlots.unknown(added.label)
            }
            return next
        } catch {
            throw withdraw(old, added, session, error)
        }
    }

    /// Removes a new slot that could not be tried, and gives the old one its label back.
    /// - Returns: the error, which says what stays if that fails.
    private func withdraw(
        _ old: SlotTable.Slot,
        _ added: SlotTable.Slot,
        _ session: SlotSession,
        _ error: DatabaseError
    ) -> DatabaseError {
        do throws(DatabaseError) {
            _ = try session.change { (_, _) throws(DatabaseError) in
            } body: { (table, _) throws(DatabaseError) in
                try table.drop(added.isSame)
                guard table.slot(added.label) == nil, let index = table.slots.firstIndex(where: old.isSame) else {
                    return
                }
                table.slots[index].label = added.label
            }
            return error.adding(
                context: "The new slot did not open the store, and was removed again. The old key opens it as before"
            )
        } catch let other {
            return error.adding(
                context: """
                    The new slot was added, but could not be tried, and not be removed again (\(other.message)). The old key \
                    opens the store as before, by the slot whose label may end with .replaced. To go on, run the same \
                    command; or remove the slot \(added.label), if it is the new one
                    """
            )
        }
    }

    /// - Returns: the first of the slots of the old key.
    /// - Throws: ``DatabaseError/Reason/notAllowed`` if a rotation to a third key was cut off: its new slot has the label.
    private func requireWhole(_ olds: [SlotTable.Slot], _ table: SlotTable) throws(DatabaseError) -> SlotTable.Slot {
        let old = olds[0]
        let label = SlotTable.replacedLabel(old.label)
        guard label != old.label, table.slot(label) != nil else { return old }
        throw .notAllowed(
            """
            The slot of the old key is \(old.label): an earlier rotation was cut off, whose new key opens the slot \(label) by \
            now. Nothing was changed. Run that rotation again, and it goes on; or remove the slot \(label) first, if its key \
            should not open the store.
            """
        )
    }

    /// The same slots, opened by another key.
    func opened(by key: Key) -> KeySlots {
        KeySlots(
            path: path,
            key: key,
            cipherSettings: settings,
            busyTimeout: .seconds(busyTimeout),
            acceptsOlderSlots: acceptsOlder
        )
    }

    /// Whether the key opens a slot.
    func fits() throws(DatabaseError) -> Bool {
        let opening = try opening()
        do throws(DatabaseError) {
            let connection = try opening.open()
            defer { connection.close() }
            return try slots(opening, connection).slot != nil
        } catch {
            guard error.reason == .wrongKey else { throw error }
            return false
        }
    }

    // MARK: Text

    /// Puts an exported text in the place of the files of slots, which may be lost or damaged.
    /// - Throws: ``DatabaseError/Reason/malformedSlots`` for a text that is not whole or not this store's;
    ///   ``DatabaseError/Reason/wrongKey`` if no slot of it opens with the key; ``DatabaseError/Reason/olderSlots`` if the
    ///   store has seen newer slots, or if newer ones lie there, unless older ones are accepted.
    public func importSlots(_ text: String) throws(DatabaseError) -> Report {
        let sealed: SealedSlots
        do throws(DatabaseError) {
            sealed = try SealedSlots(parsing: Array(text.utf8))
        } catch {
            throw error.adding(context: "The text is not one of slots, and nothing was changed")
        }
        var opening = try StoreOpening.existing(path, key: key, settings: settings, busyTimeout: busyTimeout)
        opening.ignoresSlots = true
        let files = SlotFiles(of: path)
        let file = try Connection(path: files.store, flags: SQLITE_OPEN_READONLY)
        let salt: [UInt8]
        do throws(DatabaseError) {
            salt = try file.mainFileHeader()
        } catch {
            file.close()
            throw error
        }
        file.close()
        guard let opened = try files.open(sealed, with: key, salt: salt, needsRepair: true) else {
            throw DatabaseError(
                extendedCode: SQLITE_NOTADB,
                reason: .wrongKey,
                message: "No slot of the text opens with this key. Nothing was changed."
            )
        }
        opening.key = try opened.fixedKey()
        let hold = KeyHold()
        defer { hold.release() }
        let connection = try opening.open()
        defer { connection.close() }
        try connection.requireWritable(path)
        return try connection.changeSlots(orSay: Connection.slotsMayBeChanged) { (isWritten) throws(DatabaseError) in
            try connection.requireOwnSlotMemory()
            // From here on it opens the store, and others may not.
            try key.keepInRing(hold)
            var found: [SealedSlots] = []
            let memory = try connection.slotMemory()
            for slots in files.read().compactMap(\.slots) where slots.table.store == opened.table.store {
                if try opened.owner.owns(slots) { found.append(slots) }
            }
            let newest = found.map(\.table.generation).max() ?? 0
            if !acceptsOlder {
                let isOwn = memory?.store == Hexadecimal.string(opened.table.store)
                let seen = max(newest, isOwn ? memory?.generation ?? 0 : 0)
                guard seen <= opened.table.generation else { throw KeySlots.olderText(seen, opened) }
                try connection.requireNotOlder(opened)
            }
            var table = try settled(opened)
            table.generation = max(newest, try nextGeneration(opened, connection) - 1) + 1
            let resealed = try SealedSlots(table, keys: [opened.dataKey.number: opened.secret])
            try files.write(resealed, of: opened.owner, hasBegun: &isWritten)
            try connection.remember(table)
            return report(table)
        }
    }

    private static func olderText(_ newest: Int64, _ opened: OpenedSlots) -> DatabaseError {
        DatabaseError(
            extendedCode: SQLITE_AUTH,
            reason: .olderSlots,
            message: """
                The text is of generation \(opened.table.generation), and the store has had slots of generation \(newest): in \
                the text slots may be that were removed since. Nothing was changed. `sealdb slots import` takes it all the \
                same with --accept-older-slots.
                """
        )
    }
}

extension SlotTable {
    private static let markOfReplaced = ".replaced"

    /// The label that a slot had before a rotation that was cut off; its own if it was not.
    fileprivate static func replacedLabel(_ label: String) -> String {
        guard let mark = label.range(of: markOfReplaced, options: .backwards), mark.lowerBound > label.startIndex,
            label[mark.upperBound...].isEmpty
                || label[mark.upperBound...].first == "-"
                    && label[mark.upperBound...].dropFirst().allSatisfy(\.isNumber)
        else { return label }
        return String(label[..<mark.lowerBound])
    }

    /// The slots that a rotation would have removed that was cut off.
    var leftSlots: [Slot] { slots.filter { SlotTable.replacedLabel($0.label) != $0.label } }

    /// A label for a slot that is about to be removed.
    fileprivate func freeLabel(_ label: String) -> String {
        let start = label.prefix(50) + SlotTable.markOfReplaced
        var result = start
        var count = 2
        while slot(String(result)) != nil {
            result = start + "-\(count)"
            count += 1
        }
        return String(result)
    }
}
