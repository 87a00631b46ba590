/// Finds out from the bytes of a file with which key and settings it was written. SQLCipher itself only reports "not a
/// database" for everything that it cannot open.
struct StoreRecognition {
    /// A connection to the file, opened without a key and only for reading.
    let connection: Connection
    let key: Key
    let settings: CipherSettings
    /// Whether formats without page authentication are tried, even if the given settings have page authentication.
    ///
    /// Somebody without the key who can write to the file can turn any store into such a format: the ciphertext stays
    /// where it is, and its pages can be exchanged.
    var triesUnauthenticated = false

    /// How much time the search may take.
    enum Effort {
        /// Tries only the given settings.
        case asGiven
        /// Takes fractions of a second: tries everything with a raw key, and the formats of SQLCipher 1 to 3 with a
        /// passphrase.
        case quick
        /// With a passphrase, tries the usual numbers of iterations with every hash: at most ten derivations, about a
        /// second.
        case thorough
    }

    struct Match {
        let cipher: PageCipher
        /// False if the first page is damaged, and another page was written with this key.
        let hasFirstPage: Bool
    }

    private static let pageSizes = [4096, 1024, 8192, 16384, 32768, 65536, 2048]

    /// The first combination of settings with which a page was written under this key; `nil` if there is none.
    func match(_ effort: Effort) throws(DatabaseError) -> Match? {
        let size = try connection.mainFileSize()
        let start = try connection.fileBytes(count: 65536)
        let salt = try salt(start)
        guard salt.count == Key.saltByteCount else { return nil }
        var damaged: Match?
        for derivation in derivations(effort) {
            let secret = try key.encryptionKey(salt: salt, by: derivation.keyDerivation)
            for parameters in variants(of: derivation) where Int64(parameters.pageSize) <= size {
                let cipher = try PageCipher(key: secret, salt: salt, parameters: parameters)
                let page = Array(start.prefix(parameters.pageSize))
                if try isFirst(page, cipher) {
                    return Match(cipher: cipher, hasFirstPage: true)
                }
                if damaged == nil, try hasLaterPage(cipher, fileSize: size) {
                    damaged = Match(cipher: cipher, hasFirstPage: false)
                }
            }
            if damaged != nil { break }
        }
        return damaged
    }

    private func isFirst(_ page: [UInt8], _ cipher: PageCipher) throws(DatabaseError) -> Bool {
        cipher.parameters.usesHMAC ? try cipher.isAuthentic(page, number: 1) : try cipher.decryptsHeader(page)
    }

    /// Whether the first page was written under this key by a pre-release of SQLCipher 2.
    ///
    /// Their authentication codes differ in the key, which the beta derived from the salt as it is, or in the page number,
    /// which processors with the other byte order wrote their way.
    /// <https://www.zetetic.net/sqlcipher/sqlcipher-api/#cipher_hmac_pgno>
    func isOfPrerelease() throws(DatabaseError) -> Bool {
        let parameters = CipherSettings.sqlCipher2.parameters
        let page = try connection.fileBytes(count: parameters.pageSize)
        let salt = try salt(page)
        guard page.count == parameters.pageSize, salt.count == Key.saltByteCount else { return false }
        let secret = try key.encryptionKey(salt: salt, by: parameters.keyDerivation)
        let swappedNumber = Int64(UInt32(1).byteSwapped)
        for (saltMask, number) in [(0, 1), (0x3a, swappedNumber), (0, swappedNumber)] as [(UInt8, Int64)] {
            let cipher = try PageCipher(key: secret, salt: salt, parameters: parameters, saltMask: saltMask)
            if try cipher.isAuthentic(page[...], number: 1, coveredNumber: number) { return true }
        }
        return false
    }

    /// Whether one of the file's pages, or of those that a rollback journal would put back, was written with this key.
    ///
    /// Called before SQLite may touch the journal. It looks at several pages, because a crash can have torn any one of
    /// them.
    func hasOwnPage(in journal: RollbackJournal) throws(DatabaseError) -> Bool {
        let parameters = settings.parameters
        guard parameters.usesHMAC else { return true }
        let size = try connection.mainFileSize()
        let firstPage = try connection.fileBytes(count: parameters.pageSize)
        guard let cipher = try pageCipher() else { return false }
        if try cipher.isAuthentic(firstPage, number: 1) { return true }
        if try hasLaterPage(cipher, fileSize: size) { return true }
        for (number, page) in journal.pages(atMost: 8) where try cipher.isAuthentic(page, number: number) {
            return true
        }
        return false
    }

    /// The cipher of the pages with the given settings; `nil` if pages have no authentication code, or if there is no
    /// salt.
    func pageCipher() throws(DatabaseError) -> PageCipher? {
        let parameters = settings.parameters
        guard parameters.usesHMAC else { return nil }
        let salt = try salt(connection.fileBytes(count: parameters.pageSize))
        guard salt.count == Key.saltByteCount else { return nil }
        let secret = try key.encryptionKey(salt: salt, by: parameters.keyDerivation)
        return try PageCipher(key: secret, salt: salt, parameters: parameters)
    }

    private func salt(_ start: [UInt8]) throws(DatabaseError) -> [UInt8] {
        if let salt = try key.embeddedSalt() { return salt }
        return settings.salt ?? Array(start.prefix(Key.saltByteCount))
    }

    private func hasLaterPage(_ cipher: PageCipher, fileSize: Int64) throws(DatabaseError) -> Bool {
        let size = Int64(cipher.parameters.pageSize)
        let last = fileSize / size
        for number in Set([2, 3, last / 2, last]).sorted() where number >= 2 && number <= last {
            let page = try connection.fileBytes(at: (number - 1) * size, count: Int(size))
            if try cipher.isAuthentic(page, number: number) { return true }
        }
        return false
    }

    /// Parameters for each key that has to be derived.
    private func derivations(_ effort: Effort) -> [CipherParameters] {
        let given = settings.parameters
        let presets = [CipherSettings.sqlCipher4, .sqlCipher3, .sqlCipher2].map(\.parameters)
        // A raw key is not derived. Only the hash that derives the HMAC key remains to be found.
        guard key.form == .passphrase, effort != .asGiven else { return [given] }
        guard effort == .thorough else { return Array(presets.dropFirst()) }
        var result = [given]
        for iterations in presets.map(\.kdfIterations) {
            for algorithm in CipherSettings.Algorithm.allCases.reversed() {
                var parameters = given
                parameters.kdfIterations = iterations
                parameters.kdfAlgorithm = algorithm
                result.append(parameters)
            }
        }
        return result.reduce(into: []) { list, next in
            let isKnown = list.contains {
                $0.kdfIterations == next.kdfIterations && $0.kdfAlgorithm == next.kdfAlgorithm
            }
            if !isKnown { list.append(next) }
        }
    }

    /// All parameters that can differ with the same derived key, the most likely first.
    private func variants(of derivation: CipherParameters) -> [CipherParameters] {
        allVariants(of: derivation).filter { $0.usesHMAC || triesUnauthenticated || !settings.parameters.usesHMAC }
    }

    private func allVariants(of derivation: CipherParameters) -> [CipherParameters] {
        var result = [derivation]
        if key.form != .passphrase {
            result += [CipherSettings.sqlCipher4, .sqlCipher3, .sqlCipher1].map { preset in
                var parameters = preset.parameters
                parameters.plaintextHeaderSize = settings.plaintextHeaderSize
                return parameters
            }
        }
        let kdfAlgorithms = key.form == .passphrase ? [derivation.kdfAlgorithm] : CipherSettings.Algorithm.allCases
        for kdfAlgorithm in kdfAlgorithms {
            for hmacAlgorithm in CipherSettings.Algorithm.allCases.reversed() {
                for pageSize in StoreRecognition.pageSizes {
                    var parameters = derivation
                    parameters.kdfAlgorithm = kdfAlgorithm
                    parameters.hmacAlgorithm = hmacAlgorithm
                    parameters.pageSize = pageSize
                    parameters.usesHMAC = true
                    result.append(parameters)
                    guard hmacAlgorithm == kdfAlgorithm else { continue }
                    parameters.usesHMAC = false
                    result.append(parameters)
                }
            }
        }
        return result
    }
}
