import Foundation

/// Everything that is needed to open a connection to a store.
struct StoreOpening {
    /// `nil` for a database in memory, empty for a temporary file.
    var path: String?
    var key: Key?
    var settings = CipherSettings()
    var flags: Int32 = SQLITE_OPEN_READWRITE
    var vfs: String?
    var busyTimeout: Double = 2
    /// The gate of the new connection. The calling thread has already entered it.
    var gate: ThreadGate?
    /// Whether a new store gets its first page at once, so that its header can be checked before it holds data.
    var createsFirstPage = true
    /// Whether SQL on this connection may set keys and cipher settings.
    var allowsCipherStatements = false
    /// Whether the connection takes a ``UsageLock``, which shows it to others. False if the caller holds the lock
    /// already.
    var takesLock = true
    /// Whether SQLite keeps everybody else out of the file from the first read on.
    /// https://www.sqlite.org/pragma.html#pragma_locking_mode
    var locksExclusively = false
    /// Whether the store is only read, and nothing is written, not even beside the file; see ``StoreView``.
    var looks = false
    /// Whether slots are used that are older than those that the store has seen.
    var acceptsOlderSlots = false
    /// What the slots must be at least; `nil` for nothing.
    var slotPin: KeySlots.Pin?
    /// Whether the key is the store's own, whatever slots lie beside it.
    var ignoresSlots = false
    /// Whether the store is looked at where SQLite cannot read it, because it would have to write in a directory in which
    /// this user may not. Only for reading. See ``StoreView/isStill()``.
    var looksIfUnreadable = false
    /// Whether an empty file is refused even without a key.
    var needsContents = false
    /// The serialized database that a database in memory starts with.
    var image: Data?
    /// Called with a text if the log has committed transactions behind damaged bytes: SQLite leaves them out, and the
    /// store is opened all the same, because a power failure can leave such a log, too.
    var warn: (@Sendable (String) -> Void)?

    /// Opens the connection. With a key, this also sets the key, applies the settings, and reads from the store to
    /// prove that the key is right.
    func open() throws(DatabaseError) -> Connection {
        if let key {
            try Engine.requireCodec()
            try settings.validate(for: key)
        }
        if !looks, isOnReadOnlyMedium { return try forLooking.open() }
        try refuseEmptied()
        var lostTransactions = 0
        if isFile, let path { try StoreName.requireOnly(path, isReadOnly: flags & SQLITE_OPEN_READONLY != 0) }
        if let key {
            if isFile, let path { try StoreName.requireRoom(path) }
            lostTransactions = try refuseForeignJournal(key)
        } else if isFile, !looks, let file = path.flatMap({ FileSystem.resolve($0) }) {
            _ = try StoreOpening.isLogInUse(ofStore: file, log: StoreOpening.file("-wal", beside: file))
            try StoreOpening.requireNoJournalOfFormerFile(ofStore: file, vfs: vfs)
        }
        let connection = try looks ? StoreView.connection(for: self) : lockedConnection()
        connection.statementGuard.allowsCipherStatements = allowsCipherStatements
        do throws(DatabaseError) {
            connection.setBusyTimeout(seconds: busyTimeout)
            if let image { try connection.deserialize(image) }
            if let key {
                let slots = try unlock(connection, with: key)
                connection.guardRules = GuardRules(
                    allowsCipherStatements: allowsCipherStatements,
                    allowsInheritedKeys: settings.isDefault,
                    hasSlots: slots != nil
                )
            }
        } catch {
            let isOvertaken = isOvertaken(connection, by: error)
            // If SQLCipher runs out of memory while it copies the key, closing the connection would free the same block
            // twice.
            if key != nil, error.code == SQLITE_NOMEM { connection.abandon() } else { connection.close() }
            if isOvertaken { return try open() }
            if looksIfUnreadable, !looks, needsIndex(error) { return try forLooking.open() }
            throw error
        }
        if lostTransactions > 0, let path {
            warn?(LogDamage.warning(ofLost: lostTransactions, ofStore: path, isReadOnly: !mayWrite))
        }
        return connection
    }

    private var mayWrite: Bool { !looks && flags & SQLITE_OPEN_READONLY == 0 }
    var isFile: Bool { path.map { !$0.isEmpty && $0 != ":memory:" } ?? false }
    private var name: String { path ?? "The database in memory" }

    /// Refuses a journal or log beside the file that does not fit the key. At opening, SQLite would write it into the
    /// store before the key is proved right. A page of the store or of the journal must have been written with this
    /// key, and the pages in the journal or log must be unchanged.
    /// - Returns: how many committed transactions of the log SQLite drops.
    @discardableResult
    func refuseForeignJournal(_ key: Key) throws(DatabaseError) -> Int {
        guard isFile, let path, let file = FileSystem.resolve(path) else { return 0 }
        if mayWrite { try JournalName.requireNoneOfStrangers(file) }
        let log = try StoreOpening.file("-wal", beside: file)
        let isLogInUse = try StoreOpening.isLogInUse(ofStore: file, log: log)
        guard log != nil || FileSystem.mayExist(file + "-journal") else { return 0 }
        try StoreOpening.requireNoJournalOfFormerFile(ofStore: file, vfs: vfs)
        let connection = try Connection(path: file, flags: SQLITE_OPEN_READONLY, vfs: vfs)
        defer { connection.close() }
        try openedSlots(key, connection)
        let recognition = StoreRecognition(connection: connection, key: key, settings: settings)
        try JournalDamage.requireNone(ofStore: file, cipher: try recognition.pageCipher(), store: connection)
        var lostTransactions = 0
        // Those who use it have looked at its pages.
        if log != nil, !isLogInUse {
            lostTransactions = try LogDamage.requireNoneInFile(ofStore: file, store: connection)
            let cipher = try recognition.pageCipher()
            try LogDamage.requireOwnPages(ofStore: file, onlyReads: !mayWrite, cipher: cipher, store: connection)
        }
        guard mayWrite, let journal = try RollbackJournal(ofStore: file) else { return lostTransactions }
        try journal.requireSafeSuperJournal()
        guard try connection.mainFileSize() > 0, try !recognition.hasOwnPage(in: journal) else {
            return lostTransactions
        }
        throw try diagnosis(of: connection, key: key, .quick).error(code: SQLITE_NOTADB)
    }

    /// - Returns: the slots with which the store was opened; `nil` if it has none.
    private func unlock(_ connection: Connection, with given: Key) throws(DatabaseError) -> OpenedSlots? {
        let header = try connection.mainFileHeader()
        var key = given
        let isNew = header.isEmpty
        guard isNew || StoreHeader.hasMagic(header) == (settings.plaintextHeaderSize > 0) else {
            throw try diagnosis(of: connection, key: key, .quick).error(code: SQLITE_NOTADB)
        }
        if !isNew { try refuseChangedHeader(connection) }
        let slots = try openedSlots(key, header: header)
        if slots == nil { key = keyWithoutSlots(given, header: header) }
        if isFile, let slotPin { try slotPin.requireFit(slots, of: name) }
        // If the key proves wrong, closing must not write somebody else's log into the file.
        try connection.setCheckpointsOnClose(false)
        try applyKey(key, to: connection)
        try connection.run("PRAGMA temp_store = MEMORY")
        if locksExclusively { try connection.run("PRAGMA locking_mode = EXCLUSIVE") }
        do throws(DatabaseError) {
            _ = try connection.integer("SELECT count(*) FROM sqlite_schema")
        } catch {
            let error = try explained(error, connection, key)
            throw key.slotKeys === given.slotKeys ? error : error.adding(context: StoreOpening.hasNoSlots)
        }
        try refuseTruncated(connection)
        if let slots, !acceptsOlderSlots { try connection.requireNotOlder(slots, readingAgainWith: key) }
        try connection.setCheckpointsOnClose(true)
        if let slots, slots.needsRepair { repair(slots, key, connection) }
        if isNew, isFile, createsFirstPage, flags & SQLITE_OPEN_READONLY == 0 {
            try createFirstPage(connection, key)
        }
        if let path { key.derivedKeys?.storeExists(path) }
        return slots
    }

    /// Refuses a plaintext header that was changed. Anybody who can write to the file can change it; SQLite would
    /// believe it, and write pages that nothing can read, or no pages at all.
    /// https://www.sqlite.org/fileformat.html#the_database_header
    private func refuseChangedHeader(_ connection: Connection) throws(DatabaseError) {
        let parameters = settings.parameters
        let start = try connection.fileBytes(count: 100)
        // The first read reports a plaintext file.
        guard !StoreHeader.isPlaintext(start) else { return }
        let header = start.prefix(parameters.plaintextHeaderSize)
        func isWrong(_ offset: Int, _ isRight: (UInt8) -> Bool) -> Bool {
            offset < header.count && !isRight(header[offset])
        }
        guard
            isWrong(16, { $0 == UInt8(parameters.pageSize >> 8 & 0xff) })
                || isWrong(17, { $0 == UInt8(parameters.pageSize >> 16) })
                || isWrong(18, { [1, 2].contains($0) }) || isWrong(19, { [1, 2].contains($0) })
                || isWrong(20, { Int($0) >= parameters.reservedBytes })
        else { return }
        throw DatabaseError(
            extendedCode: SQLITE_CORRUPT,
            reason: .damaged,
            message: """
                \(name) was changed: the header, which its settings leave in the clear, is not one of such a store. Nothing \
                was read or written. Restore a backup.
                """
        )
    }

    /// Explains why the first read failed. SQLite uses one code for everything that it does not recognise as a
    /// database, and with a plaintext header not even that one.
    private func explained(
        _ error: DatabaseError,
        _ connection: Connection,
        _ key: Key
    ) throws(DatabaseError) -> DatabaseError {
        guard [SQLITE_NOTADB, SQLITE_CORRUPT, SQLITE_ERROR].contains(error.code) else { return unreadable(error) }
        // SQLite reports SQLITE_CORRUPT only if it could read the first page.
        let effort: StoreRecognition.Effort = error.code == SQLITE_CORRUPT ? .asGiven : .quick
        let diagnosis = try diagnosis(of: connection, key: key, effort)
        return [.opens, .emptyFile].contains(diagnosis.finding) ? error : diagnosis.error(code: error.extendedCode)
    }

    /// Explains an error for a store whose log or journal SQLite cannot use here. To read a log, SQLite needs an index
    /// of it, and may have to create that.
    private func unreadable(_ error: DatabaseError) -> DatabaseError {
        guard needsIndex(error), let path else { return error }
        return error.adding(
            context: """
                \(path) cannot be read here: it is in WAL mode, or a transaction was cut off, and this user may not write \
                in its directory. Open it as a user who may. `sealdb verify` and `sealdb restore` read it as it is
                """
        )
    }

    private func needsIndex(_ error: DatabaseError) -> Bool {
        let makesNoIndex = error.code == SQLITE_CANTOPEN || error.code == SQLITE_READONLY
        guard isFile, makesNoIndex, let path, FileSystem.exists(path) else { return false }
        return access(path, R_OK) == 0 && access(FileSystem.directory(of: path), W_OK) != 0
    }

    /// Refuses a file whose last page is incomplete. SQLite refuses a file that lacks whole pages, but not this one.
    private func refuseTruncated(_ connection: Connection) throws(DatabaseError) {
        let size = try connection.mainFileSize()
        let pageSize = Int64(settings.parameters.pageSize)
        guard size % pageSize != 0, let pages = try connection.integer("PRAGMA page_count"), pages * pageSize > size
        else { return }
        let examination = StoreExamination(path: name, key: key, settings: settings, effort: .asGiven, fileSize: size)
        guard !examination.hasLog else { return }
        throw examination.result(.truncated).error(code: SQLITE_CORRUPT)
    }

    private func diagnosis(
        of connection: Connection,
        key: Key,
        _ effort: StoreRecognition.Effort
    ) throws(DatabaseError) -> StoreDiagnosis {
        var examination = StoreExamination(path: name, key: key, settings: settings, effort: effort)
        return try examination.examine(connection)
    }

    func applyKey(_ key: Key, to connection: Connection) throws(DatabaseError) {
        let code = try withKeySpec(of: key, for: connection) { spec in connection.key(spec) }
        guard code == SQLITE_OK else {
            throw DatabaseError(
                extendedCode: code,
                message: "SQLCipher did not take the key for \(name). Nothing was read or written."
            )
        }
        // This comes first because it sets all the other settings. It also undoes cipher_default_* pragmas, which other
        // code may have set.
        try connection.run("PRAGMA cipher_compatibility = \(settings.compatibility.rawValue)")
        let wanted = settings.parameters
        for (pragma, value) in wanted.pragmas where settings.differsFromCompatibility(pragma) {
            try connection.run("PRAGMA \(pragma) = \(value)")
        }
        if let salt = settings.salt {
            try connection.run("PRAGMA cipher_salt = \"x'\(Hexadecimal.string(salt))'\"")
        }
        guard let effective = try connection.cipherParameters() else {
            throw DatabaseError(
                extendedCode: SQLITE_MISUSE,
                reason: .wrongEngine,
                message: "\(name) was keyed, but no cipher is active. It was closed before anything was written."
            )
        }
        for (wanted, found) in zip(wanted.pragmas, effective.pragmas) where wanted != found {
            throw .unusableSettings("\(wanted.name) = \(wanted.value) was not accepted (it is \(found.value)).")
        }
        if let salt = settings.salt, try connection.text("PRAGMA cipher_salt") != Hexadecimal.string(salt) {
            throw .unusableSettings("The salt was not accepted.")
        }
    }

    private func createFirstPage(_ connection: Connection, _ key: Key) throws(DatabaseError) {
        let hold = KeyHold()
        defer { hold.release() }
        do throws(DatabaseError) {
            if let path { try StoreName.requireNoSlots(path) }
            _ = try key.confirmed(keptBy: hold)
        } catch {
            throw error.adding(context: "Nothing was written to \(name), which is a new store")
        }
        try connection.writeFirstPage()
        // If whoever created the file put it into WAL mode first, page 1 is still in the log and the file is empty.
        let start = try connection.fileBytes(count: 100)
        let isPlaintext = !start.isEmpty && StoreHeader.isPlaintext(start)
        guard !isPlaintext else {
            throw DatabaseError(
                extendedCode: SQLITE_MISUSE,
                reason: .wrongEngine,
                message: "\(name) was created in plaintext although a key was given. It holds no data; delete it."
            )
        }
    }
}

extension StoreOpening {
    /// An opening for a file that must exist, by its path with symbolic links followed.
    static func existing(
        _ path: String,
        key: Key?,
        settings: CipherSettings,
        busyTimeout: Double = 2
    ) throws(DatabaseError) -> StoreOpening {
        guard let resolved = FileSystem.resolve(path) else {
            throw .system("Cannot open \(path)", reason: .noSuchFile)
        }
        return StoreOpening(
            path: resolved,
            key: key,
            settings: settings,
            busyTimeout: busyTimeout,
            createsFirstPage: false,
            needsContents: true
        )
    }
}
