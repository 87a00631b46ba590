import Foundation

/// Makes a copy of a database under a new name, with another key, without a key, or with other settings. The copy
/// appears under its name only after it is verified.
struct NewStore {
    let path: String
    let sealing: Sealing
    /// Whether the key has to be confirmed. False if it is also the key of another store.
    var confirmsKey = true
    /// The key that was given for the other store, if it opens the new one too. It stays in its ring until the new store has
    /// its name: somebody may have given the other store a new key meanwhile, and remove this one.
    var storeKey: Key?
    /// The slots that the new store gets; `nil` if it gets none.
    var slots: SlotCopy?
    /// Whether slots that lie there are the store's own, and stay.
    var leavesSlots = false
    /// Whether the contents of an encrypted database may be written in plaintext.
    var decrypts = false

    /// Fails if the path exists, or if a log or journal stands beside it. Call it before anything is read.
    func requireAbsent() throws(DatabaseError) {
        guard !FileSystem.mayExist(path) else {
            throw DatabaseError(
                extendedCode: SQLITE_CANTOPEN,
                reason: .alreadyExists,
                message: "\(path) exists, and is not overwritten. Nothing was changed."
            )
        }
        try StoreName.requireNoSlots(path)
        try StoreCopy.requireNoLog(of: path)
        try requireNoOtherSlots()
    }

    private func requireNoOtherSlots() throws(DatabaseError) {
        guard !leavesSlots else { return }
        guard let slots else { return try SlotFiles(of: path).requireNone() }
        try slots.requireAbsent(beside: path)
    }

    /// - Parameter context: the beginning of the message of an error. It says what was not done.
    func make(
        from source: Connection,
        method: StoreCopy.Method,
        setsWAL: Bool = false,
        context: String,
        progress: ((KeyRotation.Progress) throws -> Void)?
    ) throws(DatabaseError) -> KeyRotation.Report {
        if sealing.key == nil, !decrypts { try source.requirePlaintext() }
        let start = DispatchTime.now().uptimeNanoseconds
        // Remove what a killed process left. If another process is making a copy now, only one of the two could put its
        // file in place.
        StoreCopy.removeLeftovers(of: path)
        let copy = try StoreCopy(beside: path, takesAttributes: false)
        let newSlots = NewSlotFiles(SlotFiles(of: path))
        let totals: PageTotals
        do throws(DatabaseError) {
            totals = try copy.fill(
                from: source,
                sealing: sealing,
                method: method,
                setsWAL: setsWAL,
                progress: progress
            )
            if confirmsKey { try sealing.confirm(for: copy) }
            try storeKey?.keepInRing(copy.keyHold)
            try source.requireStill()
            // Somebody may have put slots there meanwhile.
            try requireNoOtherSlots()
            // Without them nobody could open the store.
            if let slots {
                let sealed = try slots.current(openedBy: storeKey)
                try newSlots.write(sealed, attributesFrom: copy.path, adoptsSame: true)
            }
        } catch {
            copy.discard()
            throw newSlots.discard(error).adding(context: context)
        }
        do throws(DatabaseError) {
            try copy.moveIn()
        } catch {
            throw copy.isInPlace ? error : newSlots.discard(error)
        }
        try copy.synchronizeNew()
        do throws(DatabaseError) {
            try newSlots.requireInPlace()
        } catch {
            throw error.adding(context: "\(path) is complete, but without its slots, which alone open it")
        }
        let seconds = Double(DispatchTime.now().uptimeNanoseconds - start) / 1e9
        // It was there a moment ago. If somebody has taken it away, its name is still the one that was asked for.
        let place = FileSystem.resolve(path) ?? path
        return KeyRotation.Report(path: place, pageCount: totals.count, pageSize: totals.size, seconds: seconds)
    }
}
