import Foundation
internal import SQLiteEngine

extension Connection {
    static func openError(_ handle: OpaquePointer?, code: Int32, path: String) -> DatabaseError {
        let systemError = handle.map { sqlite3_system_errno($0) } ?? 0
        var text = handle.map { String(cString: sqlite3_errmsg($0)) } ?? String(cString: sqlite3_errstr(code))
        if systemError != 0 { text += " (\(String(cString: strerror(systemError))))" }
        var status = stat()
        let number = stat(path, &status) == 0 ? systemError : systemError == 0 ? errno : systemError
        let reason: DatabaseError.Reason
        if status.st_mode & S_IFMT == S_IFDIR {
            reason = .notRegularFile
            text += "; it is a directory"
        } else if number != 0, [SQLITE_CANTOPEN, SQLITE_IOERR].contains(code & 0xff) {
            reason = .unopened(number)
        } else {
            reason = .sqlite
        }
        return DatabaseError(extendedCode: code, reason: reason, message: "Cannot open \(path): \(text)")
    }

    /// The error that SQLite last reported on this connection.
    ///
    /// If a closure of the caller threw in the meantime, the thrown error is returned.
    /// - Parameter statement: the statement that failed, if SQLite's message may contain its values. They are removed.
    func error(sql: String? = nil, of statement: PreparedStatement? = nil) -> DatabaseError {
        guard let handle else { return .notOpen }
        guard !isForked else { return .forked }
        if let failure = takeReadFailure() { return failure.adding(sql: sql) }
        let code = sqlite3_extended_errcode(handle)
        if code == SQLITE_AUTH, let refusal = statementGuard.takeRefusal() { return refusal }
        if let error = thrown.take(code, sql: sql) { return error }
        noteUnfitness(code)
        let offset = sealeddb_error_offset(handle)
        let original = UnsafeBufferPointer(start: sqlite3_errmsg(handle), count: strlen(sqlite3_errmsg(handle)))
        let bytes = original.map { UInt8(bitPattern: $0) }
        // In the library's own statements, values are file paths, which the message should show.
        let shown = statementGuard.isSuspended ? nil : statement?.withoutValues(bytes, code)
        let text = String(decoding: code == SQLITE_ERROR ? bytes.withoutLiteral : bytes, as: UTF8.self)
        let (reason, message) = explanation(code, text, shown: shown ?? text)
        return DatabaseError(
            extendedCode: code,
            reason: reason,
            message: message,
            sql: sql,
            offset: sql != nil && offset >= 0 ? Int(offset) : nil
        )
    }

    var lastCode: Int32 { handle.map { sqlite3_extended_errcode($0) } ?? SQLITE_MISUSE }

    /// Describes what happened to a transaction whose COMMIT failed; `nil` if nothing of it is stored.
    ///
    /// Nothing is stored, except in these cases. With a rollback journal, the commit happens when the journal is
    /// deleted; after that, SQLite syncs the directory and truncates the file. A journal that is truncated or
    /// overwritten instead is synced after that. In WAL mode, SQLite syncs the log and extends its index after the whole
    /// transaction is in it, and commits each file separately. <https://www.sqlite.org/atomiccommit.html>
    /// <https://www.sqlite.org/lang_attach.html>
    func stateAfterFailedCommit(_ code: Int32) -> String? {
        if let state = stateAfterMoment(code) { return state }
        // In these cases, nothing was written yet. The first is that there is nothing to commit, or no such savepoint.
        let early = [SQLITE_ERROR, Connection.refusedByHook, SQLITE_READONLY_DBMOVED]
        guard !early.contains(code), lastCode != Connection.refusedByHook else { return nil }
        return hasSeveralFiles ? Connection.isStoredInPart : nil
    }

    /// Whether files are attached. True if this cannot be determined.
    private var hasSeveralFiles: Bool { (try? attachedFiles().isEmpty) != true }

    private static let isStoredInPart = """
        The transaction could not be committed. In WAL mode SQLite commits each file by itself, so what was written to one of \
        them may be stored: look before you repeat it
        """

    /// Describes a failure that may have come after the moment of the commit; `nil` if it came before.
    func stateAfterMoment(_ code: Int32) -> String? {
        if isDraft { return nil }
        if code == Connection.directoryNotSynced { return Connection.isStored }
        if code == ResultCode.SQLITE_IOERR_DELETE_NOENT.rawValue { return Connection.journalWasRemoved }
        guard code & 0xff == SQLITE_IOERR || code & 0xff == SQLITE_NOMEM else { return nil }
        // Without memory the mode cannot be asked for either: then it may be either. For other failures the rules of the
        // journal, which follow, ask again and take what cannot be asked for as stored.
        let mode = try? trusted { () throws(DatabaseError) in try text("PRAGMA main.journal_mode") }
        if mode == "wal" || mode == nil && code & 0xff == SQLITE_NOMEM {
            guard !Connection.beforeMomentOfLog.contains(code) else { return nil }
            if hasSeveralFiles { return Connection.isStoredInPart }
            let why = code == Connection.notSynced ? "which could not be synced" : "before something else failed"
            return """
                The transaction may be stored, now or after a crash: all of it may have been written to the log, \(why). Look \
                before you repeat it
                """
        }
        guard code & 0xff == SQLITE_IOERR, mayFailAfterMomentOfJournal(code) else { return nil }
        return """
            The transaction may be stored: what SQLite does after the moment of the commit, which is the end of the journal, \
            may have failed. Look before you repeat it
            """
    }

    /// Whether the failure may have come after the moment of the commit. True if this cannot be determined. The same
    /// system calls also come before that moment, and the code does not tell which one failed.
    private func mayFailAfterMomentOfJournal(_ code: Int32) -> Bool {
        // SQLite reads nothing after that moment.
        guard ![SQLITE_IOERR_READ, SQLITE_IOERR_SHORT_READ].contains(code) else { return false }
        // If the mode cannot be queried, the failure may have come after the commit. SQLite overwrites or truncates a
        // journal that stays, and syncs it.
        guard let mode = try? text("PRAGMA main.journal_mode"), !["truncate", "persist"].contains(mode),
            (try? text("PRAGMA main.locking_mode")) == "normal"  // If the query fails, it may have.
        else { return true }
        return !Connection.beforeEndOfJournal.contains(code)
    }

    /// What only fails until the last frame of a transaction is in the log: reads, writes, locks, and what the system has no
    /// room for. After it, SQLite syncs the log, and makes room for the frames in the index, in shared memory.
    private static let beforeMomentOfLog: Set<Int32> = [
        SQLITE_IOERR_READ, SQLITE_IOERR_SHORT_READ, ResultCode.SQLITE_IOERR_WRITE.rawValue,
        ResultCode.SQLITE_IOERR_LOCK.rawValue, ResultCode.SQLITE_IOERR_CORRUPTFS.rawValue,
        ResultCode.SQLITE_IOERR_COMMIT_ATOMIC.rawValue, ResultCode.SQLITE_IOERR_BEGIN_ATOMIC.rawValue,
        ResultCode.SQLITE_IOERR_TRUNCATE.rawValue,
    ]
    /// What only fails until the journal is deleted, which is the moment. After it, SQLite shortens the file, and gives
    /// back locks.
    private static let beforeEndOfJournal: Set<Int32> = [
        ResultCode.SQLITE_IOERR_WRITE.rawValue, notSynced, ResultCode.SQLITE_IOERR_LOCK.rawValue,
        ResultCode.SQLITE_IOERR_CHECKRESERVEDLOCK.rawValue, ResultCode.SQLITE_IOERR_NOMEM.rawValue,
        ResultCode.SQLITE_IOERR_ACCESS.rawValue, ResultCode.SQLITE_IOERR_CORRUPTFS.rawValue,
    ]
    /// `SQLITE_IOERR_FSYNC`.
    private static let notSynced = SQLITE_IOERR | 4 << 8
    /// `SQLITE_IOERR_DIR_FSYNC`. <https://www.sqlite.org/rescode.html#ioerr_dir_fsync>
    private static let directoryNotSynced = SQLITE_IOERR | 5 << 8
    /// `SQLITE_CONSTRAINT_COMMITHOOK`.
    private static let refusedByHook = SQLITE_CONSTRAINT | 2 << 8
    private static let journalWasRemoved = """
        The transaction may be stored: somebody else had removed its journal, the end of which is the moment of the commit, \
        and without which a crash would have left a part of it. Find out who did. Look before you repeat it
        """
    private static let isStored = """
        The transaction is stored, but the directory could not be synced: after a power failure it may be undone. Do not \
        repeat it before you have looked
        """

    /// Returns the error of an execution that was ended before its last step and could not be completed. Outside a
    /// transaction, ending a statement commits what it wrote; if SQLite cannot commit, it rolls back.
    func endFailure(_ code: Int32, of statement: PreparedStatement?) -> DatabaseError {
        guard !isForked else { return .forked }
        // The handle's own error code may be outdated: another thread may have used the connection since.
        noteUnfitness(code)
        let (text, sql) = (String(cString: sqlite3_errstr(code)), statement?.sql)
        let error =
            lastCode == code
            ? error(sql: sql, of: statement) : DatabaseError(extendedCode: code, message: text, sql: sql)
        guard isAutocommit else { return error }
        if let state = stateAfterMoment(code) { return error.adding(commitState: state) }
        return error.adding(context: "What the statement wrote could not be committed, and was rolled back")
    }

    /// Says more than SQLite where that does not help: what a lock is of, and what a transaction that was cut off needs. SQLite
    /// has the same code for locks of other connections and of this one.
    /// - Parameter shown: the message with any secret values removed.
    private func explanation(_ code: Int32, _ message: String, shown: String) -> (DatabaseError.Reason, String) {
        // https://www.sqlite.org/rescode.html#readonly_rollback
        if ResultCode(rawValue: code) == .SQLITE_READONLY_ROLLBACK {
            return (
                .sqlite,
                """
                \(shown): a transaction was cut off, and has to be undone before anybody can read the file, with the journal that lies \
                beside it. Read the file once with a program that may write it and its directory, such as sqlite3, and try again
                """
            )
        }
        guard code & 0xff == SQLITE_BUSY else {
            let isStandardText = message == String(cString: sqlite3_errstr(code))
            return (.sqlite, isStandardText ? shown + (causeInFiles(code) ?? "") : shown)
        }
        if code == SQLITE_BUSY_SNAPSHOT {
            return (
                .locked,
                """
                \(shown): another connection has written since the transaction or result set of this one began, which \
                sees the older state and so cannot write. Trying again does not help; end it, and begin anew
                """
            )
        }
        // For locks of others, SQLite uses the standard text of the code. A special text, such as "cannot commit
        // transaction - SQL statements in progress", is about this connection.
        if message != String(cString: sqlite3_errstr(code)) {
            return (
                .locked,
                "\(shown); they are this connection's own, so that trying again does not help. End them first"
            )
        }
        return (.sqlite, busyMessage(shown))
    }

    /// What the text of a code leaves out: of which file it is, and what to look at. `nil` for other codes, and for a database
    /// without a file. SQLite does not tell whether it was the file, what lies beside it, or one that is attached.
    private func causeInFiles(_ code: Int32) -> String? {
        guard let handle, let path = mainFilePath else { return nil }
        let place = "\(path), a file beside it, or one that is attached"
        switch code & 0xff {
        case SQLITE_IOERR, SQLITE_CANTOPEN:
            let number = sqlite3_system_errno(handle)
            let isTold = code != SQLITE_IOERR_SHORT_READ && Connection.tellingErrors.contains(number)
            return " (\(place))" + (isTold ? ": \(String(cString: strerror(number)))" : "")
        case SQLITE_FULL:
            return """
                : there is no room for \(place), or PRAGMA max_page_count allows no more pages. Make room, and try again
                """
        case SQLITE_READONLY where code == SQLITE_READONLY_DBMOVED:
            return ": \(path) was moved, removed or replaced while it was open. Close the database, and open it again"
        case SQLITE_READONLY:
            return """
                : \(place), was opened for reading only, or this user, the file system or PRAGMA query_only forbids to write it
                """
        default:
            return nil
        }
    }

    /// Errors of the system that explain a failure. SQLite has the last error, whether or not it is of this failure: others,
    /// such as `ENOENT`, mostly are of what was looked for in between.
    private static let tellingErrors: Set<Int32> = [
        EIO, ENOSPC, EDQUOT, EFBIG, EMFILE, ENFILE, EROFS, EACCES, EPERM, ENOLCK, ESTALE,
    ]

    func check(_ code: Int32, sql: String? = nil) throws(DatabaseError) {
        guard code != SQLITE_OK else { return }
        guard !isForked else { throw .forked }
        if let failure = takeReadFailure() { throw failure.adding(sql: sql) }
        guard let handle, sqlite3_extended_errcode(handle) == code else {
            noteUnfitness(code)
            throw DatabaseError(extendedCode: code, message: String(cString: sqlite3_errstr(code)), sql: sql)
        }
        throw error(sql: sql)
    }

    /// Records a result code that SQLite returned for this connection. A connection that blocks share is opened again
    /// if the code makes it unfit. Other connections are not tracked, because any thread may use them at any time.
    func noteUnfitness(_ code: Int32) {
        if gate != nil, DatabaseError.isUnfitness(code) { isUnfit = true }
    }
}

extension [UInt8] {
    /// A message of SQLite's parser without the literal that it quotes: the literal is data, up to the whole of a text that
    /// does not end. Names, keywords and signs stay. https://www.sqlite.org/c3ref/error_offset.html tells the place.
    fileprivate var withoutLiteral: [UInt8] {
        let forms = [
            ("near \"", "\": syntax error", "near a literal: syntax error"),
            ("unrecognized token: \"", "\"", "unrecognized token"),
        ]
        for (start, end, replacement) in forms
        where starts(with: start.utf8) && suffix(end.utf8.count) == Array(end.utf8)[...] {
            let token = dropFirst(start.utf8.count).dropLast(end.utf8.count)
            let isName = token.allSatisfy { byte in
                byte >= 0x80 || byte == UInt8(ascii: "_") || byte == UInt8(ascii: "$")
                    || (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte)
                    || (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(byte | 0x20)
            }
            let isNumber = token.first.map { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) } ?? false
            let isSign = token.count <= 3 && !token.contains { "'\"[`".utf8.contains($0) || (0x30...0x39).contains($0) }
            return isSign || isName && !isNumber && token.count <= 64 ? self : Array(replacement.utf8)
        }
        return self
    }
}

extension DatabaseError {
    /// Whether this code means that the connection, or its file, may be unusable as it is.
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
