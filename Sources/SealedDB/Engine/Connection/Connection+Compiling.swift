internal import CSealedDBSystem
internal import SQLiteEngine

extension Connection {
    /// Compiles the next statement of a text. SQLite receives only this statement, so that a script is parsed once, and
    /// an error message quotes only the statement it is about. https://www.sqlite.org/c3ref/prepare.html
    /// - Returns: the statement, whose pointer is `nil` if the rest holds none, and the offset at which it ends.
    func compile(
        _ sql: UnsafeBufferPointer<UInt8>,
        from start: Int
    ) throws(DatabaseError) -> (PreparedStatement, end: Int) {
        guard let handle else { throw .notOpen }
        try requireNoHook()
        let text = SQLStatementText(sql, from: start)
        let piece = UnsafeBufferPointer(rebasing: sql[text.range])
        guard text.range.upperBound == sql.count || sql[text.range.upperBound] != 0 else { throw .nulInSQL }
        guard piece.count <= Int32.max else {
            throw DatabaseError(extendedCode: SQLITE_TOOBIG, message: "The statement is longer than 2 GiB.")
        }
        if text.holdsKey { try Engine.requireCodec() }
        try authorizeKeyStatement(text)
        try requireSafeSchemas(text)
        compiledByteCount &+= piece.count
        var pointer: OpaquePointer?
        var tail: UnsafePointer<CChar>?
        let first = piece.baseAddress.map { UnsafeRawPointer($0).assumingMemoryBound(to: CChar.self) }
        // It reports damaged pages as rows: reading them is its purpose, and it does so without the codec.
        let isIntegrityCheck = text.pragma == "cipher_integrity_check"
        let hadFailed = isIntegrityCheck && sealeddb_has_failed(UnsafeMutableRawPointer(handle)) != 0
        let outer = statementGuard.begin(text)
        // This is a hint, and costs nothing if the statement is not kept.
        // https://www.sqlite.org/c3ref/c_prepare_dont_log.html
        let (code, targets) = observedPrepare {
            let flags = UInt32(SQLITE_PREPARE_PERSISTENT)
            return watchingPages {
                first.map { sqlite3_prepare_v3(handle, $0, Int32(piece.count), flags, &pointer, &tail) } ?? SQLITE_OK
            }
        }
        let facts = statementGuard.end(outer)
        if isIntegrityCheck {
            // Nothing is thrown for what it found.
            _ = takeReadFailure()
            if !hadFailed { sealeddb_forget_failures(UnsafeMutableRawPointer(handle)) }
        } else if let failure = takeReadFailure() {
            // The result is of no interest, because the statement was not stepped.
            sqlite3_finalize(pointer)
            forgetSchema()
            throw failure
        }
        guard code == SQLITE_OK || pointer != nil else {
            // The library's own message contains no key.
            if code == SQLITE_AUTH, let refusal = statementGuard.takeRefusal() { throw refusal }
            // The statement text and SQLite's message could contain the key.
            if text.isSecret || (code == SQLITE_ERROR && SQLStatementText.mayHoldKey(piece)) {
                throw .statementWithKeyFailed(code: sqlite3_extended_errcode(handle))
            }
            throw error(sql: String(decoding: piece, as: UTF8.self))
        }
        // Some pragmas take effect when they are prepared.
        if text.pragma == "defer_foreign_keys" { mayDeferForeignKeys = true }
        if text.verb == "savepoint", !String(decoding: piece, as: UTF8.self).hasBytes(of: SavepointName.block) {
            mayHoldSavepoints = true
        }
        if text.pragma == "cache_size" { statementGuard.heldChanges.cacheSize = nil }
        let prepared = PreparedStatement(pointer, text: text, facts: facts)
        prepared.targets = targets
        let length = tail.flatMap { tail in first.map { tail - $0 } } ?? piece.count
        return (prepared, end: length > 0 ? text.range.lowerBound + length : text.range.upperBound)
    }

    /// Whether a statement compiles where SQLite finds no virtual table: those of FTS5 are compiled so.
    /// https://www.sqlite.org/c3ref/c_prepare_dont_log.html
    func compilesWithoutVirtualTables(_ sql: String) throws(DatabaseError) -> Bool {
        guard let handle else { throw .notOpen }
        try requireNoHook()
        var pointer: OpaquePointer?
        let code = watchingPages {
            sqlite3_prepare_v3(handle, sql, -1, UInt32(SQLITE_PREPARE_NO_VTAB), &pointer, nil)
        }
        // The result would be that of a step, and there was none.
        sqlite3_finalize(pointer)
        guard code != SQLITE_ERROR else { return false }
        try check(code)
        return true
    }
}

extension DatabaseError {
    fileprivate static var nulInSQL: DatabaseError {
        DatabaseError(
            extendedCode: SQLITE_MISUSE,
            reason: .misuse,
            message: """
                The SQL holds a NUL byte, at which SQLite would stop reading. The statement was not executed. Bind a text \
                that holds one, or write char(0).
                """
        )
    }
}
