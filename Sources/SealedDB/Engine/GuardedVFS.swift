import Foundation
internal import SQLiteEngine

/// SQLite's own VFS, without what a journal that somebody has put beside a store could make it do.
///
/// SQLite believes a journal that it finds: it writes its pages back, and deletes the file that it names as the journal of a
/// transaction over several files, whichever file that is. Who can make a file in the store's directory could so have any
/// file of the store's user deleted, also a key. So only files with such names as SQLite gives them are opened
/// as such journals, and others are never opened as journals of the store.
/// <https://www.sqlite.org/vfs.html>, <https://www.sqlite.org/atomiccommit.html#_multi_file_commit>
enum GuardedVFS {
    /// For whoever opens a connection.
    /// - Throws: if SQLite does not take it. Without it nothing is opened.
    static func name() throws(DatabaseError) -> String {
        guard let registered else {
            throw DatabaseError(
                extendedCode: SQLITE_ERROR,
                message: "SQLite did not take the VFS that stores are opened through. Nothing was opened."
            )
        }
        return registered
    }

    /// SQLite's own; set before the other one can be used, and never again.
    nonisolated(unsafe) private static let system: UnsafeMutablePointer<sqlite3_vfs>? = sqlite3_vfs_find(nil)

    private static let registered: String? = {
        Engine.start()
        guard let system, let name = strdup("sealeddb") else { return nil }
        let vfs = UnsafeMutablePointer<sqlite3_vfs>.allocate(capacity: 1)
        vfs.initialize(to: system.pointee)
        vfs.pointee.zName = UnsafePointer(name)
        vfs.pointee.pNext = nil
        vfs.pointee.xOpen = { _, name, file, flags, outFlags in
            guard let system = GuardedVFS.system else { return SQLITE_CANTOPEN }
            if let name, GuardedVFS.isOfStranger(String(cString: name), flags) {
                // SQLite closes what has methods.
                file?.pointee.pMethods = nil
                return SQLITE_CANTOPEN
            }
            return system.pointee.xOpen(system, name, file, flags, outFlags)
        }
        // For as long as the process lives.
        guard sqlite3_vfs_register(vfs, 0) == SQLITE_OK else { return nil }
        return String(cString: name)
    }()

    private static func isOfStranger(_ name: String, _ flags: Int32) -> Bool {
        if flags & SQLITE_OPEN_SUPER_JOURNAL != 0 { return !JournalName.isOfSuperJournal(name) }
        guard flags & (SQLITE_OPEN_MAIN_JOURNAL | SQLITE_OPEN_WAL) != 0 else { return false }
        return JournalName.isOfStranger(name)
    }
}

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
