internal import CSealedDBSystem
import Foundation

/// Writing the files of slots of a store that is there.
///
/// No file is lost by this that does not belong to the store: what its data key did not write, such as the slots of
/// another store, gets another name before the new file takes its place.
extension SlotFiles {
    /// Writes both files, each by a new one that takes its place. Only one process at a time may do this: the caller has
    /// the write lock of the store, or keeps everybody else from it.
    ///
    /// The first is durable before the second is touched, so that at each moment one of them is whole.
    /// - Parameters:
    ///   - owner: the store whose files may be replaced.
    ///   - kept: files that are second names of those that are replaced, whosever they are.
    ///   - hasBegun: set to true when the first file may have changed.
    func write(
        _ slots: SealedSlots,
        of owner: SlotOwner,
        keptAs kept: SlotFiles? = nil,
        hasBegun: inout Bool
    ) throws(DatabaseError) {
        do throws(DatabaseError) {
            try replace(first, slots, owner, keptAs: kept?.first, hasBegun: &hasBegun)
        } catch {
            guard hasBegun else { throw error }
            throw error.adding(
                context: """
                    Whether \(first) has the change (generation \(slots.table.generation)) is not known, above all after a \
                    power failure; \(second) is as it was
                    """
            )
        }
        do throws(DatabaseError) {
            var hasBegunSecond = false
            try replace(second, slots, owner, keptAs: kept?.second, hasBegun: &hasBegunSecond)
        } catch {
            throw error.adding(
                context: """
                    \(first) has the change (generation \(slots.table.generation)), but \(second) may be as it was. The next \
                    opening for writing repairs it
                    """
            )
        }
    }

    /// Writes those files that are not as these slots.
    func repair(_ slots: SealedSlots, of owner: SlotOwner) throws(DatabaseError) {
        for copy in read() where copy.slots?.bytes != slots.bytes {
            // What is not known to be bad may be what a later version wrote, or unreadable for a moment only.
            if case .unusable(let error) = copy.content, !error.provesBadSlots { throw error }
            var hasBegun = false
            try replace(copy.path, slots, owner, keptAs: nil, hasBegun: &hasBegun)
        }
    }

    private func replace(
        _ path: String,
        _ slots: SealedSlots,
        _ owner: SlotOwner,
        keptAs kept: String?,
        hasBegun: inout Bool
    ) throws(DatabaseError) {
        SlotFiles.removeLeftovers(of: path)
        let (new, descriptor) = try SlotFiles.prepare(path, slots, attributesFrom: store)
        // The contents are synced by then, or a failure is already known.
        defer { close(descriptor) }
        do throws(DatabaseError) {
            let isThere = try setAside(path, unless: owner, keptAs: kept)
            hasBegun = true
            let result = isThere ? rename(new, path) : sealeddb_rename_exclusively(new, path)
            guard result == 0 else {
                throw .system("The new file could not take the place of \(path)", reason: .ioError)
            }
        } catch {
            // A file that cannot be removed is removed by the next change.
            unlink(new)
            throw error
        }
        guard try SecretFile.isCurrent(descriptor, path: path) else { throw SlotFiles.exchanged(path) }
        try FileSystem.synchronizeDirectory(of: path)
    }

    /// Follows the name of a file of slots that was put aside.
    static let markOfKept = ".kept-"

    static func exchanged(_ path: String) -> DatabaseError {
        DatabaseError(
            extendedCode: SQLITE_CANTOPEN,
            reason: .unverified,
            message: "Somebody else put a file in the place of the new \(path), or removed it."
        )
    }

    /// Gives a file another name that is not known to belong to the store, so that it stays when it is replaced. Where
    /// there are no second names, it loses the first one at once: the other file of slots serves until the new one is there.
    /// - Returns: whether there is a file of that name still.
    private func setAside(_ path: String, unless owner: SlotOwner, keptAs kept: String?) throws(DatabaseError) -> Bool {
        guard let status = try FileSystem.statusIfPresent(path) else { return false }
        if let kept, let other = try FileSystem.statusIfPresent(kept), status.isSameFile(as: other) { return true }
        let copy = read(path)
        if let slots = copy.slots, try owner.owns(slots) { return true }
        if case .unusable(let error) = copy.content, !error.provesBadSlots {
            throw error.adding(
                context: "What \(path) holds is not known, so it was left alone. If that stays so, move it aside"
            )
        }
        let aside = "\(path)\(SlotFiles.markOfKept)\(try FileSystem.randomName())"
        let isLinked = link(path, aside) == 0
        guard isLinked || sealeddb_rename_exclusively(path, aside) == 0 else {
            throw .system(
                "\(path) does not belong to this store, and could not be kept as \(aside). It was left alone; move it away",
                reason: .cannotCreate
            )
        }
        // The second name must be durable before the first one leads elsewhere.
        try FileSystem.synchronizeDirectory(of: aside)
        return isLinked
    }

    // MARK: New files

    /// Makes a new file beside the path, which holds these slots and is synced.
    /// - Parameter locks: whether it is locked, as long as its descriptor is open.
    static func prepare(
        _ path: String,
        _ slots: SealedSlots,
        attributesFrom model: String,
        locks: Bool = false
    ) throws(DatabaseError) -> (path: String, descriptor: Int32) {
        let new = try TemporaryFile.path(beside: path)
        let descriptor = try FileSystem.openExclusively(new)
        do throws(DatabaseError) {
            guard !locks || sealeddb_lock(descriptor, Int32(F_WRLCK), 0, 0) == 0 else {
                throw .system("Cannot lock \(new)", reason: .cannotCreate)
            }
            try FileSystem.copyAttributes(from: model, to: new)
            try slots.bytes.withUnsafeBytes { bytes in
                Result { () throws(DatabaseError) in
                    try SecretFile.write(bytes, toDescriptor: descriptor, new, what: "slots")
                }
            }.get()
            guard fsync(descriptor) == 0 else { throw .system("Cannot sync \(new)", reason: .ioError) }
            guard try SecretFile.isCurrent(descriptor, path: new),
                try bytes(of: descriptor, size: slots.bytes.count) == slots.bytes
            else {
                throw DatabaseError(
                    extendedCode: SQLITE_IOERR,
                    reason: .unverified,
                    message: "\(new) does not hold what was written to it."
                )
            }
            return (new, descriptor)
        } catch {
            // A file that cannot be removed is removed by the next change.
            unlink(new)
            sealeddb_unlock_and_close(descriptor)
            throw error
        }
    }

    /// Removes what killed processes left, and not what a process that lives is about to give this name.
    static func removeLeftovers(of path: String) {
        for leftover in TemporaryFile.leftovers(of: path) {
            let descriptor = sealeddb_open(leftover, O_RDWR | O_NOFOLLOW | O_NONBLOCK, 0)
            guard descriptor >= 0 else { continue }
            // A file that cannot be removed does no harm: it holds what a file of slots holds.
            if sealeddb_lock(descriptor, Int32(F_WRLCK), 0, 0) == 0 { unlink(leftover) }
            sealeddb_unlock_and_close(descriptor)
        }
    }
}
