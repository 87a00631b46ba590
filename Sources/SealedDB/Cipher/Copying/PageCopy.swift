internal import SQLiteEngine

/// Copies a whole database from one open connection to another with SQLite's backup API.
/// https://www.sqlite.org/backup.html
struct PageCopy {
    let source: Connection
    let target: Connection

    /// What was copied. `verify` compares it with what the target then holds.
    struct Copied {
        let pages: Int64
        fileprivate let contents: ContentDigest.Parts
    }

    /// Refuses a target without a journal: if the copy fails, it would hold neither its old contents nor the copy.
    func requireJournal() throws(DatabaseError) {
        guard try trusted({ () throws(DatabaseError) in try target.text("PRAGMA main.journal_mode") }) == "off" else {
            return
        }
        throw DatabaseError(
            extendedCode: SQLITE_MISUSE,
            reason: .unsupported,
            message: """
                The destination has no journal, so that a copy that fails would destroy what it holds. Nothing was written. \
                Set PRAGMA journal_mode to something else than OFF, or copy to a new file.
                """
        )
    }

    /// The state of the target after a failure, in words.
    func state(after failure: DatabaseError) -> String {
        // If the journal mode cannot be read, assume the worst: a journal in memory.
        let mode = (try? target.text("PRAGMA main.journal_mode")) ?? "memory"
        guard mode == "memory", target.mainFilePath != nil, [SQLITE_IOERR, SQLITE_FULL].contains(failure.code) else {
            return "the destination is as it was before"
        }
        return """
            the destination, whose journal is in memory, is as it was before if all of that could be written back. Look at it \
            with PRAGMA integrity_check
            """
    }

    /// Copies the database. If this fails, or `betweenSteps` throws, the target is as it was before, unless the error's
    /// reason is ``DatabaseError/Reason/unverified``.
    func run(pagesPerStep: Int32 = -1, betweenSteps: Backup.Step = { _, _ in }) throws(DatabaseError) -> Copied {
        try trusted(requireSameForm)
        let between = try intermediate()
        defer { between?.close() }
        var isAtEnd = false
        do throws(DatabaseError) {
            let copied = try Backup.copy(
                from: source,
                to: between ?? target,
                pagesPerStep: pagesPerStep,
                beforeEnd: { (backup) throws(DatabaseError) in
                    let contents = try ContentDigest.Parts(of: source)
                    isAtEnd = true
                    return Copied(pages: backup.totalPages, contents: contents)
                },
                betweenSteps: betweenSteps
            )
            if let between { try Backup.copy(from: between, to: target, pagesPerStep: -1) { _, _ in } }
            return copied
        } catch {
            guard isAtEnd, target.mainFilePath != nil, let state = target.stateAfterMoment(error.extendedCode) else {
                throw error
            }
            throw DatabaseError(
                extendedCode: error.extendedCode,
                reason: .unverified,
                message: "\(state): \(error.message)"
            )
        }
    }

    /// Compares the contents of the target with what was copied.
    /// - Throws: ``DatabaseError/Reason/unverified`` if they differ, or the error that prevented the comparison.
    func verify(_ copied: Copied) throws(DatabaseError) {
        try trusted { () throws(DatabaseError) in
            // Without this, the pages that were just written would be read from the cache.
            target.forgetPages()
            let found = try target.snapshot { () throws(DatabaseError) in try ContentDigest.Parts(of: target) }
            let start = try target.fileBytes(count: 100)
            guard try !isKeyed(target) || start.isEmpty || !StoreHeader.isPlaintext(start) else {
                throw unverified("it is plaintext")
            }
            if let difference = found.differences(from: copied.contents).first {
                throw unverified(
                    "\(difference) is not what the source holds, unless somebody else has written to it meanwhile"
                )
            }
            // The digests cover only rows. This finds problems of other pages, unless the source has the same problem.
            if let problem = try pageProblem(target), try problem != pageProblem(source) { throw unverified(problem) }
        }
    }

    /// The first problem that `quick_check` reports about pages, such as a damaged free list, or a page that is used
    /// twice; `nil` if there is none. https://www.sqlite.org/pragma.html#pragma_quick_check
    private func pageProblem(_ connection: Connection) throws(DatabaseError) -> String? {
        do throws(DatabaseError) {
            // Rows that violate a CHECK constraint violate it in the source too, and the constraint may call functions
            // of the library's user.
            let answer = try connection.with("ignore_check_constraints", true) { () throws(DatabaseError) in
                try connection.text("PRAGMA main.quick_check(1)")
            }
            return answer.flatMap { $0.hasPrefix("*** in database") ? $0 : nil }
        } catch {
            // The schema names a collation or function that the connection does not have.
            guard error.code == SQLITE_ERROR else { throw error }
            return nil
        }
    }

    private func unverified(_ what: String) -> DatabaseError {
        DatabaseError(
            extendedCode: SQLITE_CORRUPT,
            reason: .unverified,
            message: "The copy is complete, but is not to be used: \(what). Copy again."
        )
    }

    /// A database in memory that takes the copy first, if the target is encrypted and in memory and the source is a
    /// file. Such a target cannot be rolled back if the last page of the source turns out to be damaged. So it is
    /// replaced only by a copy whose pages have all been read. `nil` if none is needed.
    private func intermediate() throws(DatabaseError) -> Connection? {
        guard target.mainFilePath == nil, source.mainFilePath != nil,
            var parameters = try trusted({ () throws(DatabaseError) in try target.cipherParameters() })
        else { return nil }
        parameters.plaintextHeaderSize = 0
        return try StoreOpening(key: .random(), settings: parameters.settings()).open()
    }

    private func trusted<T>(_ body: () throws(DatabaseError) -> T) throws(DatabaseError) -> T {
        try source.trusted { () throws(DatabaseError) in try target.trusted(body) }
    }

    private func isKeyed(_ connection: Connection) throws(DatabaseError) -> Bool {
        guard Engine.isEncrypting else { return false }
        return try connection.text("PRAGMA cipher_provider") != nil
    }

    /// Refuses source and target that the backup API cannot copy between. Between a store and plaintext, SQLCipher
    /// fails without a reason. Between different page sizes it returns OK, and writes a file that nobody can read, with
    /// parts of the source in plaintext.
    private func requireSameForm() throws(DatabaseError) {
        let (from, to) = (try isKeyed(source), try isKeyed(target))
        guard from == to else {
            throw DatabaseError(
                extendedCode: SQLITE_MISUSE,
                reason: .unsupported,
                message: """
                    The source is \(from ? "encrypted" : "plaintext") and the destination \
                    \(to ? "encrypted" : "plaintext"), between which a backup cannot copy. Nothing was written. Open both \
                    with a key or both without; StoreEncryption encrypts a plaintext file.
                    """
            )
        }
        // A connection that has used one text encoding cannot read a database in another.
        // https://www.sqlite.org/pragma.html#pragma_encoding
        if try source.integer("PRAGMA main.page_count") ?? 0 > 0 {
            let from = try source.text("PRAGMA encoding")
            // A target with tables has their encoding. An empty one takes this encoding, unless its connection has used
            // another.
            if try target.integer("SELECT count(*) FROM main.sqlite_schema") == 0, let from {
                try target.run("PRAGMA encoding = '\(from)'")
            }
            let to = try target.text("PRAGMA encoding")
            guard from == to else {
                throw DatabaseError(
                    extendedCode: SQLITE_ERROR,
                    reason: .unsupported,
                    message: """
                        The source has its text in \(from ?? "?") and the destination in \(to ?? "?"), which a \
                        connection cannot change. Nothing was written. Use another connection for the destination, with \
                        PRAGMA encoding = '\(from ?? "?")' before anything else.
                        """
                )
            }
        }
        guard from else { return }
        for pragma in ["page_size", "cipher_page_size"] {
            let (from, to) = (try source.integer("PRAGMA \(pragma)"), try target.integer("PRAGMA \(pragma)"))
            guard from != to else { continue }
            throw DatabaseError(
                extendedCode: SQLITE_MISUSE,
                reason: .unusableSettings,
                message: """
                    The source has pages of \(from ?? 0) bytes and the destination of \(to ?? 0), between which SQLCipher \
                    cannot copy. Nothing was written. Create the destination with the page size of the source \
                    (CipherSettings.pageSize).
                    """
            )
        }
    }
}
