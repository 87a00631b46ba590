internal import SQLiteEngine

/// What keys are wrapped with, by OpenSSL in the caller's memory. Everything fails in the plain build, which has no keys.
enum KeyWrapping {
    static let keyByteCount = 32
    static let nonceByteCount = 12
    /// A wrapped key of 32 bytes, followed by the tag of 16 bytes.
    static let sealedByteCount = 48
    static let codeByteCount = 32

    /// HKDF with SHA-256. <https://www.rfc-editor.org/rfc/rfc5869>
    static func expand(
        _ secret: UnsafeRawBufferPointer,
        salt: [UInt8],
        info: String,
        into key: UnsafeMutableRawBufferPointer
    ) throws(DatabaseError) {
        let info = Array(info.utf8)
        let done = sealeddb_hkdf(
            secret.baseAddress,
            secret.count,
            salt,
            salt.count,
            info,
            info.count,
            key.baseAddress,
            key.count
        )
        guard done == 1 else { throw .wrappingFailed }
    }

    /// scrypt. <https://www.rfc-editor.org/rfc/rfc7914>
    static func stretch(
        _ passphrase: UnsafeRawBufferPointer,
        salt: [UInt8],
        cost: Int,
        blockSize: Int,
        lanes: Int,
        into key: UnsafeMutableRawBufferPointer
    ) throws(DatabaseError) {
        // What the algorithm takes, and as much again for what OpenSSL adds.
        let memory = UInt64(128 * blockSize) * UInt64(cost + lanes + 2) * 2
        let done = sealeddb_scrypt(
            passphrase.baseAddress,
            passphrase.count,
            salt,
            salt.count,
            UInt64(cost),
            UInt32(blockSize),
            UInt32(lanes),
            memory,
            key.baseAddress,
            key.count
        )
        guard done == 1 else { throw .wrappingFailed }
    }

    /// AES-256-GCM of a key of 32 bytes.
    /// - Parameter bound: what is not encrypted, but without which the key cannot be unwrapped.
    static func seal(
        _ plaintext: UnsafeRawBufferPointer,
        key: UnsafeRawBufferPointer,
        nonce: [UInt8],
        bound: [UInt8]
    ) throws(DatabaseError) -> [UInt8] {
        precondition(plaintext.count == keyByteCount && key.count == keyByteCount && nonce.count == nonceByteCount)
        var sealed = [UInt8](repeating: 0, count: sealedByteCount)
        let done = sealeddb_gcm_seal(
            key.baseAddress,
            nonce,
            bound,
            Int32(bound.count),
            plaintext.baseAddress,
            &sealed
        )
        guard done == 1 else { throw .wrappingFailed }
        return sealed
    }

    /// Undoes ``seal(_:key:nonce:bound:)``. Returns false, and leaves zeros, if the key or anything else is another one.
    static func open(
        _ sealed: [UInt8],
        key: UnsafeRawBufferPointer,
        nonce: [UInt8],
        bound: [UInt8],
        into plaintext: UnsafeMutableRawBufferPointer
    ) throws(DatabaseError) -> Bool {
        precondition(sealed.count == sealedByteCount && nonce.count == nonceByteCount && key.count == keyByteCount)
        precondition(plaintext.count == keyByteCount)
        let answer = sealeddb_gcm_open(
            key.baseAddress,
            nonce,
            bound,
            Int32(bound.count),
            sealed,
            plaintext.baseAddress?.assumingMemoryBound(to: UInt8.self)
        )
        guard answer >= 0 else { throw .wrappingFailed }
        return answer == 1
    }

    /// HMAC with SHA-256.
    static func code(_ bytes: [UInt8], key: UnsafeRawBufferPointer) throws(DatabaseError) -> [UInt8] {
        var code = [UInt8](repeating: 0, count: codeByteCount)
        guard sealeddb_hmac_sha256(key.baseAddress, key.count, bytes, bytes.count, &code) == 1 else {
            throw .wrappingFailed
        }
        return code
    }

    /// Compares codes in constant time.
    static func isEqual(_ first: [UInt8], _ second: [UInt8]) -> Bool {
        guard first.count == codeByteCount, second.count == codeByteCount else { return false }
        return sealeddb_is_equal_code(first, second) == 1
    }
}

extension DatabaseError {
    fileprivate static var wrappingFailed: DatabaseError {
        DatabaseError(
            extendedCode: SQLITE_NOMEM,
            message: "OpenSSL did not wrap or unwrap a key, as when memory has run out. Try again."
        )
    }
}
