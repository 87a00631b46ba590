import Foundation
internal import SQLiteEngine

extension Connection {
    static func openError(_ handle: OpaquePointer?, code: Int32, path: String) -> DatabaseError {
        let systemError = handle.map { sqlite3_system_errno($0) } ?? 0
        var text = handle.map { String(cString: sqlite3_errmsg($0)) } ?? String(cString: sqlite3_errstr(code))
        if systemError != 0 { text += " (\(String(cString: strerror(systemError))))" }
        var isDirectory: ObjCBool = false
        let exists = FileManager.default.fileExists(atPath: path, isDirectory: &isDirectory)
        let reason: DatabaseError.Reason
        if isDirectory.boolValue {
            reason = .notRegularFile
            text += "; it is a directory"
        } else if systemError == ENOENT || (code & 0xff == SQLITE_CANTOPEN && !exists) {
            reason = .noSuchFile
        } else if systemError == EACCES || systemError == EPERM {
            reason = .notPermitted
        } else {
            reason = .sqlite
        }
        return DatabaseError(extendedCode: code, reason: reason, message: "Cannot open \(path): \(text)")
    }

    /// The error that SQLite last reported on this connection.
    ///
    /// What a closure of the caller threw meanwhile is that error.
    /// - Parameter statement: the one that failed, if it is one whose values may stand in SQLite's message.
    func error(sql: String? = nil, of statement: PreparedStatement? = nil) -> DatabaseError {
        guard let handle else { return .notOpen }
        if let failure = takeReadFailure() { return failure.adding(sql: sql) }
        let code = sqlite3_extended_errcode(handle)
        if code == SQLITE_AUTH, let refusal = statementGuard.takeRefusal() { return .notAllowed(refusal) }
        if let error = thrown.take(code, sql: sql) { return error }
        noteUnfitness(code)
        let offset = sealeddb_error_offset(handle)
        let original = UnsafeBufferPointer(start: sqlite3_errmsg(handle), count: strlen(sqlite3_errmsg(handle)))
        let bytes = original.map { UInt8(bitPattern: $0) }
        // The library's own statements have paths for values, which are to be told.
        let shown = statementGuard.isSuspended ? nil : statement?.withoutValues(bytes, code)
        let text = String(decoding: bytes, as: UTF8.self)
        let (reason, message) = lockFailure(code, text, shown: shown ?? text)
        return DatabaseError(
            extendedCode: code,
            reason: reason,
            message: message,
            sql: sql,
            offset: sql != nil && offset >= 0 ? Int(offset) : nil
        )
    }

    var lastCode: Int32 { handle.map { sqlite3_extended_errcode($0) } ?? SQLITE_MISUSE }

    /// What became of a transaction whose COMMIT failed, in words; `nil` if nothing of it is kept.
    ///
    /// That is so but for these cases: after the journal is gone, which is the moment of the commit, its directory is synced
    /// and the file shortened; a journal that is cut off or overwritten instead is synced after that; in WAL mode the log is
    /// synced when all is in it, and each file is committed by itself. <https://www.sqlite.org/atomiccommit.html> <https://www.sqlite.org/lang_attach.html>
    func stateAfterFailedCommit(_ code: Int32) -> String? {
        if let state = stateAfterMoment(code) { return state }
        // Then nothing was written yet.
        guard ![Connection.refusedByHook, SQLITE_READONLY_DBMOVED].contains(code), lastCode != Connection.refusedByHook
        else { return nil }
        return hasSeveralFiles ? Connection.isStoredInPart : nil
    }

    /// Also where that cannot be asked.
    private var hasSeveralFiles: Bool { (try? attachedFiles().isEmpty) != true }

    private static let isStoredInPart = """
        The transaction could not be committed. In WAL mode SQLite commits each file by itself, so what was written to one of \
        them may be stored: look before you repeat it
        """

    /// What may have failed after the moment of the commit; `nil` if it was before.
    func stateAfterMoment(_ code: Int32) -> String? {
        if code == Connection.directoryNotSynced { return Connection.isStored }
        guard code & 0xff == SQLITE_IOERR, mayFailAfterMoment(code) else { return nil }
        if code == Connection.notSynced, isWAL {
            if hasSeveralFiles { return Connection.isStoredInPart }
            return """
                The transaction is not stored now, but may be after a crash: all of it was written to the log, which could not \
                be synced. Look before you repeat it
                """
        }
        return """
            The transaction may be stored: what SQLite does after the moment of the commit, which is the end of the journal, \
            may have failed. Look before you repeat it
            """
    }

    /// What cannot be asked may be so. The same calls come before that moment, too, and the code does not tell which it was.
    private func mayFailAfterMoment(_ code: Int32) -> Bool {
        // Nothing is read after it.
        guard ![SQLITE_IOERR_READ, SQLITE_IOERR_SHORT_READ].contains(code) else { return false }
        if isWAL { return code == Connection.notSynced }
        // See above.
        guard let mode = try? text("PRAGMA main.journal_mode") else { return true }
        // The file is shortened at the end, and a journal that stays is overwritten and synced.
        return code == Connection.notTruncated || ["truncate", "persist"].contains(mode)
            || (try? text("PRAGMA main.locking_mode")) != "normal"  // As above.
    }

    /// False where that cannot be asked.
    private var isWAL: Bool { (try? text("PRAGMA main.journal_mode")) == "wal" }

    /// `SQLITE_IOERR_FSYNC`.
    private static let notSynced = SQLITE_IOERR | 4 << 8
    /// `SQLITE_IOERR_DIR_FSYNC`. <https://www.sqlite.org/rescode.html#ioerr_dir_fsync>
    private static let directoryNotSynced = SQLITE_IOERR | 5 << 8
    /// `SQLITE_IOERR_TRUNCATE`.
    private static let notTruncated = SQLITE_IOERR | 6 << 8
    /// `SQLITE_CONSTRAINT_COMMITHOOK`.
    private static let refusedByHook = SQLITE_CONSTRAINT | 2 << 8
    private static let isStored = """
        The transaction is stored, but the directory could not be synced: after a power failure it may be undone. Do not \
        repeat it before you have looked
        """

    /// Why an execution could not be completed that ended without a step to its end. Outside a transaction SQLite commits
    /// then, and rolls back what it cannot commit.
    func endFailure(_ code: Int32, of statement: PreparedStatement?) -> DatabaseError {
        // Another thread may have used the connection meanwhile.
        noteUnfitness(code)
        let (text, sql) = (String(cString: sqlite3_errstr(code)), statement?.sql)
        let error =
            lastCode == code
            ? error(sql: sql, of: statement) : DatabaseError(extendedCode: code, message: text, sql: sql)
        guard isAutocommit else { return error }
        return error.adding(
            context: stateAfterMoment(code) ?? "What the statement wrote could not be committed, and was rolled back"
        )
    }

    /// Tells a lock that others have from one that the connection has itself, for which SQLite has the same code.
    /// - Parameter shown: the message as it may be shown.
    private func lockFailure(_ code: Int32, _ message: String, shown: String) -> (DatabaseError.Reason, String) {
        guard code & 0xff == SQLITE_BUSY else { return (.sqlite, shown) }
        if code == SQLITE_BUSY_SNAPSHOT {
            return (
                .locked,
                """
                \(shown): another connection has written since the transaction or result set of this one began, which \
                sees the older state and so cannot write. Trying again does not help; end it, and begin anew
                """
            )
        }
        // Of locks that others have SQLite only says that they exist: "cannot commit transaction - SQL statements in
        // progress" is about this connection.
        if message != String(cString: sqlite3_errstr(code)) {
            return (
                .locked,
                "\(shown); they are this connection's own, so that trying again does not help. End them first"
            )
        }
        return (.sqlite, busyMessage(shown))
    }

    func check(_ code: Int32, sql: String? = nil) throws(DatabaseError) {
        guard code != SQLITE_OK else { return }
        if let failure = takeReadFailure() { throw failure.adding(sql: sql) }
        guard let handle, sqlite3_extended_errcode(handle) == code else {
            noteUnfitness(code)
            throw DatabaseError(extendedCode: code, message: String(cString: sqlite3_errstr(code)), sql: sql)
        }
        throw error(sql: sql)
    }

    /// Takes note of a result code of SQLite's own, which is known to come from this connection. One that blocks share is
    /// opened anew then; others are used, and asked, by any thread.
    func noteUnfitness(_ code: Int32) {
        if gate != nil, DatabaseError.isUnfitness(code) { isUnfit = true }
    }
}

extension DatabaseError {
    /// Whether a connection that gets this code from SQLite, or its file, may be of no use as it is.
    static func isUnfitness(_ extendedCode: Int32) -> Bool {
        switch extendedCode & 0xff {
        case SQLITE_NOTADB, SQLITE_CORRUPT, SQLITE_IOERR: true
        default: extendedCode == SQLITE_READONLY_DBMOVED
        }
    }

    static func statementWithKeyFailed(code: Int32) -> DatabaseError {
        DatabaseError(
            extendedCode: code,
            message: """
                A statement failed that holds a key, or may be meant to (\(String(cString: sqlite3_errstr(code)))). Neither \
                it nor SQLite's message is shown, so that the key does not get out.
                """
        )
    }

    static var notOpen: DatabaseError {
        DatabaseError(
            extendedCode: SQLITE_MISUSE,
            reason: .misuse,
            message: "The database is not open. Call open() first, and look at lastError() if that fails."
        )
    }
}
