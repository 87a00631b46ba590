internal import SQLiteEngine

extension Connection {
    /// Has SQLite compile the next statement of a text. It gets no more of the text than that, so that a script is read
    /// once, and an error shows its own statement. https://www.sqlite.org/c3ref/prepare.html
    /// - Returns: also where the statement ends. Without one, its pointer is `nil`.
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
        let outer = statementGuard.begin(text)
        // A hint that costs nothing where the statement is not kept. https://www.sqlite.org/c3ref/c_prepare_dont_log.html
        let (code, targets) = observedPrepare {
            let flags = UInt32(SQLITE_PREPARE_PERSISTENT)
            return watchingPages {
                first.map { sqlite3_prepare_v3(handle, $0, Int32(piece.count), flags, &pointer, &tail) } ?? SQLITE_OK
            }
        }
        let facts = statementGuard.end(outer)
        // That pragma tells damaged pages as rows: reading them is what it was asked for.
        if let failure = takeReadFailure(), text.pragma != "cipher_integrity_check" {
            // The result has nothing to tell: it was not stepped.
            sqlite3_finalize(pointer)
            forgetSchema()
            throw failure
        }
        guard code == SQLITE_OK || pointer != nil else {
            // What the library says itself shows no key.
            if code == SQLITE_AUTH, let refusal = statementGuard.takeRefusal() { throw .notAllowed(refusal) }
            // Text and message could show it.
            if text.isSecret || (code == SQLITE_ERROR && SQLStatementText.mayHoldKey(piece)) {
                throw .statementWithKeyFailed(code: sqlite3_extended_errcode(handle))
            }
            throw error(sql: String(decoding: piece, as: UTF8.self))
        }
        // Pragmas act when they are prepared.
        if text.pragma == "defer_foreign_keys" { mayDeferForeignKeys = true }
        if text.pragma == "cache_size" { statementGuard.heldChanges.cacheSize = nil }
        let prepared = PreparedStatement(pointer, text: text, facts: facts)
        prepared.targets = targets
        let length = tail.flatMap { tail in first.map { tail - $0 } } ?? piece.count
        return (prepared, end: length > 0 ? text.range.lowerBound + length : text.range.upperBound)
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
