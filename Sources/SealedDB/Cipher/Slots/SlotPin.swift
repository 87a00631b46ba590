import Foundation

extension KeySlots {
    /// What a service keeps of the slots of its store, elsewhere than beside the store. Whoever puts the store and its slots
    /// back together, or another store with slots of their own in its place, is found out by it.
    public struct Pin: Sendable, Codable, Hashable {
        /// Random, and the same as long as the store has slots; hex digits.
        public let store: String
        /// The least generation that is accepted.
        public let generation: Int64
        /// What only the data key gives, and what does not tell the data key; hex digits. Each re-encryption changes it.
        public let dataKey: String

        /// A pin that was kept before.
        public init(store: String, generation: Int64, dataKey: String) {
            (self.store, self.generation, self.dataKey) = (store, generation, dataKey)
        }
    }

    /// Opens the store with the key, and returns what to keep of its slots for ``Configuration/slotPin``. Writes nothing.
    /// - Throws: ``DatabaseError/Reason/malformedSlots``, ``DatabaseError/Reason/olderSlots`` and the errors of
    ///   opening.
    public func pin() throws(DatabaseError) -> Pin {
        try opening().look { connection throws(DatabaseError) in try slots(opening(), connection).pin() }
    }
}

extension OpenedSlots {
    func pin() throws(DatabaseError) -> KeySlots.Pin {
        let mark = try SecretBytes.withScratch(count: Key.saltByteCount) { target throws(DatabaseError) in
            try secret.withBytes { secret throws(DatabaseError) in
                try KeyWrapping.expand(secret, salt: table.store, info: "\(SlotTable.header) pin", into: target)
            }
            return Array(target)
        }
        return KeySlots.Pin(
            store: Hexadecimal.string(table.store),
            generation: table.generation,
            dataKey: Hexadecimal.string(mark)
        )
    }
}

extension KeySlots.Pin {
    func requireFit(_ slots: OpenedSlots?, of name: String) throws(DatabaseError) {
        guard let slots else { throw KeySlots.Pin.refusal("\(name) has no key slots, and they are pinned") }
        let found = try slots.pin()
        guard found.store == store, found.dataKey == dataKey else {
            throw KeySlots.Pin.refusal(
                """
                The slots of \(name) are not those that are pinned: \
                \(found.store == store ? "they have another data key" : "they are another store's, or were made anew")
                """
            )
        }
        guard found.generation >= generation else {
            throw KeySlots.Pin.refusal(
                "The slots of \(name) are of generation \(found.generation), and \(generation) is the least that is accepted"
            )
        }
    }

    private static func refusal(_ what: String) -> DatabaseError {
        DatabaseError(
            extendedCode: SQLITE_AUTH,
            reason: .olderSlots,
            message: """
                \(what): somebody may have put something else there, or they were changed on purpose, as by a re-encryption. \
                The store was not opened. Look at it with `sealdb slots list`, and pin what should be there.
                """
        )
    }
}
