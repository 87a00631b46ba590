internal import CSealedDBSystem
import Foundation
internal import SQLiteEngine

/// Journals, logs and indexes, which SQLite trusts because of their names.
package enum JournalName {
    /// Whether SQLite would give this name to the super-journal of a transaction over several files: the name of the
    /// main file, "-mj", and nine hexadecimal digits, the seventh of which is 9.
    static func isOfSuperJournal(_ name: String) -> Bool {
        let end = Array(name.utf8.suffix(12))
        return end.count == 12 && end.starts(with: Array("-mj".utf8)) && end[9] == UInt8(ascii: "9")
            && end[3...].allSatisfy { isxdigit(Int32($0)) != 0 }
    }

    /// Whether a journal or log may come from a user who has no rights to the store. That is possible in a directory
    /// where everybody may create files, but only owners may replace theirs (sticky bit). Anything but a regular file
    /// counts as a stranger's, in any directory.
    static func isOfStranger(_ name: String) -> Bool {
        var file = stat()
        // If the file does not exist, SQLite creates it. If it cannot be examined, SQLite reports the error.
        guard lstat(name, &file) == 0 else { return false }
        guard file.st_mode & S_IFMT == S_IFREG else { return true }
        guard mayStrangersMakeFiles(beside: name) else { return false }
        var owners = [geteuid(), 0]
        var store = stat()
        for suffix in suffixes where name.ends(with: suffix) {
            guard lstat(name.withoutLast(bytes: suffix.utf8.count), &store) == 0 else { continue }
            // SQLite gives the file the mode of the store. When it runs as root, it also gives the file the owner of
            // the store, no matter who has the file open.
            guard file.st_mode & (S_IWGRP | S_IWOTH) & ~store.st_mode == 0 else { return true }
            owners.append(store.st_uid)
        }
        return !owners.contains(file.st_uid)
    }

    static let suffixes = ["-journal", "-wal", "-shm"]

    /// Whether users who may not write to the store may create files beside it.
    private static func mayStrangersMakeFiles(beside name: String) -> Bool {
        var directory = stat()
        // If the directory cannot be examined, nobody can reach the file.
        guard stat(FileSystem.directory(of: name), &directory) == 0, directory.st_mode & S_ISVTX != 0 else {
            return false
        }
        if directory.st_mode & S_IWOTH != 0 { return true }
        guard directory.st_mode & S_IWGRP != 0 else { return false }
        let store = suffixes.first(where: name.ends).map { name.withoutLast(bytes: $0.utf8.count) } ?? name
        var status = stat()
        return stat(store, &status) != 0 || status.st_gid != directory.st_gid || status.st_mode & S_IWGRP == 0
    }

    /// Ensures that the index of the log does not come from a stranger, who could make SQLite read another log through
    /// it. Creates a missing index before a stranger can.
    static func isIndexSafe(ofStore store: String) -> Bool {
        let name = store + "-shm"
        if mayStrangersMakeFiles(beside: name), !makeIndex(name, ofStore: store) { return false }
        return !isOfStranger(name)
    }

    /// Creates the index if it does not exist.
    /// - Returns: false if the store cannot be examined, so that the owner of the index is unknown.
    private static func makeIndex(_ name: String, ofStore store: String) -> Bool {
        var status = stat()
        guard stat(store, &status) == 0 else { return false }
        let descriptor = sealeddb_open(name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW, status.st_mode & 0o777)
        if descriptor >= 0 {
            // SQLite does the same, so that the owner of the store can use the index. If it fails here, it also fails
            // in SQLite.
            if geteuid() == 0 { _ = fchown(descriptor, status.st_uid, status.st_gid) }
            // The index is empty and nobody has locks on it, so closing it loses nothing.
            close(descriptor)
        }
        return true
    }

    /// Throws if a file has the name of the store's journal, log or index and is something else, such as a key, as far as
    /// that can be told. SQLite would remove or overwrite it.
    /// <https://www.sqlite.org/fileformat.html#the_rollback_journal>
    package static func requireNothingElse(beside store: String) throws(DatabaseError) {
        for name in suffixes.map({ store + $0 }) where holdsSomethingElse(name) {
            throw DatabaseError(
                extendedCode: SQLITE_CANTOPEN,
                reason: .cannotCreate,
                message: """
                    \(name) has the name of a file that belongs to \(store), and holds something else: SQLite would remove or \
                    overwrite it. Nothing was read or written. Move it away.
                    """
            )
        }
    }

    private static func holdsSomethingElse(_ name: String) -> Bool {
        var status = stat()
        // What is no regular file counts as a stranger's. What cannot be examined or read is reported by SQLite.
        guard lstat(name, &status) == 0, status.st_mode & S_IFMT == S_IFREG, status.st_size > 0, !isOfStranger(name)
        else {
            return false
        }
        // An index has parts of 32 KiB, made by pages of 4 KiB; who begins it leaves three bytes. To open it here would
        // drop the locks that this process has on it.
        if name.ends(with: "-shm") { return status.st_size != 3 && status.st_size % 4096 != 0 }
        // After a power failure, a journal or log that was not synced may hold any bytes. But these are no text, as a key, a
        // table, and the beginning of a plaintext database are; and no journal and no log begins with one.
        let length = min(Int(status.st_size), 15)
        guard length >= 8 else { return false }
        // What cannot be read is left to SQLite, which says why.
        guard let start = try? FileReader(name)?.bytes(at: 0, count: length) else { return false }
        return start.allSatisfy { (0x20..<0x7f).contains($0) || [0x09, 0x0a, 0x0d].contains($0) }
    }

    /// Throws if a journal, log or index beside the store comes from a stranger, so that SQLite does not read it.
    static func requireNoneOfStrangers(_ store: String) throws(DatabaseError) {
        for name in suffixes.map({ store + $0 }) where isOfStranger(name) {
            throw DatabaseError(
                extendedCode: SQLITE_CANTOPEN,
                reason: .unsafeJournal,
                message: """
                    \(name) belongs to another user than \(store), or others may write to it, or it is no regular file, and \
                    SQLite would believe it. Nothing was read or written. See who made it. If that is a user of the store, it \
                    may hold transactions that are acknowledged: let them open the store, and keep it until then. If it is \
                    a stranger, move it away.
                    """
            )
        }
    }
}
