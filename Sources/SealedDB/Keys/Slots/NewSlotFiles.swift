internal import CSealedDBSystem
import Foundation

/// The two files of slots of a store that has none yet, or that is about to get its name. They take the place of no file.
///
/// As long as this lives, both are locked. So nobody takes them for those of a process that was killed, and nobody relies
/// on them who does not know whether they stay.
final class NewSlotFiles {
    private struct File {
        let path: String
        let descriptor: Int32
        /// Whether it was made here.
        let isOwn: Bool
    }

    private let files: SlotFiles
    private var made: [File] = []

    init(_ files: SlotFiles) {
        self.files = files
    }

    deinit {
        for file in made { sealeddb_unlock_and_close(file.descriptor) }
    }

    /// Makes the files durable, the first one first.
    /// - Parameter adoptsSame: whether files that hold the very same bytes are taken as they are. A process that was killed
    ///   while it made the same copy has left them.
    /// - Throws: ``DatabaseError/Reason/alreadyExists`` if other files are there. Call ``discard(_:)`` then.
    func write(_ slots: SealedSlots, attributesFrom model: String, adoptsSame: Bool = false) throws(DatabaseError) {
        for path in [files.first, files.second] {
            SlotFiles.removeLeftovers(of: path)
            if adoptsSame, let descriptor = try same(path, slots.bytes) {
                made.append(File(path: path, descriptor: descriptor, isOwn: false))
            } else {
                let (new, descriptor) = try SlotFiles.prepare(path, slots, attributesFrom: model, locks: true)
                guard sealeddb_rename_exclusively(new, path) == 0 else {
                    let number = errno
                    // A file that cannot be removed is removed by the next one that makes such files.
                    unlink(new)
                    sealeddb_unlock_and_close(descriptor)
                    throw .system(
                        "Cannot create \(path)",
                        reason: number == EEXIST ? .alreadyExists : .cannotCreate,
                        number: number
                    )
                }
                made.append(File(path: path, descriptor: descriptor, isOwn: true))
            }
            guard try SecretFile.isCurrent(made[made.count - 1].descriptor, path: path) else {
                throw SlotFiles.exchanged(path)
            }
            try FileSystem.synchronizeDirectory(of: path)
        }
    }

    /// The file, open and locked, if it holds these bytes.
    private func same(_ path: String, _ bytes: [UInt8]) throws(DatabaseError) -> Int32? {
        let descriptor = sealeddb_open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK, 0)
        guard descriptor >= 0 else { return nil }
        var status = stat()
        do throws(DatabaseError) {
            guard sealeddb_lock(descriptor, Int32(F_RDLCK), 0, 0) == 0 else {
                throw DatabaseError(
                    extendedCode: SQLITE_BUSY,
                    reason: .busy,
                    message: "Another process makes \(path) at this moment. Try again later."
                )
            }
            guard fstat(descriptor, &status) == 0, status.st_mode & S_IFMT == S_IFREG,
                try SlotFiles.bytes(of: descriptor, size: Int(clamping: status.st_size)) == bytes
            else {
                sealeddb_unlock_and_close(descriptor)
                return nil
            }
            return descriptor
        } catch {
            sealeddb_unlock_and_close(descriptor)
            throw error
        }
    }

    /// Throws unless both names still lead to the files that were made or taken.
    func requireInPlace() throws(DatabaseError) {
        for file in made {
            guard let isCurrent = try? SecretFile.isCurrent(file.descriptor, path: file.path), isCurrent else {
                throw SlotFiles.exchanged(file.path)
            }
        }
    }

    /// Removes the files that were made here, and no others, for good.
    /// - Returns: the error, which says if some of them stay.
    func discard(_ error: DatabaseError) -> DatabaseError {
        var left: [String] = []
        var removed: String?
        for file in made.reversed() where file.isOwn {
            // Whose it is may be impossible to find out: then it stays, and is told.
            guard let isCurrent = try? SecretFile.isCurrent(file.descriptor, path: file.path) else {
                if FileSystem.mayExist(file.path) { left.append(file.path) }
                continue
            }
            guard isCurrent else { continue }
            if unlink(file.path) == 0 { removed = file.path } else { left.append(file.path) }
        }
        if let removed {
            // If that fails, a power failure may bring them back: the next one that makes such files says so.
            try? FileSystem.synchronizeDirectory(of: removed)
        }
        guard !left.isEmpty else { return error }
        return error.adding(
            context: "Slots that belong to nothing could not be removed; remove \(left.joined(separator: ", "))"
        )
    }
}
