internal import CryptoExtras
import Foundation

/// What SQLCipher makes of a key, made without SQLCipher.
extension Key {
    /// The salt that is part of the key; `nil` where the file's counts.
    func embeddedSalt() throws(DatabaseError) -> [UInt8]? {
        guard form == .rawWithSalt else { return nil }
        let raw = try rawBytes()
        return withExtendedLifetime(raw) { Array(raw.bytes[Key.rawByteCount...]) }
    }

    /// The 32 bytes that pages are encrypted with. A passphrase takes as long as opening a store with it.
    func encryptionKey(salt: [UInt8], parameters: CipherParameters) throws(DatabaseError) -> SecretBytes {
        guard form == .passphrase else {
            let raw = try rawBytes()
            defer { withExtendedLifetime(raw) {} }
            return try SecretBytes(copying: UnsafeRawBufferPointer(rebasing: raw.bytes[..<Key.rawByteCount]))
        }
        return try withKeySpec { passphrase throws(DatabaseError) in
            do {
                let key = try KDF.Insecure.PBKDF2.deriveKey(
                    from: passphrase,
                    salt: salt,
                    using: parameters.kdfAlgorithm.hashFunction,
                    outputByteCount: Key.rawByteCount,
                    unsafeUncheckedRounds: parameters.kdfIterations
                )
                return try key.withUnsafeBytes { try SecretBytes(copying: $0) }
            } catch let error as DatabaseError {
                throw error
            } catch {
                throw DatabaseError(extendedCode: SQLITE_ERROR, message: "The key could not be derived: \(error).")
            }
        }
    }

    /// The bytes behind the hex digits of the spec.
    private func rawBytes() throws(DatabaseError) -> SecretBytes {
        try withKeySpec { spec throws(DatabaseError) in
            try Hexadecimal.decode(UnsafeRawBufferPointer(rebasing: spec[2..<spec.count - 1]))
        }
    }
}

extension CipherSettings.Algorithm {
    fileprivate var hashFunction: KDF.Insecure.PBKDF2.HashFunction {
        switch self {
        case .sha1: .insecureSHA1
        case .sha256: .sha256
        case .sha512: .sha512
        }
    }
}
