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
    private let slots: SlotCopy?
    private let isKept: Bool

    /// Copies the slots for the old store, to its new name.
    init(of target: String, keptFor replacedPath: String, by slots: SlotCopy?) throws(DatabaseError) {
        files = SlotFiles(store: target)
        self.slots = slots
        isKept = try slots?.isServed(by: files) ?? false
        let kept = SlotFiles(store: replacedPath)
        for (old, new) in [(files.first, kept.first), (files.second, kept.second)] where FileSystem.exists(old) {
            guard link(old, new) == 0 else {
                throw .system("Cannot keep \(old) as \(new)", reason: .cannotCreate)
            }
        }
    }

    /// Call it when the new store is in its place.
    func finish() throws(DatabaseError) {
        guard !isKept else { return }
        do throws(DatabaseError) {
            if let slots { return try slots.write(beside: files.store, attributesFrom: files.store) }
            for path in [files.first, files.second] {
                guard unlink(path) == 0 || errno == ENOENT else {
                    throw .system("Cannot remove \(path)", reason: .ioError)
                }
            }
            try FileSystem.synchronizeDirectory(of: files.store)
        } catch {
            throw error.adding(
                context: """
                    The store is restored, but the slots beside it are not its own yet; run the same command again, or copy \
                    those of the backup
                    """
            )
        }
    }
}

extension SlotCopy {
    /// Whether these files open a store with this data key, and are as new as these slots.
    func isServed(by files: SlotFiles) throws(DatabaseError) -> Bool {
        for slots in files.read().compactMap(\.slots) where slots.table.generation >= generation {
            if try isAuthentic(slots) { return true }
        }
        return false
    }
}
