extension KeyRotation {
    /// Whether the store already has the new key, for example because an earlier rotation succeeded but its result was
    /// never seen. If so, this makes the new key durable; it changes nothing else.
    /// - Throws: ``DatabaseError`` if opening the store fails for a reason other than the key.
    public func isDone() throws(DatabaseError) -> Bool {
        guard let path = FileSystem.resolve(path) else { throw .system("Cannot open \(path)", reason: .noSuchFile) }
        if hasSlots, newKey != oldKey, try slots(oldKey).fits() { return false }
        let opening = StoreOpening(path: path, key: newKey, settings: settings, busyTimeout: busyTimeout)
        do throws(DatabaseError) {
            // Opened for writing, so that SQLite removes what a killed process left beside the store.
            try opening.open().close()
        } catch {
            guard error.reason == .wrongKey else { throw error }
            return false
        }
        try requireNoSlotLeft()
        // A process may have been killed before the slots forgot the old data key.
        if reencryption != nil, hasSlots { _ = try slots(newKey).endReencryption() }
        try FileSystem.synchronizeDirectory(of: path)
        do throws(DatabaseError) {
            try newKey.confirm()
        } catch {
            throw error.adding(context: "\(path) has the new key")
        }
        return true
    }

    /// Throws if a rotation was cut off that would have removed a slot. The old key opens none, so it is not the one of that
    /// rotation.
    private func requireNoSlotLeft() throws(DatabaseError) {
        guard hasSlots, newKey != oldKey else { return }
        let slots = slots(newKey)
        let opening = try slots.opening()
        let left = try opening.look { connection throws(DatabaseError) in
            try slots.slots(opening, connection).table.leftSlots.map(\.label)
        }
        guard !left.isEmpty else { return }
        throw DatabaseError(
            extendedCode: SQLITE_NOTADB,
            reason: .wrongKey,
            message: """
                The old key opens no slot of \(path). The new key opens one, but a rotation was cut off before it removed \
                \(left.joined(separator: ", ")), which its old key still opens. Nothing was changed. Give that key, and the \
                rotation goes on; or remove the slot.
                """
        )
    }
}
