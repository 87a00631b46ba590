/// What a store with slots remembers of them: the generation that it saw last, in a table of its own. So an older file of
/// slots, which may have a slot that was removed, is noticed.
extension Connection {
    static let slotMemory = GuardRules.slotMemory

    /// As SQLite keeps it of ``remember(_:)``.
    static let schemaOfMemory =
        "CREATE TABLE \(slotMemory) (store TEXT NOT NULL, generation INTEGER NOT NULL)"

    struct SlotMemory: Equatable {
        let store: String
        let generation: Int64
    }

    /// `nil` if the store has never had slots, or has forgotten them.
    /// - Parameter schema: the schema of an attached store.
    func slotMemory(schema: String = "main") throws(DatabaseError) -> SlotMemory? {
        guard try schemaOfSlotMemory(schema) == Connection.schemaOfMemory else { return nil }
        let table = "\(schema.quotedIdentifier).\(Connection.slotMemory)"
        guard let store = try text("SELECT store FROM \(table)") else { return nil }
        return SlotMemory(store: store, generation: try integer("SELECT generation FROM \(table)") ?? 0)
    }

    /// `nil` if there is nothing of that name.
    private func schemaOfSlotMemory(_ schema: String = "main") throws(DatabaseError) -> String? {
        try text(
            """
            SELECT coalesce(sql, type) FROM \(schema.quotedIdentifier).sqlite_schema \
            WHERE name = '\(Connection.slotMemory)' COLLATE NOCASE
            """
        )
    }

    /// Throws if the store has something else of that name, which is somebody's own, or a trigger that would run when it
    /// remembers.
    func requireOwnSlotMemory() throws(DatabaseError) {
        let others = try integer(
            """
            SELECT count(*) FROM main.sqlite_schema WHERE tbl_name = '\(Connection.slotMemory)' COLLATE NOCASE \
            AND coalesce(sql, '') <> '\(Connection.schemaOfMemory)'
            """
        )
        guard others != 0 else { return }
        throw DatabaseError(
            extendedCode: SQLITE_ERROR,
            reason: .alreadyExists,
            message: """
                The store has a \(Connection.slotMemory) of its own, or a trigger or an index of it, where a store with key \
                slots keeps what it remembers of them. It was left alone. Rename it, or drop it.
                """
        )
    }

    /// Call it within a transaction.
    func remember(_ table: SlotTable) throws(DatabaseError) {
        let name = Connection.slotMemory
        try requireOwnSlotMemory()
        try unguarded { () throws(DatabaseError) in
            try run("CREATE TABLE IF NOT EXISTS main.\(name) (store TEXT NOT NULL, generation INTEGER NOT NULL)")
            try run("DELETE FROM main.\(name)")
            let store = Hexadecimal.string(table.store)
            try run("INSERT INTO main.\(name) (store, generation) VALUES ('\(store)', \(table.generation))")
        }
    }

    /// Forgets slots that the store had once, and has no longer: those that it gets next would be called older.
    func forgetSlots() throws(DatabaseError) {
        guard try slotMemory() != nil else { return }
        try unguarded { () throws(DatabaseError) in try run("DELETE FROM main.\(Connection.slotMemory)") }
    }

    /// Throws if the store cannot be written to: then it could not remember slots that were changed all the same.
    func requireWritable(_ path: String) throws(DatabaseError) {
        guard isReadOnly else { return }
        throw DatabaseError(
            extendedCode: SQLITE_READONLY,
            message: """
                \(path) cannot be written to, and has to remember its slots. Nothing was changed. See to its permissions, or to \
                those of its directory, and try again.
                """
        )
    }

    /// Changes files of slots, and what the store remembers of them, in one transaction, so that nobody else does so
    /// meanwhile.
    /// - Parameters:
    ///   - context: what to say of the state if this fails after a file may have been changed.
    ///   - body: gets what is to be true from when a file may have been changed.
    func changeSlots<T>(
        orSay context: String,
        _ body: (inout Bool) throws(DatabaseError) -> T
    ) throws(DatabaseError) -> T {
        // The files must not be forgotten by the store after a power failure.
        try run("PRAGMA synchronous = EXTRA")
        try run("BEGIN IMMEDIATE")
        var isWritten = false
        do throws(DatabaseError) {
            let result = try body(&isWritten)
            try run("COMMIT")
            return result
        } catch {
            // Nothing of the transaction counts before its end.
            _ = rollBack()
            throw isWritten ? error.adding(context: context) : error
        }
    }

    /// What to say of a change that failed.
    static let slotsMayBeChanged = "The slots may be changed; `sealdb slots test` tells, and settles it"

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
        if let fault = slots.faultOfOther {
            throw DatabaseError(
                extendedCode: SQLITE_AUTH,
                reason: .olderSlots,
                message: """
                    The slots of \(slots.files.store) that can be read are \(age). The newer ones cannot be used: \(fault) Bring \
                    them back, from a backup or by `sealdb slots import`, or try again if they cannot be read for a moment only.
                    """
            )
        }
        throw DatabaseError(
            extendedCode: SQLITE_AUTH,
            reason: .olderSlots,
            message: """
                The slots of \(slots.files.store) are \(age): somebody has put older files there, in which slots may be that \
                were removed since. They are not used. Bring the newer ones back; or, if they are lost, look at what \
                `sealdb slots list` says, and run `sealdb slots test --accept-older-slots`.
                """
        )
    }
}
