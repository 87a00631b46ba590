/// Changes the key with `sqlite3_rekey`, as safely as that is possible, for stores on disks without room for a copy.
///
/// `sqlite3_rekey` returns OK even when it failed, and a connection on which it failed would corrupt the file with its
/// next write. So its result is not trusted: the rekey runs on a connection of its own, which is closed at once, and a
/// new connection then finds out which key the file has.
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
        // A store with a plaintext header does not hold its salt. Without the salt the store would be lost.
        try opening.settings.validate(for: newKey)
        try requireNoSlots()
        let lock = try exclusiveLock()
        defer { lock.release() }
        // It may have got some before the lock.
        try requireNoSlots()
        var opening = opening
        opening.takesLock = false
        try LogDamage.requireNone(ofStore: opening.path ?? "")
        let connection = try opening.open()
        let hold = KeyHold()
        defer { hold.release() }
        do throws(DatabaseError) {
            // A journal whose deletion is not synced could bring the old key back.
            try connection.run("PRAGMA synchronous = EXTRA")
            // The file must hold everything that is in the log, because its pages are checked there.
            let isWAL = try connection.text("PRAGMA journal_mode") == "wal"
            if isWAL { _ = try connection.checkpoint(.truncate, schema: "main") }
            // This finds connections that are in the way. sqlite3_rekey would not report them.
            try connection.run("BEGIN EXCLUSIVE")
            // A user that the kernel does not report would later read pages under another key, fail, and so cannot
            // write.
            try FileUsers.requireNobodyElse(connection.mainFilePath ?? "", ignoresUnseen: true)
            if isWAL, try !connection.hasWholeLogInFile() {
                throw DatabaseError(
                    extendedCode: SQLITE_BUSY,
                    reason: .busy,
                    message: "Somebody wrote to the store meanwhile. Try again."
                )
            }
            try requireAuthenticPages(connection)
            // From here on the new key may be the only key of the store.
            _ = try newKey.confirmed(keptBy: hold)
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
            // As long as the new pages are only in the log, the file alone still has the old key.
            _ = try confirmed.integer("PRAGMA wal_checkpoint(TRUNCATE)")
        } catch {
            throw error.adding(context: "The store has the new key, but its log could not be written back")
        }
    }

    private func requireNoSlots() throws(DatabaseError) {
        try SlotFiles.requireNone(
            opening.path ?? "",
            "rekeying in place would leave them with a data key that opens nothing",
            remedy: "Use rotateKey(to:), which replaces a slot."
        )
    }

    /// Refuses a store with damaged pages. SQLCipher reads a page with a wrong authentication code as zeros, and would
    /// write these zeros with a valid code under the new key.
    private func requireAuthenticPages(_ connection: Connection) throws(DatabaseError) {
        guard let key = opening.key, opening.settings.parameters.usesHMAC else { return }
        let scan = PageScan(connection: connection, key: key, settings: opening.settings)
        let count = try connection.integer("PRAGMA page_count") ?? .max
        var free = 0
        let damaged = try scan.damagedPages(ofFirst: count, scan.pageCipher(), marks: nil) { _, _ in
            free += 1
        } progress: { _ in
        }
        guard free == 0 || !damaged.isEmpty else {
            throw DatabaseError(
                extendedCode: SQLITE_ERROR,
                reason: .unsupported,
                message: """
                    \(free) free pages of the store were never written, or half, and SQLCipher cannot rekey them. The store is unchanged \
                    under the old key. Use rotateKey(to:), which needs no such pages.
                    """
            )
        }
        guard let first = damaged.first else { return }
        throw DatabaseError(
            extendedCode: SQLITE_CORRUPT,
            reason: .damaged,
            message: """
                \(damaged.count) pages of the store are damaged, the first is page \(first). Restore it from a backup, or save \
                what can be read with `sealdb recover`.
                """
        )
    }

    /// The error to throw when the store does not open with the new key. It says what became of the store.
    private func failure(_ error: DatabaseError, _ opening: StoreOpening) -> DatabaseError {
        // Only whether the store opens with the old key counts here, not why it does not.
        if (try? opening.open().close()) != nil {
            return DatabaseError(
                extendedCode: error.extendedCode,
                reason: .unverified,
                message:
                    "Rekeying failed. The store is whole under the old key. Look for a full disk or another user of it."
            )
        }
        // Which of the two keys it has is left to the next opening: an unreadable page looks like a wrong key.
        return error.adding(
            context:
                "Rekeying ended in a failure, and the store has one of the two keys. Keep both, and look which opens it"
        )
    }

    /// Makes sure that nobody else has the store open: they would go on with the old key in a file that has the new
    /// one.
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
