internal import SQLiteEngine

/// Copies a whole database from one open connection to another, by SQLite's backup API.
/// https://www.sqlite.org/backup.html
struct PageCopy {
    let source: Connection
    let target: Connection

    /// What was copied, to be compared with what the target then holds.
    struct Copied {
        let pages: Int64
        fileprivate let contents: ContentDigest.Parts
    }

    /// Without a journal a copy that fails would leave neither what the target held nor the copy.
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

    /// What is left of the target after a failure, in words.
    func state(after failure: DatabaseError) -> String {
        // What cannot be asked may be so.
        let mode = (try? target.text("PRAGMA main.journal_mode")) ?? "memory"
        guard mode == "memory", target.mainFilePath != nil, [SQLITE_IOERR, SQLITE_FULL].contains(failure.code) else {
            return "the destination is as it was before"
        }
        return """
            the destination, whose journal is in memory, is as it was before if all of that could be written back. Look at it \
            with PRAGMA integrity_check
            """
    }

    /// Copies. Whatever fails or is thrown by `betweenSteps`, the target is as it was before, but for
    /// ``DatabaseError/Reason/unverified``.
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

    /// Compares what the target holds with what was copied.
    /// - Throws: ``DatabaseError/Reason/unverified``, or the error that kept it from being compared.
    func verify(_ copied: Copied) throws(DatabaseError) {
        try trusted { () throws(DatabaseError) in
            // Otherwise what was written would be read from there.
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
            // What is wrong with pages that hold no rows, and is not so in the source.
            if let problem = try pageProblem(target), try problem != pageProblem(source) { throw unverified(problem) }
        }
    }

    /// Of the free list, pages that are used twice, and the like. What comes first in the answer.
    /// https://www.sqlite.org/pragma.html#pragma_quick_check
    private func pageProblem(_ connection: Connection) throws(DatabaseError) -> String? {
        do throws(DatabaseError) {
            // Rows that break a rule break it in the source, too, and the rules may be functions of the caller's.
            let answer = try connection.with("ignore_check_constraints", true) { () throws(DatabaseError) in
                try connection.text("PRAGMA main.quick_check(1)")
            }
            return answer.flatMap { $0.hasPrefix("*** in database") ? $0 : nil }
        } catch {
            // The connection lacks a collation or function of the schema.
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

    /// What is in memory cannot be rolled back when the last page of the source proves damaged. It is replaced by a copy
    /// of which all pages are known.
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

    /// SQLCipher refuses to copy between a store and plaintext without saying why. With pages of different size it returns
    /// OK, and writes a file that nobody can read and that shows parts of the source in the clear.
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
        // A connection that has read a text in one encoding reads none in another. https://www.sqlite.org/pragma.html#pragma_encoding
        if try source.integer("PRAGMA main.page_count") ?? 0 > 0 {
            let from = try source.text("PRAGMA encoding")
            // It has what its tables have; without any it takes what it is given, unless it has used another one.
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
