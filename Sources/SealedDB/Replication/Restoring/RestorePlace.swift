import Foundation

/// The place of a store that is restored without its key, by the rules of ``StoreRestore``: nothing is overwritten; a store
/// that is replaced is in use by nobody, and kept.
final class RestorePlace {
    let copy: StoreCopy
    /// The copy, which other restores to this place leave alone as long as it is open.
    let file: NewFile
    /// Whether it was the repository that could not be read. The file is as good as it was then.
    private var isUnread = false
    private let path: String
    /// The path of the store that is replaced, with symbolic links followed; `nil` if there is none.
    private let target: String?
    private let locks: (store: StoreLock, usage: UsageLock)?
    private let ignoresUnseenUsers: Bool
    /// How a restore that was cut off goes on, for messages.
    private let resumption: String

    init(
        _ path: String,
        replaces: Bool,
        ignoresUnseenUsers: Bool,
        resumption: String = "Restore to the same path again, and it goes on from there"
    ) throws(DatabaseError) {
        (self.path, self.resumption) = (path, resumption)
        self.ignoresUnseenUsers = ignoresUnseenUsers
        target = replaces ? FileSystem.resolve(path) : nil
        guard let target else {
            locks = nil
            try RestorePlace.requireAbsent(path)
            (copy, file) = try RestorePlace.file(beside: path, takesAttributes: false)
            return
        }
        let usage = try UsageLock.exclusive(target, timeout: 0)
        let lock = try StoreLock(target)
        locks = (lock, usage)
        try lock.requireStore(mayBeCutOff: false)
        try FileUsers.requireNobodyElse(target, ignoresUnseen: ignoresUnseenUsers)
        (copy, file) = try RestorePlace.file(beside: target, takesAttributes: true)
    }

    static let mark = "restore"

    /// The file that a restore has left here that was cut off, or else a new one.
    private static func file(
        beside target: String,
        takesAttributes: Bool
    ) throws(DatabaseError) -> (copy: StoreCopy, file: NewFile) {
        for leftover in TemporaryFile.leftovers(of: target, mark: mark) {
            guard let copy = try StoreCopy(resuming: leftover, of: target) else { continue }
            let file: NewFile
            do throws(DatabaseError) {
                file = try locked(copy, target)
            } catch {
                // Somebody has taken the right to write to it.
                guard error.reason == .notPermitted else { throw error }
                continue
            }
            copy.removeOtherLeftovers()
            guard takesAttributes else { return (copy, file) }
            try FileSystem.copyAttributes(from: target, to: copy.path)
            return (copy, file)
        }
        StoreCopy.removeLeftovers(of: target)
        let copy = try StoreCopy(beside: target, takesAttributes: takesAttributes, mark: mark)
        do throws(DatabaseError) {
            return (copy, try locked(copy, target))
        } catch {
            // One that is another's is left to that.
            if error.reason != .busy { copy.discard() }
            throw error
        }
    }

    private static func locked(_ copy: StoreCopy, _ target: String) throws(DatabaseError) -> NewFile {
        try locked(try copy.newFile(), of: copy, target)
    }

    /// - Parameter file: that of the copy. Whoever had it locked may have given it the name of the store meanwhile, or removed it.
    static func locked(_ file: NewFile, of copy: StoreCopy, _ target: String) throws(DatabaseError) -> NewFile {
        guard try file.lock(), try copy.hasItsName() else {
            throw DatabaseError(
                extendedCode: SQLITE_BUSY,
                reason: .busy,
                message: """
                    Another restore to \(target) is at work, and writes to \(copy.path). Wait until it has ended.
                    """
            )
        }
        return file
    }

    static func requireAbsent(_ path: String) throws(DatabaseError) {
        // Slots are looked for when it is known which ones the store gets.
        let settings = CipherSettings()
        try NewStore(path: path, sealing: Sealing(key: nil, settings: settings), leavesSlots: true).requireAbsent()
    }

    func requireSpace(_ size: Int64) throws(DatabaseError) {
        let needed = size - min(size, try file.size())
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

    /// Runs what reads from the repository: if it fails, what is in the file stays.
    func reading<T>(for body: () throws(DatabaseError) -> T) throws(DatabaseError) -> T {
        do throws(DatabaseError) {
            return try body()
        } catch {
            // After damage another snapshot is tried, and what fails then fails by itself.
            isUnread = error.reason != .damaged
            throw error
        }
    }

    /// Ends a restore that has failed. What is in the file stays if the repository could not be reached, or the caller stopped
    /// it.
    /// - Returns: the error, with what is left.
    func end(_ error: DatabaseError) -> DatabaseError {
        // If it cannot be told whether there is anything, nothing is kept.
        guard isUnread || error.reason == .interrupted, (try? file.size()) ?? 0 > 0 else {
            copy.discard()
            return error
        }
        return error.adding(
            context: """
                What was read so far is in \(copy.path), which no one but a restore can use. \(resumption)
                """
        )
    }

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
            guard !copy.isInPlace else { throw error }
            throw files.discard(error).adding(context: "Nothing was restored, and \(path) is as it was")
        }
        try copy.synchronizeNew()
        do throws(DatabaseError) {
            try files.requireInPlace()
        } catch {
            throw error.adding(context: "\(path) is complete, but without its slots, which alone open it")
        }
    }
}
