internal import CSealedDBSystem
import Foundation

/// What becomes of the slots beside a store in whose place a backup is put.
///
/// If the store's own slots have the data key of the backup, they stay: they are as new, and lack slots that were removed
/// since. Otherwise those of the backup take their place, after the store itself, and the old ones stay with the old store.
/// A process that is killed in between leaves the new store beside slots that are not its own, which is noticed: the same
/// restore, once more, goes on.
struct ReplacedSlots {
    private let files: SlotFiles
    private let kept: SlotFiles
    private let slots: SlotCopy?
    private let isKept: Bool
    /// Whether the old store had slots.
    private let hadSlots: Bool

    private var pairs: [(own: String, kept: String)] {
        [(files.first, kept.first), (files.second, kept.second)]
    }

    /// Gives the slots a second name, for the old store under its new name.
    /// - Parameter key: the key of the backup, which must open the slots that the store has then. Without slots of a backup
    ///   none is needed.
    init(
        of target: String,
        keptFor replacedPath: String,
        by slots: SlotCopy?,
        _ key: Key?
    ) throws(DatabaseError) {
        files = SlotFiles(store: target)
        kept = SlotFiles(store: replacedPath)
        self.slots = slots
        isKept = try slots?.isServed(by: files) ?? false
        if isKept, let key { try slots?.requireSame(key, opens: target) }
        var found = false
        for (own, kept) in [(files.first, kept.first), (files.second, kept.second)]
        where try FileSystem.statusIfPresent(own) != nil {
            found = true
            guard link(own, kept) == 0 else {
                hadSlots = true
                let error = DatabaseError.system("Cannot keep \(own) as \(kept)", reason: .cannotCreate)
                undo()
                throw error
            }
        }
        hadSlots = found
    }

    /// Takes the second names away again, unless the old store has its new name. Call it when nothing was restored.
    func undo() {
        guard !FileSystem.mayExist(kept.store) else { return }
        // A second name that stays does no harm.
        for (own, kept) in pairs where isSameFile(own, kept) { unlink(kept) }
    }

    private func isSameFile(_ first: String, _ second: String) -> Bool {
        // What cannot be examined counts as another file.
        guard let one = try? FileSystem.statusIfPresent(first), let other = try? FileSystem.statusIfPresent(second)
        else { return false }
        return one.isSameFile(as: other)
    }

    /// Call it when the new store is in its place.
    func finish() throws(DatabaseError) {
        guard !isKept, slots != nil || hadSlots else { return }
        do throws(DatabaseError) {
            if let slots {
                var hasBegun = false
                return try files.write(slots.sealed, of: slots.owner, keptAs: kept, hasBegun: &hasBegun)
            }
            for (own, kept) in pairs where try FileSystem.statusIfPresent(own) != nil {
                guard isSameFile(own, kept) else {
                    throw DatabaseError(
                        extendedCode: SQLITE_CANTOPEN,
                        reason: .alreadyExists,
                        message: "\(own) is not the file that was there before, and was left alone. Move it away."
                    )
                }
                guard unlink(own) == 0 else { throw .system("Cannot remove \(own)", reason: .ioError) }
            }
            try FileSystem.synchronizeDirectory(of: files.store)
        } catch {
            throw error.adding(
                context: """
                    The store is restored, and the old one is \(kept.store)\(hadSlots ? " with its slots" : ""); but the slots beside the new one may \
                    not be its own yet. Run the same command again, or copy those of the backup
                    """
            )
        }
    }
}
