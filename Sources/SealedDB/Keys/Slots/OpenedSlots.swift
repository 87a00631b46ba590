import Foundation

/// The slots of a store, opened with the key of one of them.
struct OpenedSlots: Sendable {
    let files: SlotFiles
    let sealed: SealedSlots
    /// The data key that the store needs now.
    let dataKey: SlotTable.DataKey
    let secret: SecretBytes
    /// The slot that was opened; `nil` if the key is the data key itself, together with its salt.
    let slot: SlotTable.Slot?
    /// Whether one of the files is missing, damaged or older.
    let needsRepair: Bool
    /// What is wrong with the other file, if it cannot be used.
    var faultOfOther: String?

    var table: SlotTable { sealed.table }
    var owner: SlotOwner { SlotOwner(secret: secret, salt: dataKey.salt) }

    /// The slots that a key opens. Programs are not run for slots that are not their own more often than needed: one that
    /// fails opens none.
    func slots(openedBy key: Key) throws(DatabaseError) -> [SlotTable.Slot] {
        guard key.form != .rawWithSalt else { return [] }
        var found: [SlotTable.Slot] = []
        for slot in table.slots {
            do throws(DatabaseError) {
                if let other = try table.unwrap(slot, dataKey, with: key), other.isEqual(to: secret) {
                    found.append(slot)
                }
            } catch {
                // The slots of other programs fail.
                guard slot.kind == .program else { throw error }
            }
        }
        return found
    }
}

extension SlotFiles {
    /// Finds the data key of the store whose file begins with this salt, and remembers it in the key.
    ///
    /// The newest file counts. An older one is taken only if the newest is provably not as it was written, or cannot be
    /// read: otherwise a slot that was removed would go on opening the store by a second file that a killed process left.
    /// What the store remembers tells then whether it is too old.
    /// - Throws: ``DatabaseError/Reason/wrongKey`` if no slot opens with this key;
    ///   ``DatabaseError/Reason/malformedSlots`` if the slots are damaged, changed, or another store's;
    ///   ``DatabaseError/Reason/unsupported`` for another version, or a derivation beyond the limits;
    ///   ``DatabaseError/Reason/keySourceFailed`` if the program of the key failed.
    func open(with key: Key, salt: [UInt8]) throws(DatabaseError) -> OpenedSlots {
        try open(read(), with: key, salt: salt)
    }

    /// - Parameter copies: the two files, as they were read.
    func open(_ copies: [Copy], with key: Key, salt: [UInt8]) throws(DatabaseError) -> OpenedSlots {
        var faults = copies.compactMap { if case .unusable(let error) = $0.content { error } else { nil } }
        let found = copies.filter { $0.slots != nil }
            .sorted { $0.slots!.table.generation > $1.slots!.table.generation }
        let isWhole = found.count == 2 && found[0].slots!.bytes == found[1].slots!.bytes
        var refusedGeneration: Int64?
        var mismatch: DatabaseError?
        for copy in isWhole ? Array(found.prefix(1)) : found {
            guard let sealed = copy.slots, refusedGeneration ?? 0 <= sealed.table.generation else { break }
            do throws(DatabaseError) {
                if var opened = try open(sealed, with: key, salt: salt, needsRepair: !isWhole) {
                    opened.faultOfOther = faults.first?.message
                    key.slotKeys.note(opened.secret, salt: salt)
                    return opened
                }
                refusedGeneration = sealed.table.generation
            } catch {
                guard error.reason == .malformedSlots || error.reason == .keySourceFailed else { throw error }
                if error.reason == .keySourceFailed {
                    (refusedGeneration, mismatch) = (sealed.table.generation, error)
                } else {
                    faults.append(error.adding(context: copy.path))
                }
            }
        }
        if let mismatch { throw mismatch }
        if refusedGeneration == nil, let fault = faults.first {
            throw fault.adding(
                context: """
                    \(store) was not opened, because its slots cannot be used. If it never had any, and what lies there is \
                    something else, give that another name. Otherwise bring the slots back, from a backup or by \
                    `sealdb slots import`
                    """
            )
        }
        throw DatabaseError(
            extendedCode: SQLITE_NOTADB,
            reason: .wrongKey,
            message: """
                No slot of \(store) opens with this key. `sealdb slots list` tells which slots there are.\(faults.first.map { " Besides: \($0.message)" } ?? "")
                """
        )
    }

    /// Opens what is in a file of slots, or in an exported text.
    /// - Returns: `nil` if no slot opens with the key.
    func open(
        _ sealed: SealedSlots,
        with key: Key,
        salt: [UInt8],
        needsRepair: Bool
    ) throws(DatabaseError) -> OpenedSlots? {
        guard let dataKey = sealed.table.dataKey(salt: salt) else {
            throw .malformedSlots(
                """
                the slots are not those of this store, whose file begins with another salt. If the store was put there from \
                elsewhere, bring its own slots (\(SlotFiles.ending), \(SlotFiles.secondEnding)) too, or move these aside if it \
                never had any; if its beginning is damaged, `sealdb recover` reads the rest. Never delete slots.
                """
            )
        }
        if key.form == .rawWithSalt { return try openWithDataKey(sealed, dataKey, key, needsRepair: needsRepair) }
        var failure: DatabaseError?
        let start = DispatchTime.now().uptimeNanoseconds
        for slot in sealed.table.slots {
            if slot.kind == .program, let limit = key.unwrapCommand?.timeout,
                Double(DispatchTime.now().uptimeNanoseconds - start) / 1e9 > limit
            {
                throw failure ?? .keySourceFailed("The unwrap command took longer for all slots than \(limit) s.")
            }
            do throws(DatabaseError) {
                guard let secret = try sealed.table.unwrap(slot, dataKey, with: key) else { continue }
                try sealed.requireAuthentic(under: secret, dataKey.number)
                return OpenedSlots(
                    files: self,
                    sealed: sealed,
                    dataKey: dataKey,
                    secret: secret,
                    slot: slot,
                    needsRepair: needsRepair
                )
            } catch {
                // The slots of other programs fail too.
                guard slot.kind == .program else {
                    guard error.reason == .malformedSlots else { throw error }
                    if failure?.reason != .malformedSlots { failure = error }
                    continue
                }
                // A program may print anything: what it prints proves nothing of the files.
                let isOther = error.reason == .malformedSlots
                if failure == nil { failure = isOther ? SlotFiles.otherKey(slot) : error }
            }
        }
        if let failure { throw failure }
        return nil
    }

    private static func otherKey(_ slot: SlotTable.Slot) -> DatabaseError {
        .keySourceFailed(
            """
            For the slot \(slot.label) the unwrap command printed a key that is not this store's; or somebody has changed the \
            slots.
            """
        )
    }

    /// Opens with the data key itself, which nothing but its salt tells from the key of a slot.
    private func openWithDataKey(
        _ sealed: SealedSlots,
        _ dataKey: SlotTable.DataKey,
        _ key: Key,
        needsRepair: Bool
    ) throws(DatabaseError) -> OpenedSlots? {
        guard try key.embeddedSalt() == dataKey.salt else { return nil }
        let secret = try key.withSecret { bytes throws(DatabaseError) in
            try SecretBytes(copying: UnsafeRawBufferPointer(rebasing: bytes[..<Key.rawByteCount]))
        }
        try sealed.requireAuthentic(under: secret, dataKey.number)
        return OpenedSlots(
            files: self,
            sealed: sealed,
            dataKey: dataKey,
            secret: secret,
            slot: nil,
            needsRepair: needsRepair
        )
    }
}
