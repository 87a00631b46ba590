/// Copies a whole database from one open connection to another, by SQLite's backup API.
/// https://www.sqlite.org/backup.html
struct PageCopy {
    let source: Connection
    let target: Connection

    typealias Step = (_ completedPages: Int64, _ totalPages: Int64) throws(DatabaseError) -> Void

    /// Copies, and compares what the target then holds. If that fails or `afterStep` throws, the target is as it was before;
    /// but for ``DatabaseError/Reason/unverified``, and for what is thrown after the last step.
    func run(pagesPerStep: Int32 = -1, afterStep: Step = { _, _ in }) throws(DatabaseError) {
        try trusted(requireSameForm)
        let copied = try copy(pagesPerStep) { (backup) throws(DatabaseError) in
            try afterStep(backup.completedPages, backup.totalPages)
        }
        do throws(DatabaseError) {
            try trusted { () throws(DatabaseError) in try verify(copied.contents.get()) }
        } catch {
            throw DatabaseError(
                extendedCode: error.extendedCode,
                reason: .unverified,
                message: "The copy was written but cannot be relied on: \(error.message). Delete it."
            )
        }
        try afterStep(copied.pages, copied.pages)
    }

    private typealias Copied = (pages: Int64, contents: Result<ContentDigest.Parts, DatabaseError>)

    private func copy(
        _ pagesPerStep: Int32,
        _ betweenSteps: (Backup) throws(DatabaseError) -> Void
    ) throws(DatabaseError) -> Copied {
        let contents = { (backup: Backup) throws(DatabaseError) -> Copied in
            // If it fails, the copy is there already.
            (backup.totalPages, Result { () throws(DatabaseError) in try ContentDigest.Parts(of: source) })
        }
        guard let between = try intermediate() else {
            return try Backup.copy(
                from: source,
                to: target,
                pagesPerStep: pagesPerStep,
                atEnd: contents,
                betweenSteps: betweenSteps
            )
        }
        defer { between.close() }
        let result = try Backup.copy(
            from: source,
            to: between,
            pagesPerStep: pagesPerStep,
            atEnd: contents,
            betweenSteps: betweenSteps
        )
        try Backup.copy(from: between, to: target, pagesPerStep: -1) { _ in }
        return result
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

    private func verify(_ contents: ContentDigest.Parts) throws(DatabaseError) {
        let found = try target.snapshot { () throws(DatabaseError) in try ContentDigest.Parts(of: target) }
        let start = try target.fileBytes(count: 100)
        guard try !isKeyed(target) || start.isEmpty || !StoreHeader.isPlaintext(start) else {
            throw DatabaseError(extendedCode: SQLITE_CORRUPT, message: "it is plaintext")
        }
        guard let difference = found.difference(from: contents) else { return }
        throw DatabaseError(
            extendedCode: SQLITE_CORRUPT,
            message: "\(difference) not what the source holds, unless somebody else has written to it meanwhile"
        )
    }
}
