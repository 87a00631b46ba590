import Foundation

/// The place of a store that is restored without its key, by the rules of ``StoreRestore``: nothing is overwritten; a store
/// that is replaced is in use by nobody, and kept.
final class RestorePlace {
    let copy: StoreCopy
    private let path: String
    /// The path of the store that is replaced, with symbolic links followed; `nil` if there is none.
    private let target: String?
    private let locks: (store: StoreLock, usage: UsageLock)?
    private let ignoresUnseenUsers: Bool

    init(_ path: String, replaces: Bool, ignoresUnseenUsers: Bool) throws(DatabaseError) {
        self.path = path
        self.ignoresUnseenUsers = ignoresUnseenUsers
        target = replaces ? FileSystem.resolve(path) : nil
        guard let target else {
            locks = nil
            try RestorePlace.requireAbsent(path)
            StoreCopy.removeLeftovers(of: path)
            copy = try StoreCopy(beside: path, takesAttributes: false)
            return
        }
        let usage = try UsageLock.exclusive(target, timeout: 0)
        let lock = try StoreLock(target)
        locks = (lock, usage)
        try RestorePlace.requireStore(lock, target)
        try FileUsers.requireNobodyElse(target, ignoresUnseen: ignoresUnseenUsers)
        StoreCopy.removeLeftovers(of: target)
        copy = try StoreCopy(beside: target)
    }

    /// There is no key that could tell what a file is. What certainly is no store is not taken for one.
    private static func requireStore(_ lock: StoreLock, _ path: String) throws(DatabaseError) {
        let (size, start) = try lock.beginning(Key.saltByteCount)
        let isText = !start.isEmpty && start.allSatisfy { (0x20...0x7e).contains($0) || (9...13).contains($0) }
        guard size % 512 != 0 || isText else { return }
        throw DatabaseError(
            extendedCode: SQLITE_NOTADB,
            reason: .notADatabase,
            message: """
                \(path) is no store: \(isText ? "it begins with text" : "it does not consist of whole pages"). Move it away, \
                and restore to a name that nothing has.
                """
        )
    }

    static func requireAbsent(_ path: String) throws(DatabaseError) {
        // Slots are looked for when it is known which ones the store gets.
        let settings = CipherSettings()
        try NewStore(path: path, sealing: Sealing(key: nil, settings: settings), leavesSlots: true).requireAbsent()
    }

    func requireSpace(_ needed: Int64) throws(DatabaseError) {
        let free = try FileSystem.freeSpace(at: FileSystem.directory(of: copy.path))
        guard free >= needed else {
            throw DatabaseError(
                extendedCode: SQLITE_FULL,
                reason: .noSpace,
                message: "The store needs \(needed) bytes, and \(free) are free."
            )
        }
    }

    func discard() { copy.discard() }

    /// Makes sure, when the file is complete, that it may take its name.
    func requireReady(_ slots: SealedSlots?) throws(DatabaseError) {
        guard let target else { return try requireNoOtherSlots(slots) }
        try FileUsers.requireNobodyElse(target, ignoresUnseen: ignoresUnseenUsers)
    }

    /// The very same slots may lie there: they were left by a process that was killed, or outlived their store.
    private func requireNoOtherSlots(_ slots: SealedSlots?) throws(DatabaseError) {
        let files = SlotFiles(of: path)
        for file in files.read() {
            if case .missing = file.content { continue }
            guard let slots, file.slots?.bytes == slots.bytes else { return try files.requireNone() }
        }
    }

    /// Gives the file its name.
    /// - Returns: the path of the store that was there.
    func take(_ slots: SealedSlots?) throws(DatabaseError) -> String? {
        guard let target else {
            try takeNewName(slots)
            return nil
        }
        let context = "Nothing was restored, and \(path) is as it was"
        let kept: String
        let oldSlots: ReplacedSlots
        do throws(DatabaseError) {
            kept = "\(target).replaced-\(try FileSystem.randomName())"
            oldSlots = try ReplacedSlots(of: target, keptFor: kept, by: nil, nil)
        } catch {
            copy.discard()
            throw error.adding(context: context)
        }
        do throws(DatabaseError) {
            try copy.swapIn(keepingOldUnder: kept)
        } catch {
            oldSlots.undo()
            throw error
        }
        try copy.synchronizeSwap()
        try oldSlots.finish()
        if let slots {
            do throws(DatabaseError) {
                try NewSlotFiles(SlotFiles(store: target)).write(slots, attributesFrom: target, adoptsSame: true)
            } catch {
                throw error.adding(
                    context: """
                        The store is restored, and the old one is \(kept) with its slots; but the slots of the new one, without \
                        which nothing opens it, are not beside it yet. Run the same command again
                        """
                )
            }
        }
        try FileUsers.requireNobodyCame(to: kept, "The store now has the restored contents")
        locks?.store.release()
        locks?.usage.release()
        return kept
    }

    private func takeNewName(_ slots: SealedSlots?) throws(DatabaseError) {
        let files = NewSlotFiles(SlotFiles(of: path))
        do throws(DatabaseError) {
            // Without them nobody could open the store.
            if let slots { try files.write(slots, attributesFrom: copy.path, adoptsSame: true) }
        } catch {
            copy.discard()
            throw files.discard(error).adding(context: "Nothing was restored, and \(path) is as it was")
        }
        do throws(DatabaseError) {
            try copy.moveIn()
        } catch {
            throw copy.isInPlace ? error : files.discard(error)
        }
        try copy.synchronizeNew()
        do throws(DatabaseError) {
            try files.requireInPlace()
        } catch {
            throw error.adding(context: "\(path) is complete, but without its slots, which alone open it")
        }
    }
}
