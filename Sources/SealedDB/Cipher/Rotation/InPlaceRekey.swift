/// `sqlite3_rekey` made as safe as it can be, for those who have no room for a copy.
///
/// Its result is never believed: it says OK when it failed, and the connection on which it failed would corrupt the
/// file at its next write. So it gets a connection of its own that is closed at once, and a fresh one tells which key
/// the file has.
struct InPlaceRekey {
    var opening: StoreOpening
    let newKey: Key

    /// - Throws: ``DatabaseError``; its message says which key opens the store.
    func run() throws(DatabaseError) {
        guard newKey.form != .rawWithSalt else {
            throw .malformedKey(
                "Rekeying in place to a key with salt loses the store if it is interrupted. Use rotateKey(to:)."
            )
        }
        // Without its salt a store that does not hold it would be lost.
        try opening.settings.validate(for: newKey)
        let lock = try exclusiveLock()
        defer { lock.release() }
        var opening = opening
        opening.takesLock = false
        try LogDamage.requireNone(ofStore: opening.path ?? "")
        let connection = try opening.open()
        do throws(DatabaseError) {
            // A journal whose deletion is not synced could bring the old key back.
            try connection.run("PRAGMA synchronous = EXTRA")
            // What stands in a log must be in the file, to be looked at there.
            let isWAL = try connection.text("PRAGMA journal_mode") == "wal"
            if isWAL { _ = try connection.checkpoint(.truncate, schema: "main") }
            // Whoever is in the way is found out here; sqlite3_rekey would not tell.
            try connection.run("BEGIN EXCLUSIVE")
            // Who is not told of by the kernel meets pages under another key, and cannot write.
            try FileUsers.requireNobodyElse(connection.mainFilePath ?? "", ignoresUnseen: true)
            if isWAL, try !connection.hasWholeLogInFile() {
                throw DatabaseError(
                    extendedCode: SQLITE_BUSY,
                    reason: .busy,
                    message: "Somebody wrote to the store meanwhile. Try again."
                )
            }
            try requireAuthenticPages(connection)
            // From here on it may be the only one.
            try newKey.confirm()
        } catch {
            connection.close()
            throw error.adding(context: "The store is unchanged under the old key")
        }
        do throws(DatabaseError) {
            try opening.withRekeySpec(of: newKey, for: connection) { spec in connection.rekey(spec) }
        } catch {
            connection.close()
            throw error.adding(context: "The store is unchanged under the old key")
        }
        connection.close()

        var fresh = opening
        fresh.key = newKey
        let confirmed: Connection
        do throws(DatabaseError) {
            confirmed = try fresh.open()
        } catch {
            throw failure(error, opening)
        }
        defer { confirmed.close() }
        do throws(DatabaseError) {
            // Until the log is in the file, the file alone still has the old key.
            _ = try confirmed.integer("PRAGMA wal_checkpoint(TRUNCATE)")
        } catch {
            throw error.adding(context: "The store has the new key, but its log could not be written back")
        }
    }

    /// SQLCipher reads a page with a wrong code as zeros, and gives these the code of the new key.
    private func requireAuthenticPages(_ connection: Connection) throws(DatabaseError) {
        guard let key = opening.key, opening.settings.parameters.usesHMAC else { return }
        let scan = PageScan(connection: connection, key: key, settings: opening.settings)
        let damaged = try scan.damagedPages(ofFirst: connection.integer("PRAGMA page_count") ?? .max)
        guard let first = damaged.first else { return }
        throw DatabaseError(
            extendedCode: SQLITE_CORRUPT,
            reason: .damaged,
            message: """
                \(damaged.count) pages of the store are damaged, the first is page \(first). Restore it from a backup, or read \
                what can be read.
                """
        )
    }

    /// What became of the store, which did not open with the new key.
    private func failure(_ error: DatabaseError, _ opening: StoreOpening) -> DatabaseError {
        // Which error it would be is of no account: that it does not open says what is to be said.
        if (try? opening.open().close()) != nil {
            return DatabaseError(
                extendedCode: error.extendedCode,
                reason: .unverified,
                message:
                    "Rekeying failed. The store is whole under the old key. Look for a full disk or another user of it."
            )
        }
        // Which key it has is for the next opening to tell: a page that cannot be read looks like a wrong key.
        return error.adding(
            context:
                "Rekeying ended in a failure, and the store has one of the two keys. Keep both, and look which opens it"
        )
    }

    /// Who has the store open could go on only with the old key, in a file that has the new one.
    private func exclusiveLock() throws(DatabaseError) -> UsageLock {
        do throws(DatabaseError) {
            guard let path = opening.path.flatMap({ FileSystem.resolve($0) }) else {
                throw .system("Cannot find the store", reason: .noSuchFile)
            }
            return try UsageLock.exclusive(path, timeout: opening.busyTimeout)
        } catch {
            throw error.adding(context: "The store is unchanged under the old key")
        }
    }
}
