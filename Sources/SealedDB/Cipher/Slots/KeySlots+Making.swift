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
        let hold = KeyHold()
        defer { hold.release() }
        for slot in slots { try slot.confirm(keptBy: hold) }
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
        // SQLite would go on without what stands behind the damage.
        try LogDamage.requireNone(ofStore: opening.path ?? path)
        let connection = try opening.open()
        defer { connection.close() }
        try connection.requireWritable(path)
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
            throw error.adding(
                context: "The store has slots now, but they could not all be tried; `sealdb slots test` tries one"
            )
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
        let hold = KeyHold()
        defer { hold.release() }
        for slot in slots { try slot.confirm(keptBy: hold) }
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
            throw error.adding(
                context: """
                    \(path) was made, and is empty, but not all of its slots are known to open it: remove it with its slots \
                    before you make it again
                    """
            )
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

    static func newDataKey() throws(DatabaseError) -> (key: Key, secret: SecretBytes, salt: [UInt8]) {
        let random = try Key.random()
        let secret = try random.withSecret { bytes throws(DatabaseError) in try SecretBytes(copying: bytes) }
        let salt = try SlotTable.random(Key.saltByteCount)
        return (try Key.raw(secret, salt: salt), secret, salt)
    }
}
