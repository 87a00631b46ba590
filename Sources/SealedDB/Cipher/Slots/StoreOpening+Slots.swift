internal import CSealedDBSystem
import Foundation

/// Opening stores with slots.
extension StoreOpening {
    /// Opens the slots beside the store, so that from here on the key stands for the data key.
    /// - Parameter header: the first bytes of the store's file, which tell which data key it needs.
    /// - Returns: `nil` if the store has no slots.
    func openedSlots(_ key: Key, header: [UInt8]) throws(DatabaseError) -> OpenedSlots? {
        guard !ignoresSlots, isFile, let path else { return nil }
        guard let file = FileSystem.resolve(path) else {
            guard errno != ENOENT, errno != ENOTDIR else { return nil }
            throw .system("Cannot look for key slots of \(path)", reason: .ioError)
        }
        let files = SlotFiles(store: file)
        guard files.mayExist else { return nil }
        let copies = files.read()
        // That a file could not be looked at for a moment does not make a store without slots one that has some.
        guard !copies.allSatisfy(\.isMissing) else { return nil }
        guard settings.plaintextHeaderSize == 0 else {
            throw .unusableSettings("\(path) has slots, which a store with a plaintext header cannot have.")
        }
        guard header.count == Key.saltByteCount else { throw DatabaseError.slotsWithoutStore(files) }
        return try files.open(copies, with: key, salt: header)
    }

    /// The key with which a store without slots is opened. The given one may know the data key of another store, of which
    /// this one is a copy: that counts for nothing where no slots lie.
    func keyWithoutSlots(_ key: Key, header: [UInt8]) -> Key {
        guard !ignoresSlots, key.form != .rawWithSalt, key.slotKeys.dataKey(salt: header) != nil else { return key }
        return key.unused
    }

    /// What to say if it does not open with that key.
    static let hasNoSlots =
        """
        No slots lie beside it, and those of another place open it, of which it is a copy: bring them (\(SlotFiles.ending), \
        \(SlotFiles.secondEnding)) too
        """

    /// Like ``openedSlots(_:header:)``, for a file that is already open.
    @discardableResult
    func openedSlots(_ key: Key, _ connection: Connection) throws(DatabaseError) -> OpenedSlots? {
        try openedSlots(key, header: connection.mainFileHeader())
    }

    /// Writes a file of slots that is missing, damaged or older anew, unless somebody else is writing to the store. Whether
    /// that succeeds does not matter: the other file is whole, and the next opening tries again.
    func repair(_ slots: OpenedSlots, _ key: Key, _ connection: Connection) {
        guard !looks, flags & SQLITE_OPEN_READONLY == 0, !connection.isReadOnly else { return }
        connection.setBusyTimeout(seconds: 0)
        defer { connection.setBusyTimeout(seconds: busyTimeout) }
        do throws(DatabaseError) {
            // Who changes slots has this lock.
            try connection.run("BEGIN IMMEDIATE")
            let now = try slots.files.open(with: key, salt: slots.dataKey.salt)
            try connection.requireNotOlder(now)
            if now.needsRepair { try slots.files.repair(now.sealed, of: now.owner) }
        } catch {
            // See above.
        }
        // Nothing was written to the store.
        _ = connection.rollBack()
    }
}

extension SlotFiles {
    /// The files of slots of the store with this path, of which there may be none.
    init(of path: String) {
        self.init(store: FileSystem.resolve(path) ?? path)
    }

    /// Throws if the store has slots.
    /// - Parameter remedy: what to do instead, as a sentence.
    static func requireNone(_ path: String, _ what: String, remedy: String) throws(DatabaseError) {
        guard SlotFiles(of: path).mayExist else { return }
        throw DatabaseError(
            extendedCode: SQLITE_MISUSE,
            reason: .unsupported,
            message: "\(path) has key slots, and \(what). Nothing was changed. \(remedy)"
        )
    }

    /// The mark of the copy that becomes a new store with slots. Nothing else has it.
    static let markOfNew = "slots"

    /// Removes the files of a store with slots that a process was making when it was killed.
    ///
    /// They are only removed if their store is still there under its name of a leftover, which only the making of such a
    /// store gives, so that nothing was ever stored under their data key; if they list no other data key and were never
    /// changed; and if no process has them locked, as the one that makes them does until the store has its name.
    func removeAbandoned() {
        guard !FileSystem.mayExist(store) else { return }
        // If one cannot be removed, the caller says that it is there.
        for path in [second, first] where isAbandoned(path) { unlink(path) }
    }

    private func isAbandoned(_ path: String) -> Bool {
        let descriptor = sealeddb_open(path, O_RDWR | O_NOFOLLOW | O_NONBLOCK, 0)
        guard descriptor >= 0 else { return false }
        defer { sealeddb_unlock_and_close(descriptor) }
        // What cannot be read or examined is not known to be abandoned.
        guard sealeddb_lock(descriptor, Int32(F_WRLCK), 0, 0) == 0,
            let bytes = try? SlotFiles.bytes(of: descriptor, size: SlotsParser.sizeLimit),
            let table = try? SealedSlots(parsing: bytes).table,  // As above.
            table.generation == 1, table.dataKeys.count == 1,
            hasUnnamedStore(table.dataKeys[0].salt), !FileSystem.mayExist(store),
            let isCurrent = try? SecretFile.isCurrent(descriptor, path: path)  // As above.
        else { return false }
        return isCurrent
    }

    private func hasUnnamedStore(_ salt: [UInt8]) -> Bool {
        TemporaryFile.leftovers(of: store, mark: SlotFiles.markOfNew).contains { leftover in
            // A file that cannot be read says nothing.
            guard let status = try? FileSystem.status(leftover), status.st_nlink == 1,
                let file = try? Connection(path: leftover, flags: SQLITE_OPEN_READONLY)  // As above.
            else { return false }
            defer { file.close() }
            guard let header = try? file.mainFileHeader() else { return false }  // As above.
            return header == salt
        }
    }

    /// Throws if files of slots lie where a store is to be made: its key would open none of them.
    func requireNone() throws(DatabaseError) {
        guard mayExist else { return }
        throw DatabaseError.slotsWithoutStore(self)
    }
}

extension DatabaseError {
    fileprivate static func slotsWithoutStore(_ files: SlotFiles) -> DatabaseError {
        DatabaseError(
            extendedCode: SQLITE_CANTOPEN,
            reason: .alreadyExists,
            message: """
                \(files.first) or \(SlotFiles.secondEnding) is there without its store: it may be all that opens a store that \
                was moved, or it was left by a command that was killed. It was left alone. Move it away, or bring its store back.
                """
        )
    }
}
