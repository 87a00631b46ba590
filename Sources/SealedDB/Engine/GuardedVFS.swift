internal import CSealedDBSystem
import Foundation
internal import SQLiteEngine

/// SQLite's own VFS, without what a journal that somebody has put beside a store could make it do.
///
/// SQLite believes a journal that it finds. It writes the journal's pages back. A journal may name another file, the journal
/// of a transaction over several files, and SQLite deletes that file, whichever it is. So who can make a file beside the store
/// could have every file of the store's user deleted, also a key. And in the index of a log SQLite looks up which frames there
/// are. So a file that is opened as the journal of several files must have the name of one, and a stranger's journal,
/// log or index is not opened.
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
            if let name, GuardedVFS.isRefused(String(cString: name), flags) {
                // SQLite closes what has methods.
                file?.pointee.pMethods = nil
                return SQLITE_CANTOPEN
            }
            let code = system.pointee.xOpen(system, name, file, flags, outFlags)
            guard code == SQLITE_OK, let name, let file else { return code }
            guard !GuardedVFS.wasExchanged(String(cString: name), flags) else {
                // Nothing was written by it.
                _ = file.pointee.pMethods.pointee.xClose(file)
                file.pointee.pMethods = nil
                return SQLITE_CANTOPEN
            }
            GuardedVFS.guardMethods(of: file, String(cString: name))
            return SQLITE_OK
        }
        // For as long as the process lives.
        guard sqlite3_vfs_register(vfs, 0) == SQLITE_OK else { return nil }
        return String(cString: name)
    }()

    /// What is not opened, whoever asks for it: also the files that SQL attaches.
    private static func isRefused(_ name: String, _ flags: Int32) -> Bool {
        if flags & SQLITE_OPEN_MAIN_DB != 0, flags & SQLITE_OPEN_READWRITE != 0 {
            // SQLite tells no more than that it cannot open the file.
            return (try? StoreName.requireOnly(name)) == nil
        }
        if flags & SQLITE_OPEN_SUPER_JOURNAL != 0 { return !JournalName.isOfSuperJournal(name) }
        guard flags & (SQLITE_OPEN_MAIN_JOURNAL | SQLITE_OPEN_WAL) != 0 else { return false }
        return JournalName.isOfStranger(name)
    }

    /// A stranger may put his file there between the look and the opening, and take it away again. A journal that was opened
    /// has its name, as long as the store is locked; SQLite takes one that cannot be opened for hot, and looks again with
    /// the lock.
    private static func wasExchanged(_ name: String, _ flags: Int32) -> Bool {
        guard flags & (SQLITE_OPEN_MAIN_JOURNAL | SQLITE_OPEN_WAL) != 0 else { return false }
        return !FileSystem.exists(name) || JournalName.isOfStranger(name)
    }

    // MARK: Reads, and the index of the log, which SQLite opens by itself

    private struct Files {
        var names: [UnsafeMutablePointer<sqlite3_file>: String] = [:]
        /// By SQLite's own, of which there are a few; for as long as the process lives.
        var guarded: [UnsafePointer<sqlite3_io_methods>: UnsafePointer<sqlite3_io_methods>] = [:]
    }

    private static let files = Guarded(Files())

    /// What an open file points to. Each read finds SQLite's own in it, without a lock.
    private struct GuardedMethods {
        var methods: sqlite3_io_methods
        /// SQLite's own.
        let own: UnsafePointer<sqlite3_io_methods>
    }

    /// SQLite's own methods of a guarded file.
    private static func own(_ file: UnsafeMutablePointer<sqlite3_file>) -> UnsafePointer<sqlite3_io_methods> {
        UnsafeRawPointer(file.pointee.pMethods!).assumingMemoryBound(to: GuardedMethods.self).pointee.own
    }

    /// Has a file use methods some of which are not SQLite's own.
    private static func guardMethods(of file: UnsafeMutablePointer<sqlite3_file>, _ name: String) {
        // All of SQLite's own are of version 3.
        guard let methods = file.pointee.pMethods, methods.pointee.iVersion >= 2 else { return }
        file.pointee.pMethods = files.withLock { files in
            files.names[file] = name
            if let guarded = files.guarded[methods] { return guarded }
            let guarded = guardedMethods(methods)
            files.guarded[methods] = guarded
            return guarded
        }
    }

    private static func guardedMethods(
        _ methods: UnsafePointer<sqlite3_io_methods>
    ) -> UnsafePointer<sqlite3_io_methods> {
        precondition(MemoryLayout<GuardedMethods>.offset(of: \.methods) == 0, "The methods come first.")
        let guarded = UnsafeMutablePointer<GuardedMethods>.allocate(capacity: 1)
        guarded.initialize(to: GuardedMethods(methods: methods.pointee, own: methods))
        guarded.pointee.methods.xClose = { file in
            guard let file else { return SQLITE_IOERR }
            let own = GuardedVFS.own(file)
            _ = GuardedVFS.files.withLock { $0.names.removeValue(forKey: file) }
            return own.pointee.xClose(file)
        }
        guarded.pointee.methods.xRead = { file, bytes, count, offset in
            guard let file else { return SQLITE_IOERR }
            return PageWatch.note(read: GuardedVFS.own(file).pointee.xRead(file, bytes, count, offset))
        }
        // Logs and journals have methods of their own, without it.
        guard methods.pointee.xShmMap != nil else { return asMethods(guarded) }
        guarded.pointee.methods.xShmMap = { file, region, size, extends, page in
            guard let file, let name = GuardedVFS.files.withLock({ $0.names[file] }) else { return SQLITE_IOERR }
            guard region > 0 || JournalName.isIndexSafe(ofStore: name) else { return SQLITE_CANTOPEN }
            return GuardedVFS.own(file).pointee.xShmMap(file, region, size, extends, page)
        }
        return asMethods(guarded)
    }

    private static func asMethods(_ guarded: UnsafePointer<GuardedMethods>) -> UnsafePointer<sqlite3_io_methods> {
        UnsafeRawPointer(guarded).assumingMemoryBound(to: sqlite3_io_methods.self)
    }
}
