/// Copies a whole database from one open connection to another, by SQLite's backup API.
/// https://www.sqlite.org/backup.html
struct PageCopy {
    let source: Connection
    let target: Connection

    /// Copies; if that fails or `afterStep` throws, the target is as it was before.
    func run(
        pagesPerStep: Int32 = -1,
        afterStep: (Backup) throws(DatabaseError) -> Void = { _ in }
    ) throws(DatabaseError) {
        try trusted(requireSameForm)
        if let between = try intermediate() {
            defer { between.close() }
            try Backup.copy(from: source, to: between, pagesPerStep: pagesPerStep, afterStep: afterStep)
            try Backup.copy(from: between, to: target, pagesPerStep: -1) { _ in }
        } else {
            try Backup.copy(from: source, to: target, pagesPerStep: pagesPerStep, afterStep: afterStep)
        }
        try trusted(verify)
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

    private func verify() throws(DatabaseError) {
        do throws(DatabaseError) {
            _ = try target.integer("SELECT count(*) FROM sqlite_schema")
            let start = try target.fileBytes(count: 100)
            guard try !isKeyed(target) || start.isEmpty || !StoreHeader.isPlaintext(start) else {
                throw DatabaseError(extendedCode: SQLITE_CORRUPT, message: "it is plaintext")
            }
        } catch {
            throw DatabaseError(
                extendedCode: error.extendedCode,
                reason: .unverified,
                message: "The copy was written but cannot be relied on: \(error.message). Delete it."
            )
        }
    }
}
