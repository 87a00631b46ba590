import Foundation

/// Attaches one file to a connection, with the checks that opening the file by itself would make.
struct StoreAttachment {
    let connection: Connection
    let path: String
    let schema: String
    let key: Key?
    let mainHasKey: Bool
    let createsFile: Bool
    let busyTimeout: Double
    /// As of ``StoreOpening``.
    var warn: ((String) -> Void)?

    private var isFile: Bool { !path.isEmpty && path != ":memory:" }

    func attach() throws(DatabaseError) {
        try FileSystem.requireNoNUL(path)
        // Within a transaction SQLite would attach the file, but could not detach it again if the key proves wrong.
        guard connection.isAutocommit else {
            throw DatabaseError(
                extendedCode: SQLITE_MISUSE,
                reason: .misuse,
                message: "Files are attached outside transactions. Nothing was attached."
            )
        }
        // With a key, this lock keeps others from replacing the file from here on.
        let lock = try usageLock()
        let (start, lostTransactions) = try check()
        let header = Array(start.prefix(Key.saltByteCount))
        let slots = try key.flatMap { key throws(DatabaseError) in
            try StoreOpening(path: path, key: key).openedSlots(key, header: header)
        }
        if start.isEmpty, isFile, let key { try confirm(key) }
        if key != nil { try connection.guardKeyFromAPI() }
        let used = slots == nil ? key.map { StoreOpening(path: path).keyWithoutSlots($0, header: header) } : key
        // If the key proves wrong, closing the file must not write somebody else's log into it.
        try connection.setCheckpointsOnClose(false)
        do throws(DatabaseError) {
            try attach(start, used, slots, lock, lostTransactions)
        } catch {
            if connection.handle != nil { try connection.setCheckpointsOnClose(true) }
            throw error
        }
        try connection.setCheckpointsOnClose(true)
    }

    /// - Parameters:
    ///   - start: the first bytes of the file.
    ///   - used: the key that fits the file.
    private func attach(
        _ start: [UInt8],
        _ used: Key?,
        _ slots: OpenedSlots?,
        _ lock: UsageLock?,
        _ lostTransactions: Int
    ) throws(DatabaseError) {
        do throws(DatabaseError) {
            try connection.unguarded { () throws(DatabaseError) in try runAttach(start, used) }
        } catch {
            throw try explained(error, used)
        }
        guard key != nil else {
            connection.plaintextSchemas.insert(ExactText(name: schema))
            return
        }
        do throws(DatabaseError) {
            try proveSealed(isNew: start.isEmpty)
            if let slots { try connection.requireNotOlder(slots, schema: schema, readingAgainWith: key) }
            connection.usageLocks[ExactText(name: schema)] = if let lock { lock } else { try usageLock() }
            key?.derivedKeys?.storeExists(path)
            if lostTransactions > 0 {
                let isReadOnly = connection.isReadOnly
                warn?(LogDamage.warning(ofLost: lostTransactions, ofStore: path, isReadOnly: isReadOnly))
            }
        } catch {
            do throws(DatabaseError) {
                // SQLite cannot detach a file within a transaction.
                if !connection.rollBack() { throw error }
                try connection.run("DETACH \(schema.quotedIdentifier)")
            } catch {
                // A file that is not proved to be sealed must not stay attached.
                connection.close()
            }
            throw error
        }
    }

    /// Confirms the key of a new store, before anything is written under it.
    private func confirm(_ key: Key) throws(DatabaseError) {
        do throws(DatabaseError) {
            try key.confirm()
        } catch {
            throw error.adding(context: "Nothing was attached, and nothing written to \(path), which is a new store")
        }
    }

    private func usageLock() throws(DatabaseError) -> UsageLock? {
        guard key != nil, isFile, let path = FileSystem.resolve(path) else { return nil }
        let isForReadingAlone = connection.isReadOnly || access(path, W_OK) != 0
        return try UsageLock.shared(path, timeout: busyTimeout, isForReadingAlone: isForReadingAlone)
    }

    /// Checks the file before SQLite opens it.
    /// - Returns: the first bytes of the file, none if there is no file, or if it is empty; and how many transactions of its log
    ///   SQLite leaves out.
    private func check() throws(DatabaseError) -> (start: [UInt8], lostTransactions: Int) {
        if key != nil { try Engine.requireCodec() }
        guard isFile else { return ([], 0) }
        let exists = FileSystem.resolve(path) != nil
        guard exists || createsFile else {
            throw .system("Cannot attach \(path)", reason: .noSuchFile)
        }
        let flags = SQLITE_OPEN_READWRITE | (createsFile ? SQLITE_OPEN_CREATE : 0)
        try StoreOpening(path: path, key: key, flags: flags).refuseEmptied()
        try StoreName.requireOnly(path, isReadOnly: connection.isReadOnly)
        var start: [UInt8] = []
        if exists {
            let file = try Connection(path: path, flags: SQLITE_OPEN_READONLY)
            defer { file.close() }
            start = try file.fileBytes(count: 100)
        }
        // With a key, this is looked at below.
        if key == nil, let file = FileSystem.resolve(path) {
            _ = try StoreOpening.isLogInUse(ofStore: file, log: StoreOpening.file("-wal", beside: file))
        }
        let isPlaintext = !start.isEmpty && StoreHeader.isPlaintext(start)
        guard let key else {
            guard isPlaintext || (start.isEmpty && !mainHasKey) else {
                throw DatabaseError(
                    extendedCode: SQLITE_NOTADB,
                    reason: .keyRequired,
                    message: start.isEmpty
                        ? "\(path) would be created in plaintext. Nothing was attached. Give it a key."
                        : "\(path) is encrypted, or not a database, and no key was given. Nothing was attached."
                )
            }
            return (start, 0)
        }
        guard !isPlaintext else { throw try diagnosis(key) }
        let lostTransactions = try StoreOpening(path: path, key: key).refuseForeignJournal(key)
        if PageWatch.failuresStick, !start.isEmpty { try proveElsewhere(key) }
        return (start, lostTransactions)
    }

    /// Tries the key on a connection of its own: where failures stick, a wrong one would make this connection useless.
    private func proveElsewhere(_ key: Key) throws(DatabaseError) {
        let flags = connection.isReadOnly ? SQLITE_OPEN_READONLY : SQLITE_OPEN_READWRITE
        var opening = StoreOpening(path: path, key: key, flags: flags)
        opening.busyTimeout = busyTimeout
        do throws(DatabaseError) {
            try opening.open().close()
        } catch {
            throw error.adding(context: "Nothing was attached")
        }
    }

    private func runAttach(_ start: [UInt8], _ key: Key?) throws(DatabaseError) {
        let name = schema.quotedIdentifier
        // An empty key means no key. Without KEY, the file would get the key of main.
        let end = key != nil ? " KEY ?" : mainHasKey ? " KEY ''" : ""
        let statement = try connection.prepare("ATTACH ? AS \(name)\(end)")
        defer { statement.close() }
        try statement.bind(path.begins(with: "file:") ? "./" + path : path, at: 1)
        if let key { try bind(key, start, to: statement) }
        _ = try statement.step()
    }

    /// Binds the key. A passphrase is derived here, with the salt in the file; SQLCipher takes the text `x'…'` for a
    /// raw key.
    private func bind(_ key: Key, _ start: [UInt8], to statement: Statement) throws(DatabaseError) {
        var salt: [UInt8] = []
        if start.count >= Key.saltByteCount, key.slotKeys.dataKey(salt: Array(start.prefix(Key.saltByteCount))) != nil {
            salt = Array(start.prefix(Key.saltByteCount))
        } else if let derivedKeys = key.derivedKeys {
            salt = start.isEmpty ? try derivedKeys.saltOfNewStore(path) : Array(start.prefix(Key.saltByteCount))
        }
        let raw = try key.derived(salt: salt, by: CipherSettings.sqlCipher4.parameters.keyDerivation)
        try raw.withKeySpec(salt: salt) { spec throws(DatabaseError) in try statement.bindText(spec, at: 2) }
    }

    private func explained(_ error: DatabaseError, _ key: Key?) throws(DatabaseError) -> DatabaseError {
        guard let key, isFile, error.code == SQLITE_NOTADB else { return error }
        return try diagnosis(key).adding(context: "Nothing was attached")
    }

    private func diagnosis(_ key: Key) throws(DatabaseError) -> DatabaseError {
        let file = try Connection(path: path, flags: SQLITE_OPEN_READONLY)
        defer { file.close() }
        var examination = StoreExamination(path: path, key: key, settings: .init(), effort: .quick)
        return try examination.examine(file).error
    }

    /// Makes sure that the attached file is encrypted with the settings of SQLCipher 4. SQLCipher gives attached files
    /// the default settings of the process, which other code may have changed, and ATTACH cannot name other settings.
    private func proveSealed(isNew: Bool) throws(DatabaseError) {
        guard let parameters = try connection.cipherParameters(schema: schema) else {
            throw DatabaseError(
                extendedCode: SQLITE_MISUSE,
                reason: .wrongEngine,
                message: "\(path) was attached with a key, but no cipher is active. It was detached again."
            )
        }
        guard parameters == CipherSettings.sqlCipher4.parameters else {
            throw .unusableSettings(
                """
                \(CipherParameters.areChanged(parameters)), which \(path) would get. It was detached again.
                """
            )
        }
        guard isNew, isFile else { return }
        let name = schema.quotedIdentifier
        try connection.run("BEGIN IMMEDIATE")
        try connection.run("PRAGMA \(name).user_version = 0")
        try connection.run("COMMIT")
        guard try !StoreHeader.isPlaintext(connection.fileBytes(count: 100, schema: schema)) else {
            throw DatabaseError(
                extendedCode: SQLITE_MISUSE,
                reason: .wrongEngine,
                message: "\(path) was created in plaintext although a key was given. It holds no data; delete it."
            )
        }
    }
}
