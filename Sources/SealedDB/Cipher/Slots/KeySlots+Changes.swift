extension KeySlots {
    /// Adds a slot, and tries it before this returns: the files are read again, the slot is unwrapped with the key that
    /// its source gives a second time, and the store is opened with it.
    /// - Throws: ``DatabaseError``, with ``DatabaseError/Reason/alreadyExists`` if there is a slot of this label, or if the
    ///   key opens one already. If the new slot cannot be tried with success, it is removed again.
    public func add(_ new: NewSlot) throws(DatabaseError) -> Report {
        try SlotTable.validate(label: new.label)
        try new.confirm()
        let hold = KeyHold()
        defer { hold.release() }
        let table = try change(adding: new.key, hold) { (table, opened) throws(DatabaseError) in
            if case .key(let key) = new.content, let slot = try opened.slots(openedBy: key).first {
                throw KeySlots.opens(slot)
            }
            return try table.slot(new, number: table.nextSlotNumber, opened.secret, opened.dataKey)
        } body: { (table, slot) throws(DatabaseError) in
            try table.append(slot)
        }
        let added = table.slot(new.label)
        do throws(DatabaseError) {
            return try tried([new], table)
        } catch {
            do throws(DatabaseError) {
                _ = try drop { slot in added?.isSame(slot) ?? false }
            } catch let other {
                throw error.adding(
                    context: """
                        The new slot \(new.label) could not be tried, and could not be removed again (\(other.message)); \
                        remove it
                        """
                )
            }
            throw error.adding(context: "The new slot \(new.label) did not open the store, and was removed again")
        }
    }

    /// Removes a slot, but neither the last one nor the one that this key opens: its own key is the proof that a slot is
    /// left that opens.
    ///
    /// Whoever has a copy of the files of slots as they were, or of a backup, and the key of that slot, can still open the
    /// store: its data key is the same. ``reencrypt(keeping:removing:progress:)`` is the remedy.
    /// - Throws: ``DatabaseError/Reason/noSuchFile`` if there is no such slot; ``DatabaseError/Reason/notAllowed`` if it is
    ///   the last one, or the one that the key opens.
    public func remove(_ label: String) throws(DatabaseError) -> Report {
        let table = try change { (_, opened) throws(DatabaseError) in
            guard opened.slot?.label == label, opened.table.slots.count > 1 else { return }
            throw .notAllowed(
                """
                The slot \(label) is the one that this key opens, and nothing proves that another one can still be opened: \
                remove it with the key of another slot, or replace it by a rotation.
                """
            )
        } body: { (table, _) throws(DatabaseError) in
            guard table.slot(label) != nil else { throw KeySlots.unknown(label) }
            try table.drop { $0.label == label }
        }
        return report(table)
    }

    /// Gives a slot another label.
    /// - Throws: ``DatabaseError/Reason/noSuchFile`` if there is no slot of this label;
    ///   ``DatabaseError/Reason/alreadyExists`` if there is one of the new label; the errors of opening. The slots are
    ///   as they were then, unless the message says otherwise.
    public func rename(_ label: String, to newLabel: String) throws(DatabaseError) -> Report {
        try SlotTable.validate(label: newLabel)
        let table = try change { (_, _) throws(DatabaseError) in
        } body: { (table, _) throws(DatabaseError) in
            guard let index = table.slots.firstIndex(where: { $0.label == label }) else {
                throw KeySlots.unknown(label)
            }
            guard table.slot(newLabel) == nil else { throw KeySlots.exists(newLabel) }
            table.slots[index].label = newLabel
        }
        return report(table)
    }

    /// Opens the store with the key, and makes sure that the store and both files of slots are as they should be. With
    /// `acceptsOlderSlots`, the older slots become the newest.
    /// - Returns: the label of the slot that the key opens; `nil` for the data key itself.
    /// - Throws: ``DatabaseError/Reason/malformedSlots`` if a file of slots is missing or damaged and cannot be made
    ///   anew, ``DatabaseError/Reason/olderSlots``, and the errors of opening.
    public func test() throws(DatabaseError) -> (label: String?, report: Report) {
        let opening = try opening()
        let connection = try opening.open()
        let opened: OpenedSlots
        let isRemembered: Bool
        do throws(DatabaseError) {
            // The opening has repaired a file that was missing or damaged, if it could.
            opened = try slots(opening, connection)
            _ = try connection.integer("SELECT count(*) FROM sqlite_schema")
            isRemembered = try connection.slotMemory() == opened.table.memory
        } catch {
            connection.close()
            throw error
        }
        guard connection.close() else {
            throw DatabaseError(extendedCode: SQLITE_BUSY, message: "The store could not be closed after the test.")
        }
        guard !isRemembered || opened.table.dataKeys.count > 1 || opened.needsRepair else {
            return (opened.slot?.label, report(opened.table))
        }
        // A change was cut off, a file could not be repaired, or the slots are older and accepted: a new generation settles
        // it, or says what is in its way.
        let table = try change { (_, _) throws(DatabaseError) in
        } body: { (_, _) throws(DatabaseError) in
        }
        return (opened.slot?.label, report(table))
    }

    // MARK: Steps

    func report(_ table: SlotTable) -> Report { Report(SlotFiles(of: path).store, table) }

    /// Changes the slots by one generation; see ``SlotSession/change(adding:_:body:)``.
    /// - Parameter hold: as in a session; `nil` if this is the only step.
    func change<T>(
        adding new: Key? = nil,
        _ hold: KeyHold? = nil,
        _ prepare: (SlotTable, OpenedSlots) throws(DatabaseError) -> T,
        body: (inout SlotTable, T) throws(DatabaseError) -> Void
    ) throws(DatabaseError) -> SlotTable {
        let ownHold = KeyHold()
        defer { ownHold.release() }
        let session = try SlotSession(self, hold ?? ownHold)
        defer { session.close() }
        return try session.change(adding: new, prepare, body: body)
    }

    /// The generation of a change.
    func nextGeneration(_ now: OpenedSlots, _ connection: Connection) throws(DatabaseError) -> Int64 {
        var newest = now.table.generation
        // What the store says of itself is believed as long as a generation can have that number.
        if let seen = try connection.slotMemory()?.generation, seen < SlotTable.maximumGeneration {
            newest = max(newest, seen)
        }
        guard newest < SlotTable.maximumGeneration else {
            throw .notAllowed("The slots have been changed too often. Give the store slots anew.")
        }
        return newest + 1
    }

    /// The table without the data keys that the store does not need. A re-encryption lists the old and the new one, and
    /// may have been cut off, or could not make the swap durable: then a power failure brings the old store back. So none is
    /// forgotten before the directory is synced. While a re-encryption runs, nobody else has the store open.
    func settled(_ now: OpenedSlots) throws(DatabaseError) -> SlotTable {
        guard now.table.dataKeys.count > 1 else { return now.table }
        do throws(DatabaseError) {
            try FileSystem.synchronizeDirectory(of: now.files.store)
        } catch {
            throw error.adding(
                context: """
                    The slots list two data keys, and which of them the store has after a power failure is not known until \
                    its directory is synced. Both stay listed, and nothing was changed
                    """
            )
        }
        return now.table.settled(now.dataKey)
    }

    /// Removes the slots that fit.
    func drop(_ isDropped: (SlotTable.Slot) -> Bool) throws(DatabaseError) -> SlotTable {
        try change { (_, _) throws(DatabaseError) in
        } body: { (table, _) throws(DatabaseError) in
            try table.drop(isDropped)
        }
    }

    /// Tries new slots: reads their keys again, unwraps with them what the files hold now, and opens the store.
    func tried(_ new: [NewSlot], _ table: SlotTable) throws(DatabaseError) -> Report {
        var report = report(table)
        for new in new {
            if let session = try trial(of: new, KeyHold()) { session.close() } else { report.untried.append(new.label) }
        }
        return report
    }

    /// Opens the store by a new slot.
    /// - Parameter hold: that of the session.
    /// - Returns: the store, opened; `nil` if the slot cannot be tried.
    func trial(of new: NewSlot, _ hold: KeyHold) throws(DatabaseError) -> SlotSession? {
        guard let key = try new.keyToTry() else { return nil }
        let session = try SlotSession(opened(by: key), hold)
        do throws(DatabaseError) {
            let opened = try session.slots()
            guard let slot = opened.table.slot(new.label),
                let secret = try opened.table.unwrap(slot, opened.dataKey, with: key), secret.isEqual(to: opened.secret)
            else {
                throw DatabaseError(
                    extendedCode: SQLITE_CORRUPT,
                    reason: .unverified,
                    message: "The slot \(new.label) does not hold the data key of the store."
                )
            }
            return session
        } catch {
            session.close()
            throw error
        }
    }

    static func unknown(_ label: String) -> DatabaseError {
        DatabaseError(
            extendedCode: SQLITE_ERROR,
            reason: .noSuchFile,
            message: "There is no slot of this label. Nothing was changed. `sealdb slots list` lists them."
        )
    }

    static func opens(_ slot: SlotTable.Slot) -> DatabaseError {
        DatabaseError(
            extendedCode: SQLITE_ERROR,
            reason: .alreadyExists,
            message: "This key opens the slot \(slot.label) already, and a key has one slot. Nothing was changed."
        )
    }

    static func exists(_ label: String) -> DatabaseError {
        DatabaseError(
            extendedCode: SQLITE_ERROR,
            reason: .alreadyExists,
            message: "There is a slot \(label) already. Nothing was changed."
        )
    }
}

extension KeySlots.NewSlot {
    /// `nil` for a program.
    var key: Key? { if case .key(let key) = content { key } else { nil } }

    /// Makes sure that the key can be read again.
    /// - Parameter hold: what keeps it in its ring from then on.
    func confirm(keptBy hold: KeyHold? = nil) throws(DatabaseError) { _ = try key?.confirmed(keptBy: hold) }

    /// The key as its source gives it again; `nil` if the slot cannot be tried.
    fileprivate func keyToTry() throws(DatabaseError) -> Key? {
        switch content {
        case .key(let key): try key.confirmed() ?? key.unused
        case .program(_, let unwrap, let timeout):
            try unwrap.map { arguments throws(DatabaseError) in
                try Key.program(KeyCommand(arguments, timeout: timeout.seconds, kind: "unwrap command"))
            }
        }
    }
}

extension SlotTable {
    var memory: Connection.SlotMemory {
        Connection.SlotMemory(store: Hexadecimal.string(store), generation: generation)
    }

    /// The table without other data keys than that of the store, which a re-encryption listed that ended or was cut off.
    /// While one runs, nobody else has the store open.
    func settled(_ dataKey: DataKey) -> SlotTable {
        guard dataKeys.count > 1 else { return self }
        var table = self
        table.dataKeys = [dataKey]
        for index in table.slots.indices { table.slots[index].wraps.removeAll { $0.dataKey != dataKey.number } }
        table.slots.removeAll { $0.wraps.isEmpty }
        return table
    }

    /// Makes a slot for data keys.
    func slot(
        _ new: KeySlots.NewSlot,
        number: Int,
        _ secret: SecretBytes,
        _ dataKey: DataKey
    ) throws(DatabaseError) -> Slot {
        let wrap: Wrap
        let kind: Kind
        switch new.content {
        case .key(let key):
            kind = try SlotTable.kind(of: key)
            wrap = try self.wrap(secret, dataKey, slot: number, under: key, scrypt: new.scrypt)
        case .program(let arguments, _, let timeout):
            kind = .program
            let command = KeyCommand(arguments, timeout: timeout.seconds, kind: "wrap command")
            wrap = try self.wrap(secret, dataKey, by: command)
        }
        return Slot(
            number: number,
            kind: kind,
            isRecovery: new.isRecovery,
            created: SlotTable.today,
            label: new.label,
            wraps: [wrap]
        )
    }

    mutating func drop(_ isDropped: (Slot) -> Bool) throws(DatabaseError) {
        slots.removeAll(where: isDropped)
        guard !slots.isEmpty else {
            throw .notAllowed("The last slot cannot be removed: nobody could open the store any more.")
        }
    }

    /// - Parameter isReplacement: whether another slot is removed afterwards.
    mutating func append(_ slot: Slot, isReplacement: Bool = false) throws(DatabaseError) {
        guard self.slot(slot.label) == nil else { throw KeySlots.exists(slot.label) }
        slots.append(slot)
        let spare = isReplacement ? 1 : 0
        guard slots.count <= SlotTable.maximumSlotCount + spare,
            slots.count(where: { $0.kind == .passphrase }) <= SlotTable.maximumPassphraseCount + spare
        else {
            throw .notAllowed(
                """
                A store has at most \(SlotTable.maximumSlotCount) slots, and \(SlotTable.maximumPassphraseCount) with a \
                passphrase. Nothing was changed.
                """
            )
        }
    }
}
