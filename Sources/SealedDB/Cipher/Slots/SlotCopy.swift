/// Slots that go with a copy of their store: the copy has the same data key and salt.
struct SlotCopy {
    private let opened: OpenedSlots

    /// The key of the copy: the data key, together with its salt.
    let key: Key

    /// Opens the slots of a store whose connection is open.
    /// - Returns: `nil` if the store has none.
    init?(_ opening: StoreOpening, _ key: Key, _ connection: Connection) throws(DatabaseError) {
        guard let opened = try opening.openedSlots(key, connection) else { return nil }
        self.opened = opened
        self.key = try opened.fixedKey()
    }

    var generation: Int64 { opened.table.generation }

    /// Throws if other slots lie where the copy is to be made. Slots of the same store may: a backup that was killed left
    /// them.
    func requireAbsent(beside path: String) throws(DatabaseError) {
        let files = SlotFiles(of: path)
        let found = files.read()
        for copy in found {
            if case .missing = copy.content { continue }
            guard let slots = copy.slots, slots.table.store == opened.table.store,
                try isAuthentic(slots)
            else { return try files.requireNone() }
        }
    }

    /// Whether the slots were written by somebody who has the data key, and list it.
    func isAuthentic(_ slots: SealedSlots) throws(DatabaseError) -> Bool {
        guard let key = slots.table.dataKey(salt: opened.dataKey.salt) else { return false }
        do throws(DatabaseError) {
            try slots.requireAuthentic(under: opened.secret, key.number)
            return true
        } catch {
            guard error.reason == .malformedSlots else { throw error }
            return false
        }
    }

    func write(beside path: String, attributesFrom model: String) throws(DatabaseError) {
        try SlotFiles(of: path).write(opened.sealed, attributesFrom: model)
    }
}

extension OpenedSlots {
    /// The data key, together with its salt.
    func fixedKey() throws(DatabaseError) -> Key { try Key.raw(secret, salt: dataKey.salt) }
}
