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
        var directory = stat()
        guard stat(FileSystem.directory(of: name), &directory) == 0, directory.st_mode & S_ISVTX != 0,
            directory.st_mode & (S_IWGRP | S_IWOTH) != 0
        else { return false }
        var owners = [geteuid(), 0]
        var store = stat()
        for suffix in ["-journal", "-wal"] where name.hasSuffix(suffix) {
            if lstat(String(name.dropLast(suffix.count)), &store) == 0 { owners.append(store.st_uid) }
        }
        return !owners.contains(file.st_uid)
    }

    /// The journals and logs beside a store that are not opened.
    static func requireNoneOfStrangers(_ store: String) throws(DatabaseError) {
        for name in [store + "-journal", store + "-wal"] where isOfStranger(name) {
            throw DatabaseError(
                extendedCode: SQLITE_CANTOPEN,
                reason: .unsafeJournal,
                message: """
                    \(name) belongs to another user than \(store), or is no regular file, and SQLite would write its \
                    contents into the store. Nothing was read or written. See who made it, and move it away.
                    """
            )
        }
    }
}
