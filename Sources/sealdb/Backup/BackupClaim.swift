import CSealedDBSystem
import Foundation
import SealedDB

/// The file in a directory of backups that tells whose backups have a name there, and by which no two runs make or remove
/// them at the same time: `.app.db.sealdb-backups` for those of `app.db`. It stays.
final class BackupClaim {
    private struct Contents: Codable {
        var version = 1
        /// Absolute path of the store.
        let store: String
    }

    private static let sizeLimit = 1 << 16
    private let descriptor: Int32

    private init(_ descriptor: Int32) {
        self.descriptor = descriptor
    }

    deinit { sealeddb_unlock_and_close(descriptor) }

    /// - Returns: `nil` if nothing may be written and there is no such file.
    /// - Throws: ``Failure`` if another run has it, or if it is of another store.
    static func take(_ directory: String, _ store: StoreItem, isLooking: Bool) throws(Failure) -> BackupClaim? {
        let path = "\(directory)/.\(store.path.nameOfPath).sealdb-backups"
        let access = isLooking ? O_RDONLY : O_RDWR | O_CREAT
        let descriptor = sealeddb_open(path, access | O_NOFOLLOW | O_NOCTTY | O_NONBLOCK, 0o600)
        guard descriptor >= 0 else {
            let number = errno
            if isLooking, number == ENOENT { return nil }
            throw Failure(
                .cannotCreate,
                "Cannot open \(path): \(String(cString: strerror(number))). No backup was made."
            )
        }
        let claim = BackupClaim(descriptor)
        var status = stat()
        guard fstat(descriptor, &status) == 0, status.st_mode & S_IFMT == S_IFREG else {
            throw Failure(.configuration, "\(path) is not a regular file. It was not used, and no backup was made.")
        }
        if !isLooking {
            guard sealeddb_lock(descriptor, Int32(F_WRLCK), 0, 0) == 0 else {
                let number = errno
                guard number != EAGAIN, number != EACCES else {
                    throw Failure(
                        .busy,
                        "Another run makes backups of \(store.path.nameOfPath) in \(directory). No backup was made; try later."
                    )
                }
                throw Failure(
                    .inputOutput,
                    "Cannot lock \(path): \(String(cString: strerror(number))). No backup was made."
                )
            }
        }
        try claim.requireOwn(path, store, isLooking: isLooking)
        return claim
    }

    private func requireOwn(_ path: String, _ store: StoreItem, isLooking: Bool) throws(Failure) {
        let file = try InputFile(descriptor: descriptor, name: path)
        let bytes = file.size > BackupClaim.sizeLimit ? [] : try file.contents()
        let line = BackupClaim.line(store)
        // A kill or a power failure may have cut off the line when it was written. No backup was made after that.
        if file.size <= BackupClaim.sizeLimit, bytes.count < line.count, line.starts(with: bytes) {
            guard !isLooking else { return }
            return try write(line, path)
        }
        // If these are not our words, that is told.
        guard let contents = try? JSONDecoder().decode(Contents.self, from: Data(bytes)), contents.version == 1 else {
            throw Failure(.data, "\(path) is not a file of this sealdb. It was not changed, and no backup was made.")
        }
        guard contents.store.isSame(as: store.identity) else {
            throw Failure(
                .cannotCreate,
                "\(path) tells that the backups of that name here are those of \(contents.store), and not of "
                    + "\(store.identity). No backup was made. Give each store a directory of its own; or, if the store has "
                    + "moved, remove that file."
            )
        }
    }

    private static func line(_ store: StoreItem) -> [UInt8] {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        // Numbers and texts can always be encoded.
        return [UInt8]((try? encoder.encode(Contents(store: store.identity))) ?? Data()) + [0x0a]
    }

    private func write(_ line: [UInt8], _ path: String) throws(Failure) {
        guard pwrite(descriptor, line, line.count, 0) == line.count, fsync(descriptor) == 0 else {
            throw Failure(
                .inputOutput,
                "Cannot write \(path): \(String(cString: strerror(errno))). No backup was made."
            )
        }
        try synchronizeDirectory(of: path, orSay: "No backup was made.")
    }
}
