internal import CSealedDBSystem
import Foundation
internal import SQLiteEngine

/// Files that SQLite believes because of their names.
enum JournalName {
    /// Whether it is such a name as SQLite gives the journal of a transaction over several files: of the main file, with
    /// "-mj" and nine digits, of which the seventh is 9.
    static func isOfSuperJournal(_ name: String) -> Bool {
        let end = Array(name.utf8.suffix(12))
        return end.count == 12 && end.starts(with: Array("-mj".utf8)) && end[9] == UInt8(ascii: "9")
            && end[3...].allSatisfy { isxdigit(Int32($0)) != 0 }
    }

    /// Whether a journal or log was made by a user who has no part in the store: where everybody may make files, but only
    /// their owners replace them. What is no regular file is of a stranger anywhere.
    static func isOfStranger(_ name: String) -> Bool {
        var file = stat()
        // What is not there is made by SQLite; it tells of other errors.
        guard lstat(name, &file) == 0 else { return false }
        guard file.st_mode & S_IFMT == S_IFREG else { return true }
        guard mayStrangersMakeFiles(beside: name) else { return false }
        var owners = [geteuid(), 0]
        var store = stat()
        for suffix in suffixes where name.hasSuffix(suffix) {
            guard lstat(String(name.dropLast(suffix.count)), &store) == 0 else { continue }
            // SQLite gives it the store's mode. As root it also gives it the store's owner, whoever has it open.
            guard file.st_mode & (S_IWGRP | S_IWOTH) & ~store.st_mode == 0 else { return true }
            owners.append(store.st_uid)
        }
        return !owners.contains(file.st_uid)
    }

    private static let suffixes = ["-journal", "-wal", "-shm"]

    /// Strangers are those who may make files beside the store, and not write to it.
    private static func mayStrangersMakeFiles(beside name: String) -> Bool {
        var directory = stat()
        // What cannot be looked at, nobody can reach.
        guard stat(FileSystem.directory(of: name), &directory) == 0, directory.st_mode & S_ISVTX != 0 else {
            return false
        }
        if directory.st_mode & S_IWOTH != 0 { return true }
        guard directory.st_mode & S_IWGRP != 0 else { return false }
        let store = suffixes.first(where: name.hasSuffix).map { String(name.dropLast($0.count)) } ?? name
        var status = stat()
        return stat(store, &status) != 0 || status.st_gid != directory.st_gid || status.st_mode & S_IWGRP == 0
    }

    /// Makes sure that the index of a log is not a stranger's, who could show SQLite another log in it. One that is not there is
    /// made, before a stranger can.
    static func isIndexSafe(ofStore store: String) -> Bool {
        let name = store + "-shm"
        if mayStrangersMakeFiles(beside: name), !makeIndex(name, ofStore: store) { return false }
        return !isOfStranger(name)
    }

    /// - Returns: false if it cannot be told whose the index should be.
    private static func makeIndex(_ name: String, ofStore store: String) -> Bool {
        var status = stat()
        guard stat(store, &status) == 0 else { return false }
        let descriptor = sealeddb_open(name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW, status.st_mode & 0o777)
        if descriptor >= 0 {
            // As SQLite does, so that the store's owner can use it. If it fails, so does SQLite's own.
            if geteuid() == 0 { _ = fchown(descriptor, status.st_uid, status.st_gid) }
            // It is empty, and nobody has locks on it.
            close(descriptor)
        }
        return true
    }

    /// The journals and logs beside a store that are not opened.
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
