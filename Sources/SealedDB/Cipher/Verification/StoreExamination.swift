/// Examines a file for a ``StoreDiagnosis``.
struct StoreExamination {
    let path: String
    let key: Key?
    let settings: CipherSettings
    let effort: StoreRecognition.Effort
    var triesUnauthenticated = false
    var fileSize: Int64 = 0
    private var match: CipherParameters?
    private var damagedPages: [Int64] = []

    init(
        path: String,
        key: Key?,
        settings: CipherSettings,
        effort: StoreRecognition.Effort,
        fileSize: Int64 = 0
    ) {
        self.path = path
        self.key = key
        self.settings = settings
        self.effort = effort
        self.fileSize = fileSize
    }

    mutating func examine(_ connection: Connection) throws(DatabaseError) -> StoreDiagnosis {
        fileSize = try connection.mainFileSize()
        guard !StoreHeader.isEmpty(fileSize: fileSize) else { return result(.emptyFile) }
        let start = try connection.fileBytes(count: 4096)
        if StoreHeader.isPlaintext(start) {
            if StoreHeader.isTruncatedPlaintext(start, fileSize: fileSize), !hasLog { return result(.truncated) }
            return result(key == nil ? .opens : .plaintext)
        }
        guard let key else { return result(try isNoCiphertext(start, connection) ? .notADatabase : .encrypted) }
        let recognition = StoreRecognition(
            connection: connection,
            key: key,
            settings: settings,
            triesUnauthenticated: triesUnauthenticated
        )
        guard let match = try recognition.match(effort) else {
            if effort != .asGiven, try recognition.isOfPrerelease() { return result(.prereleaseFormat) }
            return result(try isNoCiphertext(start, connection) ? .notADatabase : .wrongKey)
        }
        let parameters = match.cipher.parameters
        self.match = parameters
        if !match.hasFirstPage, try !logHasFirstPage(match.cipher) {
            damagedPages = [1]
            return result(.damagedFirstPage)
        }
        guard isSame(parameters, as: settings.parameters) else {
            let isPreset = [CipherSettings.sqlCipher1, .sqlCipher2, .sqlCipher3].contains {
                isSame($0.parameters, as: parameters)
            }
            return result(isPreset ? .olderFormat : .otherSettings)
        }
        let pageSize = Int64(parameters.pageSize)
        let firstPage = try connection.fileBytes(count: parameters.pageSize)
        if let pages = try match.cipher.declaredPageCount(firstPage), pages * pageSize > fileSize, !hasLog {
            return result(.truncated)
        }
        damagedPages = try firstDamagedPages(match.cipher, connection)
        return result(damagedPages.isEmpty ? .opens : .damaged)
    }

    /// Whether the parameters are the same. For a raw key the number of iterations does not count.
    private func isSame(_ first: CipherParameters, as second: CipherParameters) -> Bool {
        guard key?.form != .passphrase else { return first == second }
        var first = first
        first.kdfIterations = second.kdfIterations
        return first == second
    }

    /// Checks only the first 1024 pages, which usually hold the schema.
    private func firstDamagedPages(_ cipher: PageCipher, _ connection: Connection) throws(DatabaseError) -> [Int64] {
        let size = cipher.parameters.pageSize
        // With a log, newer pages stand in the log, and a page in the file may be half written.
        guard cipher.parameters.usesHMAC, !hasLog else { return [] }
        var result: [Int64] = []
        // Bytes after the last page do not belong to the database.
        let firstPage = try connection.fileBytes(count: size)
        let count = min(fileSize / Int64(size), try cipher.declaredPageCount(firstPage) ?? .max)
        let free = FreePages(pageCount: fileSize / Int64(size), cipher: cipher) { number, page throws(DatabaseError) in
            let bytes = try connection.fileBytes(at: (number - 1) * Int64(size), count: size)
            guard bytes.count == size else { return false }
            page.copyBytes(from: bytes)
            return true
        }
        for number in 1...max(1, min(count, 1024)) {
            let page = try connection.fileBytes(at: (number - 1) * Int64(size), count: size)
            // SQLite may leave a page unwritten that nothing refers to. It has zeros then.
            if try !cipher.isAuthentic(page, number: number), page.contains(where: { $0 != 0 }),
                try !free.contains(number)
            {
                result.append(number)
            }
        }
        return result
    }

    private var siblings: [String] {
        ["-wal", "-shm", "-journal"].filter { suffix in
            // A file that exists but cannot be examined may hold something.
            guard let status = try? FileSystem.status(path + suffix) else { return FileSystem.mayExist(path + suffix) }
            return status.st_size > 0
        }
    }

    /// Whether there may be changes beside the file that are newer than the file, or that are to be undone in it.
    var hasLog: Bool {
        let siblings = siblings
        guard siblings.contains("-journal") else { return siblings.contains("-wal") }
        // A journal that is kept has nothing of either when its transaction is over. One that cannot be read may have something.
        return siblings.contains("-wal") || (try? RollbackJournal.isBegun(path + "-journal")) ?? true
    }

    /// Whether the log or journal has an intact first page, which SQLite would use instead of the file's. This is so if
    /// a process was killed, or the power failed, while the page was written to the file.
    private func logHasFirstPage(_ cipher: PageCipher) throws(DatabaseError) -> Bool {
        // A journal that cannot be read counts as none.
        let journal = (try? RollbackJournal(ofStore: path)?.pages(atMost: 8)) ?? []
        for page in journal where page.number == 1 {
            if try cipher.isAuthentic(page.bytes, number: 1) { return true }
        }
        return try WriteAheadLog(ofStore: path)?.contains { (number, page) throws(DatabaseError) in
            guard number == 1 else { return false }
            return try cipher.isAuthentic(page(), number: 1)
        } ?? false
    }

    private var possiblePageSizes: [Int] {
        guard fileSize > 0 else { return [] }
        return [512, 1024, 2048, 4096, 8192, 16384, 32768, 65536].filter { fileSize % Int64($0) == 0 }
    }

    private func isNoCiphertext(_ start: [UInt8], _ connection: Connection) throws(DatabaseError) -> Bool {
        guard fileSize >= StoreHeader.smallestPage else { return true }
        // A damaged first page does not mean that the rest is not encrypted.
        guard !hasLog, !StoreHeader.hasMagic(start), !StoreHeader.looksRandom(start) else { return false }
        return try !StoreHeader.looksRandom(connection.fileBytes(at: fileSize / 2, count: 4096))
    }

    func result(_ finding: StoreDiagnosis.Finding) -> StoreDiagnosis {
        StoreDiagnosis(
            finding: finding,
            path: path,
            fileSize: fileSize,
            siblings: siblings,
            cipherSettings: match?.settings(salt: settings.salt),
            isAuthenticated: match?.usesHMAC ?? false,
            possiblePageSizes: possiblePageSizes,
            damagedPages: damagedPages,
            explanation: "\(path) \(sentence(finding)) It was not changed. \(advice(finding))"
        )
    }

    // MARK: Words

    private func sentence(_ finding: StoreDiagnosis.Finding) -> String {
        switch finding {
        case .opens:
            key == nil
                ? "is a plaintext SQLite database." : "opens with this key\(isUnauthenticated ? unauthenticated : ".")"
        case .emptyFile: "is empty: nothing was ever written to it, or something emptied it.\(besideIt)"
        case .directory: "is a directory."
        case .notRegularFile: "is not a regular file."
        case .notPermitted: "may not be read by this user."
        case .plaintext: "is a plaintext SQLite database, but a key was given."
        case .olderFormat where isUnauthenticated: "decrypts as \(formatName)\(unauthenticated)"
        case .olderFormat: "was written by \(formatName), and the key is right."
        case .otherSettings where isUnauthenticated:
            "decrypts with other cipher settings (\(formatName))\(unauthenticated)"
        case .otherSettings: "has the cipher settings of \(formatName), not those given, and the key is right."
        case .prereleaseFormat: "was written by a pre-release of SQLCipher 2, and the key is right."
        case .truncated: "is cut off: it has \(fileSize) bytes, fewer than its pages need."
        case .damagedFirstPage: "is damaged: the key is right, but the first page is not as it was written."
        case .damaged: "is damaged: the key is right, but \(damagedPageList) not as written."
        case .wrongKey: wrongKeySentence
        case .encrypted: "is encrypted, or not a database, and no key was given."
        case .notADatabase: "is not a database: its \(fileSize) bytes are neither SQLite nor encrypted."
        }
    }

    private var isUnauthenticated: Bool { match?.usesHMAC == false }

    private var unauthenticated: String {
        ", but is not authenticated: whether its pages are as they were written, nobody can tell, and whoever could write "
            + "the file can have made it so from another format."
    }

    private var wrongKeySentence: String {
        "does not open: the key is wrong, or it has other cipher settings, or its first page is damaged"
            + ", or a newer SQLCipher wrote it.\(besideIt)"
            // Here only the file is looked at.
            + (hasLog
                ? " If a change of its key was cut off, the key may be that of what lies beside it: try `sealdb verify`."
                : "")
    }

    private var besideIt: String { siblings.isEmpty ? "" : " Beside it: \(siblings.joined(separator: ", "))." }

    private var formatName: String {
        guard let match else { return "" }
        guard key?.form != .passphrase, isSame(match, as: CipherSettings.sqlCipher3.parameters) else {
            return match.settings().description
        }
        return "SQLCipher 2 or 3"
    }

    private var damagedPageList: String {
        let numbers = damagedPages.prefix(10).map { String($0) }.joined(separator: ", ")
        if damagedPages.count == 1 { return "page \(numbers) is" }
        return "pages \(numbers)\(damagedPages.count > 10 ? " and others" : "") are"
    }

    private func advice(_ finding: StoreDiagnosis.Finding) -> String {
        switch finding {
        case .opens: ""
        case .emptyFile: "If it held data, restore it from a backup, together with what stands beside it."
        case .directory, .notRegularFile: "Give the path of a file."
        case .notPermitted: "Run as the user who owns it, or change its mode."
        case .plaintext: "Open it without a key, or encrypt it into a new store first (`sealdb encrypt`)."
        case .otherSettings where match.map { isSame($0, as: CipherSettings.sqlCipher4.parameters) } == true:
            "Open it with these settings."
        case .olderFormat, .otherSettings:
            "Open it with these settings, or convert it to the current format (`sealdb migrate`)."
        case .prereleaseFormat:
            "Only the stock `sqlcipher` shell reads it, with settings that hold for a whole process: copy it there into a new "
                + "store with sqlcipher_export. The commands are in the documentation (SQLCipher's pragmas)."
        case .truncated: "Restore it from a backup, or save what is there with `sealdb recover`."
        case .damagedFirstPage, .damaged:
            "Restore it from a backup, or save what can be read with `sealdb recover`. `sealdb verify` lists all damaged pages."
        case .wrongKey:
            (effort == .quick && key?.form == .passphrase
                ? "Try the right key. `sealdb info` looks for other settings, and tells damage from a wrong key."
                : "Try the right key. With other settings than the usual ones, give them too.")
                + (triesUnauthenticated || !settings.parameters.usesHMAC
                    ? "" : " Formats without page authentication, such as SQLCipher 1, were not tried.")
        case .encrypted: "Open it with its key."
        case .notADatabase: "Look for the right file, or restore it from a backup."
        }
    }
}
