/// How SQLCipher derives a store's raw key from a passphrase: PBKDF2 with the salt, which is the first 16 bytes of the
/// file. <https://www.zetetic.net/sqlcipher/design/>
struct KeyDerivation: Hashable, Sendable {
    enum Algorithm: Int, Sendable {
        case sha1 = 160
        case sha256 = 256
        case sha512 = 512
    }

    var algorithm: Algorithm
    var iterations: Int

    func key(from passphrase: SecretBytes, salt: [UInt8]) throws(DatabaseError) -> SecretBytes {
        guard (1...Int(Int32.max)).contains(iterations) else {
            throw DatabaseError(
                extendedCode: SQLITE_ERROR,
                reason: .unsupported,
                message: "No key can be derived by \(iterations) iterations of PBKDF2. Nothing was read or written."
            )
        }
        return try SecretBytes(capacity: Key.rawByteCount) { target throws(DatabaseError) in
            let isDerived = try passphrase.withBytes { bytes throws(DatabaseError) in
                PBKDF2.derive(
                    bits: algorithm.rawValue,
                    passphrase: bytes,
                    salt: salt,
                    iterations: iterations,
                    into: target
                )
            }
            guard isDerived else {
                throw DatabaseError.cryptographyFailed.adding(
                    context: "No key could be derived (PBKDF2, HMAC-\(algorithm), \(iterations) iterations)"
                )
            }
            return target.count
        }
    }
}
