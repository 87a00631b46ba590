/// Reads SQLCipher's page format without SQLCipher, to tell whether a page was written under a key.
///
/// A page consists of ciphertext, an IV of 16 bytes, and an HMAC over ciphertext, IV and page number; the first page
/// begins with the salt. This is used where one error code of SQLCipher can mean too many things. It never writes.
/// <https://www.zetetic.net/sqlcipher/design/>
struct PageCipher {
    let parameters: CipherParameters
    private let key: UnmaskedBytes
    private let hmacKey: UnmaskedBytes

    /// - Parameter key: the 32 bytes of the encryption key.
    init(key: SecretBytes, salt: [UInt8], parameters: CipherParameters) throws(DatabaseError) {
        self.parameters = parameters
        self.key = try UnmaskedBytes(key)
        // SQLCipher derives the HMAC key with two iterations, from the salt with each byte XORed with 0x3a. Both are
        // fixed.
        let derivation = KeyDerivation(algorithm: parameters.kdfAlgorithm.ofDerivation, iterations: 2)
        hmacKey = try UnmaskedBytes(derivation.key(from: key, salt: salt.map { $0 ^ 0x3a }))
    }

    /// How many bytes at the beginning of a page are not encrypted.
    func clearBytes(ofPage number: Int64) -> Int {
        guard number == 1 else { return 0 }
        return parameters.plaintextHeaderSize > 0 ? parameters.plaintextHeaderSize : Key.saltByteCount
    }

    /// Whether the page's authentication code is valid under this key. False for pages without a code.
    func authenticates(_ page: [UInt8], number: Int64) -> Bool { authenticates(page[...], number: number) }

    func authenticates(_ page: ArraySlice<UInt8>, number: Int64) -> Bool {
        guard parameters.usesHMAC, page.count == parameters.pageSize else { return false }
        let start = page.startIndex + clearBytes(ofPage: number)
        let covered = page[start..<page.endIndex - parameters.reservedBytes + 16]
        let stored = page[covered.endIndex..<covered.endIndex + parameters.hmacAlgorithm.bits / 8]
        let pageNumber = (0..<4).map { UInt8(truncatingIfNeeded: number >> ($0 * 8)) }
        let code = hmacKey.withBytes { key in
            Cryptography.hmac(bits: parameters.hmacAlgorithm.bits, key: key, covered + pageNumber)
        }
        return code[...] == stored
    }

    /// The decrypted contents of a page, as SQLite sees them, without the plaintext bytes of the first page and without
    /// the reserved bytes at the end. `nil` if the page has the wrong size or OpenSSL fails.
    func contents(_ page: ArraySlice<UInt8>, number: Int64) -> [UInt8]? {
        let end = page.startIndex + parameters.pageSize - parameters.reservedBytes
        guard page.count == parameters.pageSize else { return nil }
        return key.withBytes { key in
            Cryptography.decrypt(
                page[(page.startIndex + clearBytes(ofPage: number))..<end],
                key: key,
                iv: Array(page[end..<end + 16])
            )
        }
    }

    /// Whether the decrypted first page begins like that of a database. For pages without an authentication code.
    func decryptsHeader(_ page: [UInt8]) -> Bool {
        guard let header = decryptedHeader(page) else { return false }
        let size = Int(header[0]) << 8 | Int(header[1])
        return (size == 1 ? 65536 : size) == parameters.pageSize && (1...2).contains(header[2])
            && (1...2).contains(header[3])
            // SQLCipher may have reserved more bytes at first than it used later.
            && Int(header[4]) >= parameters.reservedBytes
            && header[5...7] == [64, 32, 32]
    }

    /// The write version in the header: 2 for a store in WAL mode, 1 for others; `nil` if the page cannot be decrypted.
    /// <https://www.sqlite.org/fileformat.html#file_format_version_numbers>
    func writeVersion(_ page: [UInt8]) -> UInt8? { decryptedHeader(page)?[18 - 16] }

    /// The number of pages that the header of the database states; `nil` if it states none that is valid.
    /// <https://www.sqlite.org/fileformat.html#in_header_database_size>
    func declaredPageCount(_ page: [UInt8]) -> Int64? {
        guard let header = decryptedHeader(page) else { return nil }
        func number(_ offset: Int) -> Int64 {
            header[(offset - 16)..<(offset - 12)].reduce(0) { $0 << 8 | Int64($1) }
        }
        // Old versions of SQLite do not update this count: it is valid only if the two change counters are equal.
        return number(24) == number(92) && number(28) > 0 ? number(28) : nil
    }

    /// Bytes 16 to 96 of the first page, decrypted; `nil` for a store with a plaintext header.
    private func decryptedHeader(_ page: [UInt8]) -> [UInt8]? {
        let end = parameters.pageSize - parameters.reservedBytes
        guard parameters.plaintextHeaderSize == 0, page.count == parameters.pageSize else { return nil }
        return key.withBytes { key in
            Cryptography.decrypt(page[16..<96], key: key, iv: Array(page[end..<end + 16]))
        }
    }
}
