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
            try SecretBytes.derived(
                from: passphrase,
                salt: salt,
                algorithm: parameters.kdfAlgorithm,
                iterations: parameters.kdfIterations
            )
        }
    }

    /// The bytes behind the hex digits of the spec.
    private func rawBytes() throws(DatabaseError) -> SecretBytes {
        try withKeySpec { spec throws(DatabaseError) in
            try Hexadecimal.decode(UnsafeRawBufferPointer(rebasing: spec[2..<spec.count - 1]))
        }
    }
}

extension SecretBytes {
    func derived(
        salt: [UInt8],
        algorithm: CipherSettings.Algorithm,
        iterations: Int
    ) throws(DatabaseError) -> SecretBytes {
        try SecretBytes.derived(from: bytes, salt: salt, algorithm: algorithm, iterations: iterations)
    }

    fileprivate static func derived(
        from bytes: UnsafeRawBufferPointer,
        salt: [UInt8],
        algorithm: CipherSettings.Algorithm,
        iterations: Int
    ) throws(DatabaseError) -> SecretBytes {
        try SecretBytes(capacity: Key.rawByteCount) { target throws(DatabaseError) in
            guard
                PBKDF2.derive(
                    bits: algorithm.bits,
                    passphrase: bytes,
                    salt: salt,
                    iterations: iterations,
                    into: target
                )
            else {
                throw DatabaseError(
                    extendedCode: SQLITE_ERROR,
                    reason: .unsupported,
                    message: "OpenSSL derived no key. Nothing was changed."
                )
            }
            return target.count
        }
    }
}
