internal import SQLiteEngine

/// The cryptography that SQLCipher applies to pages, done by the same OpenSSL. It is missing in the plain build, which
/// does not need it.
enum Cryptography {
    /// - Parameter bits: the size of the hash: 160, 256 or 512.
    static func hmac(bits: Int, key: UnsafeRawBufferPointer, _ bytes: ArraySlice<UInt8>) -> [UInt8] {
        var code = [UInt8](repeating: 0, count: bits / 8)
        let isDone = bytes.withUnsafeBytes {
            sealeddb_hmac(Int32(bits), key.baseAddress, Int32(key.count), $0.baseAddress, $0.count, &code)
        }
        precondition(isDone == 1, "OpenSSL has no HMAC.")
        return code
    }

    /// Decrypts whole blocks with AES-256-CBC. Returns `nil` if OpenSSL refused.
    static func decrypt(_ ciphertext: ArraySlice<UInt8>, key: UnsafeRawBufferPointer, iv: [UInt8]) -> [UInt8]? {
        var plaintext = [UInt8](repeating: 0, count: ciphertext.count)
        let isDone = ciphertext.withUnsafeBytes {
            sealeddb_decrypt(key.baseAddress, iv, $0.baseAddress, Int32($0.count), &plaintext)
        }
        return isDone == 1 ? plaintext : nil
    }
}

/// Computes the SHA-256 of data that arrives in parts.
final class SHA256Hash {
    private let context: UnsafeMutableRawPointer

    init() throws(DatabaseError) {
        guard let context = sealeddb_hash_new() else {
            throw DatabaseError(extendedCode: SQLITE_NOMEM, message: "No memory for a hash. Nothing was changed.")
        }
        self.context = context
    }

    deinit {
        sealeddb_hash_free(context)
    }

    func update(_ bytes: UnsafeRawBufferPointer) {
        precondition(sealeddb_hash_update(context, bytes.baseAddress, bytes.count) == 1, "OpenSSL has no SHA-256.")
    }

    /// The hash of all parts. Call this only once.
    func value() -> [UInt8] {
        var value = [UInt8](repeating: 0, count: 32)
        precondition(sealeddb_hash_value(context, &value) == 1, "OpenSSL has no SHA-256.")
        return value
    }
}
