import Foundation

extension KeySlots {
    /// Gives a store slots that has none, without rewriting it. Its present key becomes the data key.
    ///
    /// So whoever knows that key can go on opening the store without any slot, with other programs than this library:
    /// ``reencrypt(keeping:removing:progress:)`` afterwards makes a new data key.
    /// - Parameter slots: the slots. One of them should be of the present key, and one for recovery.
    /// - Throws: ``DatabaseError``. Unless its message says otherwise, the store has no slots then.
    public func initialize(_ slots: [NewSlot]) throws(DatabaseError) -> Report {
        try KeySlots.check(slots)
        for slot in slots { try slot.confirm() }
        let files = SlotFiles(of: path)
        guard !files.mayExist else {
            throw DatabaseError(
                extendedCode: SQLITE_CANTOPEN,
                reason: .alreadyExists,
                message: "\(path) has slots already, or files of slots lie beside it. Nothing was changed."
            )
        }
        guard settings.plaintextHeaderSize == 0 else {
            throw .unusableSettings("A store with a plaintext header cannot have slots: they are found by its salt.")
        }
        let opening = try StoreOpening.existing(path, key: key, settings: settings, busyTimeout: busyTimeout)
        let connection = try opening.open()
        defer { connection.close() }
        try connection.run("PRAGMA synchronous = EXTRA")
        let salt = try connection.mainFileHeader()
        guard salt.count == Key.saltByteCount else {
            throw DatabaseError(
                extendedCode: SQLITE_CANTOPEN,
                reason: .notADatabase,
                message: "\(path) has no pages yet. Nothing was changed. Write to it first."
            )
        }
        try connection.requireOwnSlotMemory()
        // Beside what the store remembers of earlier slots, the new ones would be called older until it remembers them.
        try connection.forgetSlots()
        let secret = try key.encryptionKey(salt: salt, by: settings.parameters.keyDerivation)
        let table = try KeySlots.table(slots, secret, salt: salt)
        let newFiles = NewSlotFiles(files)
        try connection.run("BEGIN IMMEDIATE")
        do throws(DatabaseError) {
            try newFiles.write(SealedSlots(table, keys: [1: secret]), attributesFrom: files.store)
            try connection.remember(table)
            try connection.run("COMMIT")
        } catch {
            // What the store may remember of slots that are gone has no effect.
            let error = newFiles.discard(error)
            // Nothing of the transaction counts before its end.
            _ = connection.rollBack()
            throw error
        }
        do throws(DatabaseError) {
            return try tried(slots, table)
        } catch {
            throw error.adding(context: "The store has slots now, but not all of them open it; see `sealdb slots list`")
        }
    }

    /// Makes a new, empty store under a random data key, with slots. A file that exists is never overwritten.
    /// - Throws: ``DatabaseError/Reason/alreadyExists`` and others. If the directory could not be synced, the message says
    ///   that the store is complete.
    public static func create(
        path: String,
        cipherSettings: CipherSettings = .init(),
        _ slots: [NewSlot]
    ) throws(DatabaseError) -> Report {
        try check(slots)
        try Engine.requireCodec()
        guard cipherSettings.plaintextHeaderSize == 0 else {
            throw .unusableSettings("A store with a plaintext header cannot have slots: they are found by its salt.")
        }
        for slot in slots { try slot.confirm() }
        let (key, secret, salt) = try newDataKey()
        let sealing = Sealing(key: key, settings: cipherSettings)
        let files = SlotFiles(of: path)
        files.removeAbandoned()
        try NewStore(path: path, sealing: sealing, confirmsKey: false).requireAbsent()
        let table = try table(slots, secret, salt: salt)
        StoreCopy.removeLeftovers(of: path)
        let copy = try StoreCopy(beside: path, takesAttributes: false, mark: SlotFiles.markOfNew)
        let newFiles = NewSlotFiles(files)
        do throws(DatabaseError) {
            let report = ProgressReport(totals: PageTotals(count: 1, size: 4096), progress: nil)
            try copy.fill(sealing, report) { connection throws(DatabaseError) in try connection.remember(table) }
            // By this name the slots are known to be worth nothing, should this process be killed.
            try FileSystem.synchronizeDirectory(of: path)
            // The slots come first: without them nobody could open the store.
            try newFiles.write(SealedSlots(table, keys: [1: secret]), attributesFrom: copy.path)
            try copy.moveIn()
        } catch {
            if copy.isInPlace {
                throw error.adding(context: "\(path) is the new store, but may be gone after a power failure")
            }
            // First the slots: as long as the copy is there, they are known to be worth nothing.
            let error = newFiles.discard(error)
            copy.discard()
            throw error.adding(context: "No store was made")
        }
        try copy.synchronizeNew()
        do throws(DatabaseError) {
            try newFiles.requireInPlace()
            // Any slot that can be tried has the data key.
            return try KeySlots(path: path, key: key, cipherSettings: cipherSettings).tried(slots, table)
        } catch {
            throw error.adding(context: "\(path) was made, and is empty, but not all of its slots open it")
        }
    }

    private static func check(_ slots: [NewSlot]) throws(DatabaseError) {
        guard !slots.isEmpty else { throw .notAllowed("A store with slots has at least one. Nothing was changed.") }
        for slot in slots { try SlotTable.validate(label: slot.label) }
        for (index, slot) in slots.enumerated() {
            guard case .key(let key) = slot.content else { continue }
            for other in slots[..<index] {
                guard case .key(let otherKey) = other.content, otherKey == key else { continue }
                throw DatabaseError(
                    extendedCode: SQLITE_ERROR,
                    reason: .alreadyExists,
                    message:
                        "The slots \(other.label) and \(slot.label) would have the same key, which helps in no case. Nothing was changed."
                )
            }
        }
    }

    private static func table(
        _ slots: [NewSlot],
        _ secret: SecretBytes,
        salt: [UInt8]
    ) throws(DatabaseError) -> SlotTable {
        let dataKey = SlotTable.DataKey(number: 1, salt: salt)
        var table = SlotTable(
            store: try SlotTable.random(SlotTable.storeByteCount),
            generation: 1,
            dataKeys: [dataKey],
            slots: []
        )
        for slot in slots { try table.append(table.slot(slot, number: table.nextSlotNumber, secret, dataKey)) }
        return table
    }

    private static func newDataKey() throws(DatabaseError) -> (key: Key, secret: SecretBytes, salt: [UInt8]) {
        let random = try Key.random()
        let secret = try random.withSecret { bytes throws(DatabaseError) in try SecretBytes(copying: bytes) }
        let salt = try SlotTable.random(Key.saltByteCount)
        return (try Key.raw(secret, salt: salt), secret, salt)
    }

    // MARK: A new data key

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
        let (newKey, newSecret, newSalt) = try KeySlots.newDataKey()
        try key.confirm()
        for slot in slots { try slot.confirm() }
        let table = try addDataKey(newSecret, newSalt, slots, removing: lost)
        var replacement = StoreReplacement(
            path: path,
            old: Sealing(key: key, settings: settings),
            new: Sealing(key: newKey, settings: settings),
            busyTimeout: busyTimeout,
            words: .init(
                name: "The re-encryption",
                before: "unchanged under the old data key",
                after: "has the new data key"
            )
        )
        let files = SlotFiles(of: path)
        replacement.beforeSwap = { [key] () throws(DatabaseError) in
            // Nobody else has the store open now, so the slots stay as they are from here on. If they do not list the new
            // data key, somebody has changed them before.
            let isListed = files.read().contains { $0.slots?.table.dataKey(salt: newSalt) != nil }
            let opened = isListed ? try files.open(with: key.unused, salt: newSalt) : nil
            guard let opened, opened.secret.isEqual(to: newSecret), !opened.needsRepair, opened.table == table else {
                throw DatabaseError(
                    extendedCode: SQLITE_BUSY,
                    reason: .busy,
                    message: "Somebody else changed the slots meanwhile. Try again."
                )
            }
        }
        do throws(DatabaseError) {
            _ = try replacement.run(progress: progress)
        } catch {
            try settleUnchanged(table, newSalt, error)
        }
        let settled: SlotTable
        do throws(DatabaseError) {
            settled = try change { (_, _) throws(DatabaseError) in
            } body: { (_, _) throws(DatabaseError) in
            }
        } catch {
            throw error.adding(
                context:
                    "The store has the new data key, but the slots may list the old one too; the next change removes it"
            )
        }
        do throws(DatabaseError) {
            return try tried(slots, settled)
        } catch {
            throw error.adding(context: "The store has the new data key, but not all of its slots open it")
        }
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
        _ kept: [NewSlot],
        removing lost: Set<String>?
    ) throws(DatabaseError) -> SlotTable {
        let opening = try opening()
        let connection = try opening.open()
        defer { connection.close() }
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
        table.dataKeys.append(dataKey)
        for index in table.slots.indices {
            let slot = table.slots[index]
            let given = kept.first { $0.label == slot.label }
            switch (given?.content, slot.number == own.number) {
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
                let wrap = try table.wrap(secret, dataKey, slot: slot.number, under: key, scrypt: scrypt)
                table.slots[index].wraps.append(wrap)
            case (nil, false): break
            }
        }
        for kept in kept where before.table.slot(kept.label) == nil { throw KeySlots.unknown(kept.label) }
        let others = table.slots.filter { slot in !slot.wraps.contains { $0.dataKey == number } }.map(\.label)
        if let lost, let other = others.first(where: { !lost.contains($0) }) {
            throw DatabaseError(
                extendedCode: SQLITE_BUSY,
                reason: .busy,
                message:
                    "Somebody has added the slot \(other) meanwhile, which would be removed. Nothing was changed. Try again."
            )
        }
        try connection.run("PRAGMA synchronous = EXTRA")
        try connection.run("BEGIN IMMEDIATE")
        var isWritten = false
        do throws(DatabaseError) {
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
            try connection.run("COMMIT")
            return table
        } catch {
            // Nothing of the transaction counts before its end.
            _ = connection.rollBack()
            throw isWritten
                ? error.adding(
                    context: """
                        The store is unchanged under the old data key, but the slots may be changed: they may list a new one \
                        too, until the next change
                        """
                ) : error
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
