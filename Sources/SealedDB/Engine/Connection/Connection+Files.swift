import Foundation
internal import SQLiteEngine

/// The files beneath the codec. https://www.sqlite.org/c3ref/c_fcntl_begin_atomic_write.html#sqlitefcntlfilepointer
extension Connection {
    /// The size in bytes of the file of a database, read through this connection's descriptor; 0 for a database in
    /// memory.
    func fileSize(schema: String = "main") throws(DatabaseError) -> Int64 {
        guard let handle else { throw .notOpen }
        var size: sqlite3_int64 = 0
        let code = sealeddb_file_size(handle, schema, &size)
        if code == SQLITE_NOTFOUND { return 0 }
        try check(code)
        return size
    }

    /// Reads bytes of the file of a database as they are on disk. Returns fewer bytes at the end of the file.
    func fileBytes(at offset: Int64 = 0, count: Int, schema: String = "main") throws(DatabaseError) -> [UInt8] {
        let available = try Int(min(Int64(count), fileSize(schema: schema) - offset))
        // Where the file is mapped into memory, SQLite would copy what stands before it.
        guard available > 0, offset >= 0 else { return [] }
        var bytes = [UInt8](repeating: 0, count: available)
        // If the file has become shorter meanwhile, the rest stays zeros.
        _ = try bytes.withUnsafeMutableBytes { buffer in
            Result { () throws(DatabaseError) in try fill(buffer, at: offset, schema) }
        }
        .get()
        return bytes
    }

    /// Fills the buffer, which is only used during the call, with bytes of the file of "main" as they are on disk.
    ///
    /// The read goes through SQLite's own descriptor, by the methods of the VFS, which need not allow several threads at
    /// once.
    /// - Returns: how many bytes were read: fewer than the buffer has at the end of the file, and 0 if the file becomes
    ///   shorter during the call.
    func readFile(at offset: Int64, into buffer: UnsafeMutableRawBufferPointer) throws(DatabaseError) -> Int {
        let available = try Int(min(Int64(buffer.count), fileSize() - offset))
        guard available > 0, offset >= 0 else { return 0 }
        // If the file has become shorter meanwhile, some of the buffer may be of an earlier read.
        return try fill(.init(rebasing: buffer[..<available]), at: offset, "main") ? available : 0
    }

    /// - Returns: whether the file has all these bytes.
    private func fill(
        _ buffer: UnsafeMutableRawBufferPointer,
        at offset: Int64,
        _ schema: String
    ) throws(DatabaseError) -> Bool {
        guard let handle else { throw .notOpen }
        let code = sealeddb_read_file(handle, schema, buffer.baseAddress, Int32(buffer.count), offset)
        if code == SQLITE_IOERR_SHORT_READ { return false }
        try check(code)
        return true
    }

    /// Calls `body` while nobody can write to the file of "main". Use it only on a connection that does not run SQL
    /// during the call.
    /// - Returns: the result of `body`; `nil` if somebody is writing, or if the lock cannot be taken.
    func whileNobodyWrites<T>(_ body: () throws(DatabaseError) -> T?) throws(DatabaseError) -> T? {
        guard let handle else { throw .notOpen }
        var hasWriter: Int32 = 1
        let code = sealeddb_lock_to_look(handle, &hasWriter)
        // If the unlock fails, closing the file, which follows soon, releases the lock too.
        defer { _ = sealeddb_unlock_after_look(handle) }
        return code == SQLITE_OK && hasWriter == 0 ? try body() : nil
    }

    /// Whether somebody is writing "main", or about to, or rolls a journal back. Not for a connection that is reading.
    /// https://www.sqlite.org/lockingv3.html
    func isReserved() throws(DatabaseError) -> Bool {
        guard let handle else { throw .notOpen }
        var isReserved: Int32 = 1
        let code = sealeddb_lock_to_look(handle, &isReserved)
        // If the unlock fails, closing the file, which follows soon, releases the lock too.
        defer { _ = sealeddb_unlock_after_look(handle) }
        // Nobody else may read then.
        if code & 0xff == SQLITE_BUSY { return true }
        try check(code)
        return isReserved != 0
    }

    /// Overwrites the start of the file of "main" with bytes that no database begins with, bypassing codec and journal.
    func overwriteMainFile(byteCount: Int) throws(DatabaseError) {
        guard let handle else { throw .notOpen }
        let bytes = [UInt8](repeating: 0xff, count: byteCount)
        try check(bytes.withUnsafeBytes { sealeddb_write_file(handle, "main", $0.baseAddress, Int32(byteCount), 0) })
    }

    /// Whether the path of the file of "main", with symbolic links followed, is a text. If it were repaired to one, that
    /// would be the path of another file.
    var hasNameInUTF8: Bool {
        guard let path = handle.flatMap({ sqlite3_db_filename($0, "main") }) else { return true }
        return String(validatingCString: path) != nil
    }

    /// The absolute path of the file of "main", with symbolic links followed; `nil` for a database without a file.
    /// https://www.sqlite.org/c3ref/db_filename.html
    var mainFilePath: String? {
        let path = handle.flatMap { sqlite3_db_filename($0, "main") }.map { String(cString: $0) }
        return path?.isEmpty == true ? nil : path
    }

    /// Throws if a file of the open transaction is no longer the one that its path names. Called before a commit: what
    /// is committed to a file without its name, or to the log beside that name, is lost, or damages the file that has
    /// the name now. In WAL mode, SQLite does not check this.
    /// https://www.sqlite.org/howtocorrupt.html#_unlinking_or_renaming_a_database_file_while_in_use
    func requireNamedFiles() throws(DatabaseError) {
        guard let handle else { return }
        let schema =
            if let moved = sealeddb_moved_schema(handle) { String(cString: moved) } else {
                hasOtherDevice ? "main" : nil as String?
            }
        guard let schema else { return }
        let path = sqlite3_db_filename(handle, schema).map { String(cString: $0) } ?? ""
        throw DatabaseError(
            extendedCode: SQLITE_READONLY_DBMOVED,
            reason: FileSystem.mayExist(path) ? .sqlite : .noSuchFile,
            message: """
                \(path) was moved, removed or replaced while it was open. The transaction was rolled back, and nothing of it \
                is stored. Close the database, see which file is to have the name, and open it again.
                """
        )
    }

    /// Whether the path of "main" is now on another device than when the file was opened. SQLite only compares inode
    /// numbers.
    var hasOtherDevice: Bool {
        // If the file is gone, SQLite reports it.
        guard let mainDevice, let status = mainFileStatus else { return false }
        return status.st_dev != mainDevice
    }

    /// What stands at the path of "main"; `nil` if that cannot be found out, or it has no path.
    var mainFileStatus: stat? {
        // Does not convert the path to a string, because this runs on each turn of a queue.
        guard let handle, let path = sqlite3_db_filename(handle, "main") else { return nil }
        var status = stat()
        return stat(path, &status) == 0 ? status : nil
    }

    /// Whether all frames of the log are in the file too, or were when this connection's read transaction began. If so,
    /// the file alone has everything that is in the log now.
    func hasWholeLogInFile() throws(DatabaseError) -> Bool {
        guard let handle else { throw .notOpen }
        var isInFile: Int32 = 0
        try check(sealeddb_whole_log_is_in_file(handle, &isInFile))
        return isInFile != 0
    }

    /// The number of frames in the log that belong to committed transactions, of this moment; 0 without an index of it.
    func logFrameCount() throws(DatabaseError) -> Int64 {
        guard let handle else { throw .notOpen }
        var frames: sqlite3_int64 = 0
        try check(sealeddb_log_frames(handle, &frames))
        return frames
    }

    /// Whether the index of the log is one that all connections share. If a connection may only read an index that nobody keeps
    /// up to date, SQLite makes one in its memory. https://www.sqlite.org/rescode.html#readonly_cantinit
    func sharesLogIndex() throws(DatabaseError) -> Bool {
        guard let handle else { throw .notOpen }
        var frames: sqlite3_int64 = 0
        let code = sealeddb_log_frames(handle, &frames)
        guard code & 0xff != SQLITE_READONLY else { return false }
        try check(code)
        return true
    }

    /// Whether "main" is read-only. https://www.sqlite.org/c3ref/db_readonly.html
    var isReadOnly: Bool { handle.map { sqlite3_db_readonly($0, "main") == 1 } ?? false }

    func mainFileSize() throws(DatabaseError) -> Int64 { try fileSize() }

    /// The first 16 bytes of the file of "main": SQLite's magic, or the salt of an encrypted store.
    func mainFileHeader() throws(DatabaseError) -> [UInt8] { try fileBytes(count: 16) }

    /// Sets whether closing may checkpoint the log into the file. It does by default.
    func setCheckpointsOnClose(_ isOn: Bool) throws(DatabaseError) {
        guard let handle else { return }
        try check(sealeddb_set_checkpoint_on_close(handle, isOn ? 1 : 0))
    }
}

extension DatabaseError {
    static func nameNotUTF8(_ path: String) -> DatabaseError {
        DatabaseError(
            extendedCode: SQLITE_CANTOPEN,
            reason: .unsupported,
            message: "\(path) leads to a directory or file whose name is not UTF-8. Nothing was opened. Rename that."
        )
    }
}
