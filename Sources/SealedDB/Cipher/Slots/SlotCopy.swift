/// Slots that go with a copy of their store: the copy has the same data key and salt.
struct SlotCopy {
    private let opened: OpenedSlots

    /// The key of the copy: the data key, together with its salt.
    let key: Key

    /// Opens the slots of a store whose connection is open and has read from it.
    /// - Returns: `nil` if the store has none.
    init?(_ opening: StoreOpening, _ key: Key, _ connection: Connection) throws(DatabaseError) {
        guard let opened = try opening.openedSlots(key, connection) else { return nil }
        if !opening.acceptsOlderSlots { try connection.requireNotOlder(opened, readingAgainWith: key) }
        self.opened = opened
        self.key = try opened.fixedKey()
    }

    var sealed: SealedSlots { opened.sealed }
    var owner: SlotOwner { opened.owner }

    /// The slots as they are now. While a copy is made, others may be added, and the key may lose its own.
    /// - Parameter key: the key that has opened them; `nil` for no look whether it still does.
    func current(openedBy key: Key?) throws(DatabaseError) -> SealedSlots {
        guard let key, opened.files.read().compactMap(\.slots).contains(where: { $0.bytes != sealed.bytes }) else {
            return sealed
        }
        do throws(DatabaseError) {
            let now = try opened.files.open(with: key.unused, salt: opened.dataKey.salt)
            // Older ones were put there by somebody else.
            return now.table.generation < sealed.table.generation ? sealed : now.sealed
        } catch {
            throw error.adding(
                context: "The slots of the store were changed meanwhile. Begin again with a key that opens it"
            )
        }
    }

    /// Throws if other slots lie where the copy is to be made. The very same may: they were left by a process that was
    /// killed.
    func requireAbsent(beside path: String) throws(DatabaseError) {
        let files = SlotFiles(of: path)
        for copy in files.read() {
            if case .missing = copy.content { continue }
            guard copy.slots?.bytes == sealed.bytes else { return try files.requireNone() }
        }
    }

    /// Whether these files open a store with this data key, and are as new as these slots: then they stay, because they may
    /// lack slots that were removed since.
    func isServed(by files: SlotFiles) throws(DatabaseError) -> Bool {
        for slots in files.read().compactMap(\.slots) where slots.table.generation >= sealed.table.generation {
            if slots.table.store == sealed.table.store, try owner.owns(slots) { return true }
        }
        return false
    }

    /// Throws if the key, which has opened these slots, does not open those that lie beside the path and are to stay.
    func requireSame(_ key: Key, opens path: String) throws(DatabaseError) {
        do throws(DatabaseError) {
            _ = try SlotFiles(of: path).open(with: key, salt: opened.dataKey.salt)
        } catch {
            throw error.adding(
                context: """
                    Newer slots of the store lie beside \(path), which would stay, and which this key does not open. Give a key \
                    that opens them and the backup; or move them aside, and those of the backup come back, with the slots that \
                    were removed since
                    """
            )
        }
    }
}

extension OpenedSlots {
    /// The data key, together with its salt.
    func fixedKey() throws(DatabaseError) -> Key { try Key.raw(secret, salt: dataKey.salt) }
}
