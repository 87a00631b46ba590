internal import SQLiteEngine

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
