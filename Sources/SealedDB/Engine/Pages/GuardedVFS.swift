internal import CSealedDBSystem
import Foundation
internal import SQLiteEngine

/// A VFS, usually SQLite's own for the system, with protection against journals that others have put beside a store.
///
/// SQLite trusts any journal that it finds, and writes its pages back. A journal may also name another file, the
/// super-journal of a transaction over several files, and SQLite deletes that file, whatever it is. So anybody who can
/// create a file beside the store could have any file of the store's user deleted, even a key. And SQLite trusts the
/// WAL index for which frames the log has. Therefore, a file opened as a super-journal must have the name of one, and a
/// journal, log or index that belongs to a stranger is not opened. <https://www.sqlite.org/vfs.html>,
/// <https://www.sqlite.org/atomiccommit.html#_multi_file_commit>
enum GuardedVFS {
    /// Returns the name of the guarding VFS, with which to open a connection. Registers it if needed.
    /// - Parameter base: the name of the VFS to guard; `nil` for SQLite's own.
    /// - Throws: if there is no VFS of this name, or if SQLite does not register the guarding one. Nothing is opened
    ///   then.
    static func name(guarding base: String?) throws(DatabaseError) -> String {
        Engine.start()
        // The library's own VFS are stricter already.
        if let base, base.hasPrefix(prefix) { return base }
        guard let own = sqlite3_vfs_find(base), let ownName = own.pointee.zName else {
            throw DatabaseError(
                extendedCode: SQLITE_ERROR,
                reason: .misuse,
                message: "SQLite has no VFS named \"\(base ?? "")\". Nothing was opened."
            )
        }
        let name = prefix + String(cString: ownName)
        let isRegistered = registered.withLock { registered in
            if registered[name] == own { return true }
            guard GuardingVFS.register(name, guarding: own) else { return false }
            registered[name] = own
            return true
        }
        guard isRegistered else {
            throw DatabaseError(
                extendedCode: SQLITE_ERROR,
                message: "SQLite did not take the VFS that stores are opened through. Nothing was opened."
            )
        }
        return name
    }

    /// The prefix of the names of all VFS of the library.
    static let prefix = "sealeddb-"

    /// The guarded VFS, by the names of the VFS that guard them.
    private static let registered = Guarded<[String: UnsafeMutablePointer<sqlite3_vfs>]>([:])

    /// Has connections find a served file by a name that no file has, until ``hide(_:)``. SQLite opens what is attached through
    /// the VFS of the connection.
    static func show(_ file: ServedFile, as name: String) { shown.withLock { $0[name] = file } }

    static func hide(_ name: String) { shown.withLock { $0[name] = nil } }

    private static let shown = Guarded<[String: ServedFile]>([:])

    /// Opens a file unless the rules forbid it.
    fileprivate static func open(
        _ guarding: GuardingVFS,
        _ name: sqlite3_filename?,
        _ file: UnsafeMutablePointer<sqlite3_file>?,
        _ flags: Int32,
        _ outFlags: UnsafeMutablePointer<Int32>?
    ) -> Int32 {
        if let name, guarding.vfs.szOsFile >= ServedFile.fileSize,
            let served = shown.withLock({ $0.isEmpty ? nil : $0[String(cString: name)] })
        {
            return served.open(file, flags, outFlags)
        }
        if let name, isRefused(String(cString: name), flags) {
            // SQLite closes a file that has methods, so this one must have none.
            file?.pointee.pMethods = nil
            return SQLITE_CANTOPEN
        }
        let code = guarding.own.pointee.xOpen(guarding.own, name, file, flags, outFlags)
        guard code == SQLITE_OK, let name, let file else { return code }
        guard !guarding.opensFiles || !wasExchanged(String(cString: name), flags) else {
            // Nothing was written to the file.
            _ = file.pointee.pMethods.pointee.xClose(file)
            file.pointee.pMethods = nil
            return SQLITE_CANTOPEN
        }
        guardMethods(of: file, String(cString: name))
        if guarding.opensFiles, flags & SQLITE_OPEN_WAL != 0 { OpenLogs.add(file, name) }
        return SQLITE_OK
    }

    /// Whether the rules forbid opening the file. They hold for every caller, and for files that SQL attaches too.
    private static func isRefused(_ name: String, _ flags: Int32) -> Bool {
        if flags & SQLITE_OPEN_MAIN_DB != 0, flags & SQLITE_OPEN_READWRITE != 0 {
            // The reason is lost here: SQLite only reports that it cannot open the file.
            return (try? StoreName.requireOnly(name)) == nil
        }
        if flags & SQLITE_OPEN_SUPER_JOURNAL != 0, !isOfMember(name, flags) {
            return !JournalName.isOfSuperJournal(name)
        }
        guard flags & (SQLITE_OPEN_MAIN_JOURNAL | SQLITE_OPEN_WAL) != 0 else { return false }
        return JournalName.isOfStranger(name)
    }

    /// Whether SQLite looks whether another journal still names a super-journal, before it removes that. It opens that journal as if it
    /// were a super-journal itself, and only to read it.
    private static func isOfMember(_ name: String, _ flags: Int32) -> Bool {
        flags & SQLITE_OPEN_READONLY != 0 && name.ends(with: "-journal") && !JournalName.isOfStranger(name)
    }

    /// Whether the file may have been exchanged. Between the check and the opening, a stranger may put a file there and
    /// remove it again. An opened journal keeps its name as long as the store is locked. If a journal cannot be opened,
    /// SQLite treats it as hot, and looks again with the lock.
    private static func wasExchanged(_ name: String, _ flags: Int32) -> Bool {
        guard flags & (SQLITE_OPEN_MAIN_JOURNAL | SQLITE_OPEN_WAL) != 0 else { return false }
        return !FileSystem.exists(name) || JournalName.isOfStranger(name)
    }

    // MARK: Reads, and the WAL index, which SQLite opens by itself

    private struct Files {
        var names: [UnsafeMutablePointer<sqlite3_file>: String] = [:]
        /// Guarded methods by the VFS's own methods. There are only a few, and they stay for the life of the process.
        var guarded: [UnsafePointer<sqlite3_io_methods>: UnsafePointer<sqlite3_io_methods>] = [:]
    }

    private static let files = Guarded(Files())

    /// The methods that an open file points to. A read finds the VFS's own methods in it without a lock.
    private struct GuardedMethods {
        var methods: sqlite3_io_methods
        /// The VFS's own methods.
        let own: UnsafePointer<sqlite3_io_methods>
    }

    /// Returns the VFS's own methods of a guarded file.
    private static func own(_ file: UnsafeMutablePointer<sqlite3_file>) -> UnsafePointer<sqlite3_io_methods> {
        UnsafeRawPointer(file.pointee.pMethods!).assumingMemoryBound(to: GuardedMethods.self).pointee.own
    }

    /// Makes a file use guarded methods in place of some of the VFS's own.
    private static func guardMethods(of file: UnsafeMutablePointer<sqlite3_file>, _ name: String) {
        guard let methods = file.pointee.pMethods else { return }
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
            OpenLogs.remove(file)
            return own.pointee.xClose(file)
        }
        guarded.pointee.methods.xRead = { file, bytes, count, offset in
            guard let file else { return SQLITE_IOERR }
            return PageWatch.note(read: GuardedVFS.own(file).pointee.xRead(file, bytes, count, offset))
        }
        // Logs and journals have separate methods without xShmMap, and version 1 methods have none either.
        guard methods.pointee.iVersion >= 2, methods.pointee.xShmMap != nil else { return asMethods(guarded) }
        guarded.pointee.methods.xShmMap = { file, region, size, extends, page in
            guard let file, let name = GuardedVFS.files.withLock({ $0.names[file] }) else { return SQLITE_IOERR }
            guard region > 0 || JournalName.isIndexSafe(ofStore: name) else { return SQLITE_CANTOPEN }
            let code = GuardedVFS.own(file).pointee.xShmMap(file, region, size, extends, page)
            if region == 0 { OpenLogs.noteIndex(of: file, name) }
            return code
        }
        return asMethods(guarded)
    }

    private static func asMethods(_ guarded: UnsafePointer<GuardedMethods>) -> UnsafePointer<sqlite3_io_methods> {
        UnsafeRawPointer(guarded).assumingMemoryBound(to: sqlite3_io_methods.self)
    }
}

/// The structure that SQLite gets instead of the VFS that it guards.
private struct GuardingVFS {
    var vfs: sqlite3_vfs
    let own: UnsafeMutablePointer<sqlite3_vfs>
    /// Whether the VFS opens files of the operating system. Other VFS may keep their data elsewhere.
    let opensFiles: Bool

    /// Registers a guarding VFS. It stays for the life of the process.
    static func register(_ name: String, guarding own: UnsafeMutablePointer<sqlite3_vfs>) -> Bool {
        precondition(MemoryLayout<GuardingVFS>.offset(of: \.vfs) == 0, "The VFS comes first.")
        guard let name = strdup(name) else { return false }
        var vfs = own.pointee
        vfs.iVersion = min(vfs.iVersion, 2)
        vfs.zName = UnsafePointer(name)
        vfs.pNext = nil
        vfs.xOpen = { GuardedVFS.open(GuardingVFS.of($0).pointee, $1, $2, $3, $4) }
        vfs.xDelete = { GuardingVFS.own($0).pointee.xDelete(GuardingVFS.own($0), $1, $2) }
        vfs.xAccess = { GuardingVFS.own($0).pointee.xAccess(GuardingVFS.own($0), $1, $2, $3) }
        vfs.xFullPathname = { GuardingVFS.own($0).pointee.xFullPathname(GuardingVFS.own($0), $1, $2, $3) }
        vfs.xDlOpen = { GuardingVFS.own($0).pointee.xDlOpen(GuardingVFS.own($0), $1) }
        vfs.xDlError = { GuardingVFS.own($0).pointee.xDlError(GuardingVFS.own($0), $1, $2) }
        vfs.xDlSym = { GuardingVFS.own($0).pointee.xDlSym(GuardingVFS.own($0), $1, $2) }
        vfs.xDlClose = { GuardingVFS.own($0).pointee.xDlClose(GuardingVFS.own($0), $1) }
        vfs.xRandomness = { GuardingVFS.own($0).pointee.xRandomness(GuardingVFS.own($0), $1, $2) }
        vfs.xSleep = { GuardingVFS.own($0).pointee.xSleep(GuardingVFS.own($0), $1) }
        vfs.xCurrentTime = { GuardingVFS.own($0).pointee.xCurrentTime(GuardingVFS.own($0), $1) }
        if vfs.xGetLastError != nil {
            vfs.xGetLastError = { GuardingVFS.own($0).pointee.xGetLastError(GuardingVFS.own($0), $1, $2) }
        }
        if vfs.iVersion >= 2, vfs.xCurrentTimeInt64 != nil {
            vfs.xCurrentTimeInt64 = { GuardingVFS.own($0).pointee.xCurrentTimeInt64(GuardingVFS.own($0), $1) }
        }
        let guarding = UnsafeMutablePointer<GuardingVFS>.allocate(capacity: 1)
        // SQLite's own VFS are unix, unix-dotfile, unix-excl and unix-none.
        let opensFiles = String(cString: own.pointee.zName).hasPrefix("unix")
        guarding.initialize(to: GuardingVFS(vfs: vfs, own: own, opensFiles: opensFiles))
        let first = UnsafeMutableRawPointer(guarding).assumingMemoryBound(to: sqlite3_vfs.self)
        return sqlite3_vfs_register(first, 0) == SQLITE_OK
    }

    static func of(_ vfs: UnsafeMutablePointer<sqlite3_vfs>?) -> UnsafePointer<GuardingVFS> {
        UnsafeRawPointer(vfs!).assumingMemoryBound(to: GuardingVFS.self)
    }

    private static func own(_ vfs: UnsafeMutablePointer<sqlite3_vfs>?) -> UnsafeMutablePointer<sqlite3_vfs> {
        of(vfs).pointee.own
    }
}
