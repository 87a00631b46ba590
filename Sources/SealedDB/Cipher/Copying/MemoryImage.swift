import Foundation

/// Loads a database in memory from a file, and saves it to a file.
struct MemoryImage {
    let memory: Connection
    let key: Key?
    let settings: CipherSettings
    let busyTimeout: Double
    var ignoresUnseenUsers = false

    /// Replaces the database in memory by the contents of the file. Does not change the file.
    func load(_ path: String) throws(DatabaseError) {
        let status = try FileSystem.status(path)
        guard !StoreHeader.isEmpty(fileSize: Int64(status.st_size)) else {
            throw DatabaseError(
                extendedCode: SQLITE_NOTADB,
                reason: .notADatabase,
                message: "\(path) is empty. Nothing was loaded."
            )
        }
        try LogDamage.requireNone(ofStore: FileSystem.resolve(path) ?? path)
        let flags = access(path, W_OK) == 0 ? SQLITE_OPEN_READWRITE : SQLITE_OPEN_READONLY
        let opening = StoreOpening(path: path, key: key, settings: settings, flags: flags, busyTimeout: busyTimeout)
        let file = try opening.open()
        defer { file.close() }
        do throws(DatabaseError) {
            _ = try file.integer("SELECT count(*) FROM sqlite_schema")
        } catch {
            throw StoreHeader.diagnoseWithoutKey(error, header: try file.mainFileHeader())
        }
        let copy = PageCopy(source: file, target: memory)
        let copied: PageCopy.Copied
        do throws(DatabaseError) {
            try opening.requireAuthenticPages()
            try copy.requireJournal()
            copied = try copy.run()
        } catch {
            guard error.reason != .unverified else { throw error }
            throw error.adding(context: "Nothing was loaded, and the database in memory is as it was")
        }
        do throws(DatabaseError) {
            try copy.verify(copied)
        } catch {
            throw error.adding(context: "\(path) was loaded into memory, and is not to be relied on. Load it again")
        }
    }

    /// Writes a new file, verifies it, and replaces an existing file at this path with it. An existing file must be a
    /// store with the same key or, without a key, a plaintext database. If anything fails, the old file stays whole.
    func save(_ path: String) throws(DatabaseError) {
        let exists = try FileSystem.statusIfPresent(path) != nil
        guard let target = exists ? FileSystem.resolve(path) : path else {
            throw .system("Cannot follow the symbolic link \(path)", reason: .cannotCreate)
        }
        if exists {
            try SlotFiles.requireNone(
                target,
                "a database in memory has no data key for them",
                remedy: "Save to another path, or copy the contents."
            )
        } else {
            try StoreName.requireNoSlots(target)
            try SlotFiles(of: target).requireNone()
        }
        let old = exists ? try replaceable(target) : nil
        defer { old?.connection.close() }
        StoreCopy.removeLeftovers(of: target)
        let copy = try StoreCopy(beside: target, takesAttributes: exists)
        do throws(DatabaseError) {
            try fill(copy.path, setsWAL: old?.plan.journalMode == "wal")
            try Sealing(key: key, settings: settings).confirm(for: copy)
            if let old { try swap(copy, for: old) } else { try copy.moveIn() }
        } catch {
            copy.discard()
            throw error.adding(context: exists ? "Nothing was saved, and \(path) is as it was" : "Nothing was saved")
        }
        guard let old else { return try copy.synchronizeNew() }
        try copy.synchronizeSwap()
        try old.spoil("The database was saved to \(path)")
    }

    /// The existing file, opened and locked as the source of a rotation is.
    private func replaceable(_ path: String) throws(DatabaseError) -> RotationSource {
        do throws(DatabaseError) {
            let sealing = Sealing(key: key, settings: settings)
            return try RotationSource(
                path: path,
                sealing: sealing,
                busyTimeout: busyTimeout,
                ignoresUnseenUsers: ignoresUnseenUsers
            )
        } catch {
            guard error.code == SQLITE_NOTADB, key == nil else {
                throw error.adding(context: "Nothing was saved, and \(path) was not replaced")
            }
            throw DatabaseError(
                extendedCode: error.extendedCode,
                reason: .keyRequired,
                message: """
                    \(path) is encrypted, or not a database, and is not replaced by plaintext. Nothing was saved. Give the \
                    database the file's key, or save to another path.
                    """
            )
        }
    }

    private func fill(_ path: String, setsWAL: Bool) throws(DatabaseError) {
        // The key is confirmed later, when the file is complete.
        var opening = StoreOpening(path: path, key: key?.detached, settings: settings, takesLock: false)
        opening.flags |= SQLITE_OPEN_CREATE
        let file = try opening.open()
        defer { file.close() }
        // The file is worthless until the whole of it is synced, so it needs neither a journal nor earlier syncs.
        try file.run("PRAGMA journal_mode = OFF")
        try file.run("PRAGMA synchronous = OFF")
        let digest = try memory.snapshot { () throws(DatabaseError) in
            // The number of pages is not needed: `verify` compares the contents when it opens the file again.
            _ = try PageCopy(source: memory, target: file).run()
            return try ContentDigest.of(memory)
        }
        if setsWAL {
            guard try file.text("PRAGMA journal_mode = WAL") == "wal" else {
                throw unverified("it could not be put into WAL mode")
            }
        }
        guard file.close() else { throw unverified("it could not be closed") }
        try verify(opening, digest)
        try FileSystem.synchronize(path)
    }

    private func verify(_ opening: StoreOpening, _ digest: [UInt8]) throws(DatabaseError) {
        let file = try opening.open()
        defer { file.close() }
        guard try StoreHeader.isPlaintext(file.fileBytes(count: 100)) == (key == nil) else {
            throw unverified("its header is wrong")
        }
        // Rows that violate a CHECK constraint violated it in memory too.
        try file.run("PRAGMA ignore_check_constraints = ON")
        let sealing = Sealing(key: key, settings: settings)
        let report = try IntegrityReport.check(file, path: opening.path ?? "", sealing: sealing)
        guard report.isSound else { throw unverified(report.structureProblems.prefix(5).joined(separator: "; ")) }
        file.acceptUnknownCollations()
        let found = try file.snapshot { () throws(DatabaseError) in try ContentDigest.of(file) }
        guard found == digest else { throw unverified("its contents are not those of the database in memory") }
        guard file.close() else { throw unverified("it could not be closed") }
    }

    private func unverified(_ what: String) -> DatabaseError {
        DatabaseError(
            extendedCode: SQLITE_CORRUPT,
            reason: .unverified,
            message: "The new file did not verify and was discarded: \(what)."
        )
    }

    /// Locks others out of the old file, and renames the new one over it. Removes the old file's journal and log first,
    /// which SQLite would take for those of the new file.
    private func swap(_ copy: StoreCopy, for old: RotationSource) throws(DatabaseError) {
        let wasWAL = old.plan.journalMode == "wal"
        do throws(DatabaseError) {
            if wasWAL { try old.leaveWAL() }
            try old.holdExclusively()
            try old.requireNoJournal()
            try old.requireNobodyElse()
            try copy.swapIn()
        } catch {
            throw wasWAL ? old.returnedToWAL(error) : error
        }
    }
}
