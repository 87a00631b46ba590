/// A store that is open by one of its slots, which are read and changed. One connection serves for all steps of a change,
/// because each opening of a store costs more than a step.
struct SlotSession {
    let keySlots: KeySlots
    let opening: StoreOpening
    let connection: Connection
    private let hold: KeyHold

    /// Opens the store for writing. The caller closes it.
    /// - Parameter hold: what keeps the keys in their rings. Release it when none of the steps is undone any more.
    init(_ keySlots: KeySlots, _ hold: KeyHold) throws(DatabaseError) {
        self.keySlots = keySlots
        self.hold = hold
        opening = try keySlots.opening()
        connection = try opening.open()
        do throws(DatabaseError) {
            try connection.requireWritable(keySlots.path)
        } catch {
            connection.close()
            throw error
        }
    }

    /// Nothing is lost if this fails: no transaction is open.
    func close() { connection.close() }

    /// The slots as they are now.
    func slots() throws(DatabaseError) -> OpenedSlots { try keySlots.slots(opening, connection) }

    /// Changes the slots by one generation.
    ///
    /// From before that on, the key of the session and the new one stay in their rings. Otherwise somebody could remove one of
    /// them who has seen that the other one opens the store, which then loses that slot.
    /// - Parameters:
    ///   - new: the key of a slot that is added.
    ///   - prepare: may take its time: nobody waits for it meanwhile. It is called again if the slots have changed by then.
    ///   - body: what is changed.
    /// - Throws: ``DatabaseError``; its message says if the files, or one of them, were changed all the same.
    func change<T>(
        adding new: Key? = nil,
        _ prepare: (SlotTable, OpenedSlots) throws(DatabaseError) -> T,
        body: (inout SlotTable, T) throws(DatabaseError) -> Void
    ) throws(DatabaseError) -> SlotTable {
        for _ in 0..<5 {
            let before = try slots()
            let prepared = try prepare(before.table.settled(before.dataKey), before)
            let changed = try connection.changeSlots(orSay: Connection.slotsMayBeChanged) {
                (isWritten) throws(DatabaseError) -> SlotTable? in
                let now = try slots()
                guard now.sealed.bytes == before.sealed.bytes else { return nil }
                try connection.requireOwnSlotMemory()
                if let new {
                    try keySlots.key.keepInRingIfThere(hold)
                    try new.keepInRing(hold)
                } else {
                    try keySlots.key.keepInRing(hold)
                }
                var table = try keySlots.settled(now)
                try body(&table, prepared)
                table.generation = try keySlots.nextGeneration(now, connection)
                let sealed = try SealedSlots(table, keys: [now.dataKey.number: now.secret])
                try now.files.write(sealed, of: now.owner, hasBegun: &isWritten)
                try connection.remember(table)
                return table
            }
            if let changed { return changed }
        }
        throw DatabaseError(
            extendedCode: SQLITE_BUSY,
            reason: .busy,
            message: "Others change the slots of \(keySlots.path) again and again. This change was not made. Try again."
        )
    }
}
