internal import SQLiteEngine

/// The cryptography that SQLCipher applies to pages, done by the same OpenSSL, under the keys of one store. It is
/// missing in the plain build, which does not need it.
///
/// Setting it up costs more than a page does, so use one object for all pages. Only one thread at a time may use it. It
/// holds the keys, and OpenSSL wipes them when the object is released, so do not keep it longer than needed.
final class PageKeys {
    // Owned by this object: nobody else has the address.
    private let contexts: UnsafeMutableRawPointer

    /// - Parameters:
    ///   - key: the 32 bytes of the key for AES-256-CBC.
    ///   - bits: the size of the hash of the HMAC: 160, 256 or 512.
    init(
        key: UnsafeRawBufferPointer,
        hmacKey: UnsafeRawBufferPointer,
        bits: Int
    ) throws(DatabaseError) {
        precondition(key.count == 32, "AES-256 has keys of 32 bytes.")
        let made = sealeddb_page_keys_new(Int32(bits), key.baseAddress, hmacKey.baseAddress, hmacKey.count)
        guard let made else { throw .cryptographyFailed }
        contexts = made
    }

    private init(copying other: PageKeys) throws(DatabaseError) {
        guard let made = sealeddb_page_keys_copy(other.contexts) else { throw .cryptographyFailed }
        contexts = made
    }

    deinit {
        sealeddb_page_keys_free(contexts)
    }

    /// The same keys for another thread.
    func copy() throws(DatabaseError) -> PageKeys { try PageKeys(copying: self) }

    /// The number of a page as codes cover it.
    private static func stored(_ number: Int64) -> UInt32 { UInt32(truncatingIfNeeded: number) }

    /// Whether the authentication code belongs to these bytes of this page.
    /// - Parameter code: where the code stands. It has as many bytes as the hash.
    func isAuthentic(
        _ bytes: UnsafeRawBufferPointer,
        number: Int64,
        code: UnsafeRawPointer
    ) throws(DatabaseError) -> Bool {
        let number = PageKeys.stored(number)
        let answer = sealeddb_page_is_authentic(contexts, bytes.baseAddress, bytes.count, number, code)
        guard answer >= 0 else { throw .cryptographyFailed }
        return answer == 1
    }

    /// Decrypts whole blocks.
    /// - Parameters:
    ///   - iv: where the 16 bytes of the initialization vector stand.
    ///   - plaintext: has room for as many bytes as the ciphertext.
    func decrypt(
        _ ciphertext: UnsafeRawBufferPointer,
        iv: UnsafeRawPointer,
        into plaintext: UnsafeMutableRawPointer?
    ) throws(DatabaseError) {
        let answer = sealeddb_page_decrypt(contexts, iv, ciphertext.baseAddress, Int32(ciphertext.count), plaintext)
        guard answer == 1 else { throw .cryptographyFailed }
    }

    /// Encrypts whole blocks.
    /// - Parameters:
    ///   - iv: where the 16 bytes of the initialization vector stand. They must be random, and of this page alone.
    ///   - ciphertext: has room for as many bytes as the plaintext.
    func encrypt(
        _ plaintext: UnsafeRawBufferPointer,
        iv: UnsafeRawPointer,
        into ciphertext: UnsafeMutableRawPointer
    ) throws(DatabaseError) {
        let answer = sealeddb_page_encrypt(contexts, iv, plaintext.baseAddress, Int32(plaintext.count), ciphertext)
        guard answer == 1 else { throw .cryptographyFailed }
    }

    /// Writes the authentication code of these bytes of this page.
    /// - Parameter code: has room for as many bytes as the hash.
    func authenticate(
        _ bytes: UnsafeRawBufferPointer,
        number: Int64,
        code: UnsafeMutableRawPointer
    ) throws(DatabaseError) {
        let number = PageKeys.stored(number)
        let answer = sealeddb_page_authenticate(contexts, bytes.baseAddress, bytes.count, number, code)
        guard answer == 1 else { throw .cryptographyFailed }
    }

    /// Fills the reserved bytes of a page with random bytes that nobody can predict.
    func fillRandomly(_ bytes: UnsafeMutableRawBufferPointer) throws(DatabaseError) {
        guard sealeddb_random_for_page(contexts, bytes.baseAddress, Int32(bytes.count)) == 1 else {
            throw .cryptographyFailed
        }
    }

    /// Random bytes that nobody can predict, such as a salt.
    static func randomBytes(count: Int) throws(DatabaseError) -> [UInt8] {
        var bytes = [UInt8](repeating: 0, count: count)
        guard sealeddb_random_bytes(&bytes, Int32(count)) == 1 else { throw .cryptographyFailed }
        return bytes
    }
}

/// Marks pages, so that one that is read again can be told from any other: short GMACs, under a random key that never
/// leaves the process. <https://csrc.nist.gov/pubs/sp/800/38/d/final>
///
/// Only one thread at a time may use it.
final class PageMarker {
    // Owned by this object: nobody else has the address.
    private let marker: UnsafeMutableRawPointer

    /// - Parameter other: one whose marks are to be the same; `nil` for a key of its own.
    init(like other: PageMarker? = nil) throws(DatabaseError) {
        guard let made = sealeddb_page_marker_new(other?.marker) else { throw .cryptographyFailed }
        marker = made
    }

    deinit {
        sealeddb_page_marker_free(marker)
    }

    /// The mark of a page. Another page has the same one once in 2^56 times at most.
    func mark(_ page: UnsafeRawBufferPointer, number: Int64) throws(DatabaseError) -> UInt64 {
        var mark: UInt64 = 0
        let answer = sealeddb_page_mark(marker, page.baseAddress, Int32(page.count), UInt64(number), &mark)
        guard answer == 1 else { throw .cryptographyFailed }
        return mark
    }
}

extension DatabaseError {
    static var cryptographyFailed: DatabaseError {
        DatabaseError(
            extendedCode: SQLITE_NOMEM,
            message: "OpenSSL did not do its work, as when memory has run out. Nothing was changed. Try again."
        )
    }
}

/// Computes the SHA-256 of data that arrives in parts.
package final class SHA256Hash {
    private let context: UnsafeMutableRawPointer

    package init() throws(DatabaseError) {
        guard let context = sealeddb_hash_new() else {
            throw DatabaseError(extendedCode: SQLITE_NOMEM, message: "No memory for a hash. Nothing was changed.")
        }
        self.context = context
    }

    deinit {
        sealeddb_hash_free(context)
    }

    package func update(_ bytes: UnsafeRawBufferPointer) throws(DatabaseError) {
        guard sealeddb_hash_update(context, bytes.baseAddress, bytes.count) == 1 else { throw .cryptographyFailed }
    }

    /// The hash of all parts. Call this only once.
    package func value() throws(DatabaseError) -> [UInt8] {
        var value = [UInt8](repeating: 0, count: 32)
        guard sealeddb_hash_value(context, &value) == 1 else { throw .cryptographyFailed }
        return value
    }
}

/// PBKDF2 by OpenSSL, which SQLCipher uses for it too. OpenSSL reads and writes the caller's memory and wipes its own
/// copies; a Swift package that works with `Data` leaves copies behind. https://www.rfc-editor.org/rfc/rfc8018
enum PBKDF2 {
    /// - Parameter bits: the size of the hash: 160, 256 or 512.
    /// - Returns: false if OpenSSL refused, and always in the plain build.
    static func derive(
        bits: Int,
        passphrase: UnsafeRawBufferPointer,
        salt: [UInt8],
        iterations: Int,
        into key: UnsafeMutableRawBufferPointer
    ) -> Bool {
        guard let iterations = Int32(exactly: iterations), iterations > 0 else { return false }
        return sealeddb_pbkdf2(
            Int32(bits),
            passphrase.baseAddress,
            Int32(passphrase.count),
            salt,
            Int32(salt.count),
            iterations,
            key.baseAddress,
            Int32(key.count)
        ) == 1
    }
}
