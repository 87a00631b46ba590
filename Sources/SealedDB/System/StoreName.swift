internal import CSealedDBSystem
import Foundation

/// The one name of a file that is written to.
///
/// SQLite keeps the log and the journal beside the name by which a file was opened. Who opens it by another name does not find
/// them, and makes their own. <https://www.sqlite.org/howtocorrupt.html#_multiple_links_to_the_same_file>
package enum StoreName {
    /// How the names of what SQLite and this library put beside a store end: <https://www.sqlite.org/tempfiles.html>
    package static let siblingEndings = ["-journal", "-wal", "-shm", "-sealdb-lock"]

    /// Refuses the name of something that belongs to another store: whoever uses that store removes or overwrites the file.
    package static func requireOwn(
        _ path: String,
        reason: DatabaseError.Reason = .cannotCreate
    ) throws(DatabaseError) {
        try requireOwn(path, resolved: FileSystem.resolve(path), reason)
    }

    private static func requireOwn(
        _ path: String,
        resolved: String?,
        _ reason: DatabaseError.Reason
    ) throws(DatabaseError) {
        for path in [path, resolved ?? path] {
            let ending =
                JournalName.isOfSuperJournal(path)
                ? String(path.suffix(12)) : siblingEndings.first(where: path.hasSuffix)
            guard let ending else { continue }
            guard mayBeStore(String(path.dropLast(ending.count))) else { continue }
            throw DatabaseError(
                extendedCode: SQLITE_CANTOPEN,
                reason: reason,
                message: """
                    \(path) is the name of a file that belongs to \(path.dropLast(ending.count)): whoever uses that as a store \
                    removes or overwrites it. Nothing was changed. Choose another name.
                    """
            )
        }
    }

    /// A database has whole pages, of 512 bytes at least. What cannot be looked at may be one.
    private static func mayBeStore(_ path: String) -> Bool {
        var status = stat()
        guard lstat(path, &status) == 0 else { return ![ENOENT, ENOTDIR].contains(errno) }
        return status.st_mode & S_IFMT == S_IFREG && status.st_size % 512 == 0
    }

    /// Refuses to write to a file that others may have open by another name, or take for a part of their store. One that is
    /// not there has no other name.
    static func requireOnly(_ path: String) throws(DatabaseError) {
        let resolved = FileSystem.resolve(path)
        try requireOwn(path, resolved: resolved, .cannotCreate)
        guard let file = resolved else { return }
        guard sealeddb_is_mounted(file) == 0 else {
            throw DatabaseError(
                extendedCode: SQLITE_CANTOPEN,
                reason: .hardLinked,
                message: """
                    \(file) is mounted by itself: its log and journal would not be where others look for them who have its \
                    directory, and transactions would be lost. Nothing was read or written. Mount the directory.
                    """
            )
        }
        let status = try FileSystem.status(file)
        guard status.st_mode & S_IFMT == S_IFREG, status.st_nlink > 1, !isLeftByKilledSwap(file, status) else { return }
        throw DatabaseError(
            extendedCode: SQLITE_CANTOPEN,
            reason: .hardLinked,
            message: """
                \(file) has \(status.st_nlink) hard links. Who opens it by another name does not see the log and the journal \
                of this one, and transactions would be lost. Nothing was read or written. Remove the others, or make copies \
                of them.
                """
        )
    }

    /// Between giving the old file a second name, such as `app.db.old`, and putting the new one in its place, a rotation may
    /// have been killed. The store goes on by its own name.
    private static func isLeftByKilledSwap(_ file: String, _ status: stat) -> Bool {
        let (directory, own) = (FileSystem.directory(of: file), FileSystem.name(of: file))
        let names = (FileSystem.names(in: directory) ?? []).filter { name in
            var found = stat()
            return name.hasPrefix(own) && lstat("\(directory)/\(name)", &found) == 0 && found.isSameFile(as: status)
        }
        return names.count == Int(status.st_nlink) && names.contains(own)
    }
}
