/// What a store with slots remembers of them: the generation that it saw last, in a table of its own. So an older file of
/// slots, which may have a slot that was removed, is noticed.
extension Connection {
    static let slotMemory = "sealdb_slots"

    struct SlotMemory: Equatable {
        let store: String
        let generation: Int64
    }

    /// `nil` if the store has never had slots, or has forgotten them.
    /// - Parameter schema: the schema of an attached store.
    func slotMemory(schema: String = "main") throws(DatabaseError) -> SlotMemory? {
        let schema = schema.quotedIdentifier
        let exists = try integer(
            "SELECT count(*) FROM \(schema).sqlite_schema WHERE type = 'table' AND name = '\(Connection.slotMemory)'"
        )
        guard exists == 1, let store = try text("SELECT store FROM \(schema).\(Connection.slotMemory)") else {
            return nil
        }
        let generation = try integer("SELECT generation FROM \(schema).\(Connection.slotMemory)") ?? 0
        return SlotMemory(store: store, generation: generation)
    }

    /// Call it within a transaction.
    func remember(_ table: SlotTable) throws(DatabaseError) {
        let name = Connection.slotMemory
        try run("CREATE TABLE IF NOT EXISTS main.\(name) (store TEXT NOT NULL, generation INTEGER NOT NULL)")
        try run("DELETE FROM main.\(name)")
        let store = Hexadecimal.string(table.store)
        try run("INSERT INTO main.\(name) (store, generation) VALUES ('\(store)', \(table.generation))")
    }

    /// Throws if the slots are older than those that the store has seen.
    /// - Parameter key: if given, the slots are read again before they are called older: the files are changed before the
    ///   store remembers it, so whoever has changed them since they were read has made them as new as that.
    func requireNotOlder(
        _ slots: OpenedSlots,
        schema: String = "main",
        readingAgainWith key: Key? = nil
    ) throws(DatabaseError) {
        guard let memory = try slotMemory(schema: schema) else { return }
        func isOther(_ table: SlotTable) -> Bool { memory.store != Hexadecimal.string(table.store) }
        func isOlder(_ table: SlotTable) -> Bool { isOther(table) || memory.generation > table.generation }
        guard isOlder(slots.table) else { return }
        if let key, try !isOlder(slots.files.open(with: key, salt: slots.dataKey.salt).table) { return }
        let age =
            isOther(slots.table)
            ? "from before the store got the slots that it has now"
            : "of generation \(slots.table.generation), and the store has seen generation \(memory.generation)"
        throw DatabaseError(
            extendedCode: SQLITE_AUTH,
            reason: .olderSlots,
            message: """
                The slots of \(slots.files.store) are \(age): somebody has put older files there, in which slots may be that \
                were removed since. Nothing was changed. Bring the newer ones back; or, if they are lost, look at what \
                `sealdb slots list` says, and run `sealdb slots test --accept-older-slots`.
                """
        )
    }
}
