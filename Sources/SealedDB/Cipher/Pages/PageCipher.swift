/// Reads and writes SQLCipher's page format without SQLCipher.
///
/// A page consists of ciphertext, an IV of 16 bytes, and an HMAC over ciphertext, IV and page number; the first page
/// begins with the salt. This is used where one error code of SQLCipher can mean too many things, and where whole files
/// are read or written.
///
/// Only one thread at a time may use a cipher and what was assigned from it. ``copy()`` makes one for another thread.
/// <https://www.zetetic.net/sqlcipher/design/>
struct PageCipher {
    let parameters: CipherParameters
    let salt: [UInt8]
    let keys: PageKeys

    /// - Parameters:
    ///   - key: the 32 bytes of the encryption key.
    ///   - saltMask: what each byte of the salt is XORed with for the HMAC key. 0x3a in every release of SQLCipher.
    init(
        key: SecretBytes,
        salt: [UInt8],
        parameters: CipherParameters,
        saltMask: UInt8 = 0x3a
    ) throws(DatabaseError) {
        // SQLCipher derives the HMAC key with two iterations. That is fixed.
        let derivation = KeyDerivation(algorithm: parameters.kdfAlgorithm.ofDerivation, iterations: 2)
        let hmacKey = try derivation.key(from: key, salt: salt.map { $0 ^ saltMask })
        let bits = parameters.hmacAlgorithm.bits
        let keys = try key.withBytes { key throws(DatabaseError) in
            try hmacKey.withBytes { hmacKey throws(DatabaseError) in
                try PageKeys(key: key, hmacKey: hmacKey, bits: bits)
            }
        }
        self.init(parameters: parameters, salt: salt, keys: keys)
    }

    private init(parameters: CipherParameters, salt: [UInt8], keys: PageKeys) {
        (self.parameters, self.salt, self.keys) = (parameters, salt, keys)
    }

    /// The same cipher for another thread.
    func copy() throws(DatabaseError) -> PageCipher {
        try PageCipher(parameters: parameters, salt: salt, keys: keys.copy())
    }

    /// How many bytes at the beginning of a page SQLite sees: those before the reserved bytes.
    var contentSize: Int { parameters.pageSize - parameters.reservedBytes }

    /// Where the code of a page ends. What is reserved behind it is not used.
    var endOfCode: Int { contentSize + 16 + parameters.hmacAlgorithm.bits / 8 }

    /// How many bytes at the beginning of a page are not encrypted.
    func clearBytes(ofPage number: Int64) -> Int {
        guard number == 1 else { return 0 }
        return parameters.plaintextHeaderSize > 0 ? parameters.plaintextHeaderSize : Key.saltByteCount
    }

    /// Whether the page's authentication code is valid under this key. False for pages without a code.
    /// - Parameters:
    ///   - page: only read during the call.
    ///   - coveredNumber: the number that the code covers, if it is another one than the page's.
    /// - Throws: if OpenSSL fails. This says nothing about the page.
    func isAuthentic(
        _ page: UnsafeRawBufferPointer,
        number: Int64,
        coveredNumber: Int64? = nil
    ) throws(DatabaseError) -> Bool {
        guard parameters.usesHMAC, page.count == parameters.pageSize, let start = page.baseAddress else { return false }
        let end = parameters.pageSize - parameters.reservedBytes + 16
        let covered = UnsafeRawBufferPointer(rebasing: page[clearBytes(ofPage: number)..<end])
        // The code follows the IV, within the reserved bytes.
        return try keys.isAuthentic(covered, number: coveredNumber ?? number, code: start + end)
    }

    func isAuthentic(_ page: [UInt8], number: Int64) throws(DatabaseError) -> Bool {
        try isAuthentic(page[...], number: number)
    }

    func isAuthentic(
        _ page: ArraySlice<UInt8>,
        number: Int64,
        coveredNumber: Int64? = nil
    ) throws(DatabaseError) -> Bool {
        try page.withUnsafeBufferPointer { (page) throws(DatabaseError) in
            try isAuthentic(UnsafeRawBufferPointer(page), number: number, coveredNumber: coveredNumber)
        }
    }

    /// Writes the page to `target` as SQLite sees it: the bytes that are not encrypted as they are, the others
    /// decrypted, without the reserved bytes at the end.
    /// - Parameters:
    ///   - page: only read during the call.
    ///   - target: room for a page. It then holds plaintext, so wipe it.
    /// - Throws: if OpenSSL fails. This says nothing about the page.
    func decrypt(
        _ page: UnsafeRawBufferPointer,
        number: Int64,
        into target: UnsafeMutableRawBufferPointer
    ) throws(DatabaseError) {
        guard page.count == parameters.pageSize, target.count >= page.count, let start = page.baseAddress else {
            preconditionFailure("A page has the size of a page.")
        }
        let (clear, end) = (clearBytes(ofPage: number), parameters.pageSize - parameters.reservedBytes)
        target.copyMemory(from: UnsafeRawBufferPointer(rebasing: page[..<clear]))
        try keys.decrypt(
            UnsafeRawBufferPointer(rebasing: page[clear..<end]),
            iv: start + end,
            into: target.baseAddress.map { $0 + clear }
        )
    }

    /// The decrypted contents of a page, as SQLite sees them, without the plaintext bytes of the first page and without
    /// the reserved bytes at the end. `nil` if the page has the wrong size.
    func contents(_ page: ArraySlice<UInt8>, number: Int64) throws(DatabaseError) -> [UInt8]? {
        guard page.count == parameters.pageSize else { return nil }
        let end = parameters.pageSize - parameters.reservedBytes
        return try decrypt(page, clearBytes(ofPage: number)..<end)
    }

    /// Decrypts the blocks in this range of a page.
    private func decrypt(_ page: ArraySlice<UInt8>, _ range: Range<Int>) throws(DatabaseError) -> [UInt8] {
        var plaintext = [UInt8](repeating: 0, count: range.count)
        try page.withUnsafeBufferPointer { (page) throws(DatabaseError) in
            try plaintext.withUnsafeMutableBufferPointer { (plaintext) throws(DatabaseError) in
                let page = UnsafeRawBufferPointer(page)
                // The page is not empty, so it has an address.
                let iv = page.baseAddress! + (parameters.pageSize - parameters.reservedBytes)
                try keys.decrypt(UnsafeRawBufferPointer(rebasing: page[range]), iv: iv, into: plaintext.baseAddress)
            }
        }
        return plaintext
    }

    /// Whether the decrypted first page begins like that of a database. For pages without an authentication code.
    func decryptsHeader(_ page: [UInt8]) throws(DatabaseError) -> Bool {
        guard let header = try decryptedHeader(page) else { return false }
        let size = Int(header[0]) << 8 | Int(header[1])
        return (size == 1 ? 65536 : size) == parameters.pageSize && (1...2).contains(header[2])
            && (1...2).contains(header[3])
            // SQLCipher may have reserved more bytes at first than it used later.
            && Int(header[4]) >= parameters.reservedBytes
            && header[5...7] == [64, 32, 32]
    }

    /// The write version in the header: 2 for a store in WAL mode, 1 for others; `nil` for a page of the wrong size, and with a
    /// plaintext header.
    /// <https://www.sqlite.org/fileformat.html#file_format_version_numbers>
    func writeVersion(_ page: [UInt8]) throws(DatabaseError) -> UInt8? { try decryptedHeader(page)?[18 - 16] }

    /// The number of pages that the header of the database states; `nil` if it states none that is valid.
    /// <https://www.sqlite.org/fileformat.html#in_header_database_size>
    func declaredPageCount(_ page: [UInt8]) throws(DatabaseError) -> Int64? {
        guard let header = try decryptedHeader(page) else { return nil }
        func number(_ offset: Int) -> Int64 {
            header[(offset - 16)..<(offset - 12)].reduce(0) { $0 << 8 | Int64($1) }
        }
        // Old versions of SQLite do not update this count: it is valid only if the two change counters are equal.
        return number(24) == number(92) && number(28) > 0 ? number(28) : nil
    }

    /// Bytes 16 to 96 of the first page, decrypted; `nil` for a store with a plaintext header.
    private func decryptedHeader(_ page: [UInt8]) throws(DatabaseError) -> [UInt8]? {
        guard parameters.plaintextHeaderSize == 0, page.count == parameters.pageSize else { return nil }
        return try decrypt(page[...], 16..<96)
    }
}
