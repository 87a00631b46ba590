internal import CSealedDBSystem
import Foundation

/// The one name of a file that is written to.
///
/// SQLite keeps the log and the journal beside the name by which a file was opened. Who opens it by another name does not find
/// them, and makes their own. <https://www.sqlite.org/howtocorrupt.html#_multiple_links_to_the_same_file>
enum StoreName {
    /// Refuses to write to a file that others may have open by another name. One that is not there has none.
    static func requireOnly(_ path: String) throws(DatabaseError) {
        guard let file = FileSystem.resolve(path) else { return }
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
