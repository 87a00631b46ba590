import Foundation

/// Opening stores with slots.
extension StoreOpening {
    /// Opens the slots beside the store, so that from here on the key stands for the data key.
    /// - Parameter header: the first bytes of the store's file, which tell which data key it needs.
    /// - Returns: `nil` if the store has no slots.
    func openedSlots(_ key: Key, header: [UInt8]) throws(DatabaseError) -> OpenedSlots? {
        guard !ignoresSlots, isFile, let path, let file = FileSystem.resolve(path) else { return nil }
        let files = SlotFiles(store: file)
        guard files.mayExist else { return nil }
        guard settings.plaintextHeaderSize == 0 else {
            throw .unusableSettings("\(path) has slots, which a store with a plaintext header cannot have.")
        }
        guard header.count == Key.saltByteCount else { throw DatabaseError.slotsWithoutStore(files) }
        return try files.open(with: key, salt: header)
    }

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
            if now.needsRepair { try slots.files.repair(now.sealed, attributesFrom: slots.files.store) }
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

    /// Removes the files that a process left which was killed while it made a store with slots: the store has not got its
    /// name, but is there under that of a leftover, with its salt. Nothing was ever stored under their data key.
    func removeAbandoned() {
        guard !FileSystem.mayExist(store) else { return }
        let salts = read().compactMap(\.slots).flatMap { $0.table.dataKeys.map(\.salt) }
        guard !salts.isEmpty else { return }
        let isAbandoned = TemporaryFile.leftovers(of: store).contains { leftover in
            // A leftover that cannot be read says nothing; the files then stay, and the caller says so.
            guard let file = try? Connection(path: leftover, flags: SQLITE_OPEN_READONLY) else { return false }
            defer { file.close() }
            guard let header = try? file.mainFileHeader() else { return false }  // As above.
            return salts.contains(header)
        }
        // If they stay, the caller says so.
        if isAbandoned { for path in [second, first] { unlink(path) } }
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
                was moved, or it was left by a command that was killed. Nothing was changed. Move it away, or bring its store back.
                """
        )
    }
}
