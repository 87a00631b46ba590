/// What the first bytes of a file say about it.
package enum StoreHeader {
    /// `SQLite format 3` and a NUL. https://www.sqlite.org/fileformat.html#magic_header_string
    static let plaintextMagic = [UInt8]("SQLite format 3\0".utf8)
    /// How many bytes tell what kind of database it is.
    package static let byteCount = 100
    /// The smallest page size of SQLite, in bytes.
    static let smallestPage: Int64 = 512

    /// The largest ``CipherSettings/plaintextHeaderSize``.
    static let mostBytesInClear = 64

    /// Whether SQLite takes a file of this size for an empty one, whatever it holds: on some systems it once wrote one
    /// byte into empty files.
    static func isEmpty(fileSize: Int64) -> Bool { fileSize <= 1 }

    static func hasMagic(_ bytes: [UInt8]) -> Bool { bytes.starts(with: plaintextMagic) }

    /// Whether the whole header is plaintext, and not only the part that ``CipherSettings/plaintextHeaderSize`` leaves
    /// unencrypted: SQLite keeps 20 bytes of zeros in the header, which would not be zeros if they were encrypted.
    package static func isPlaintext(_ bytes: [UInt8]) -> Bool {
        hasMagic(bytes) && (bytes.count < 92 || bytes[72..<92].allSatisfy { $0 == 0 })
    }

    /// Whether a plaintext database is shorter than the size that its header states.
    /// https://www.sqlite.org/fileformat.html#in_header_database_size
    static func isTruncatedPlaintext(_ bytes: [UInt8], fileSize: Int64) -> Bool {
        guard bytes.count >= 100 else { return true }
        func number(_ offset: Int, _ count: Int) -> Int64 {
            bytes[offset..<offset + count].reduce(0) { $0 << 8 | Int64($1) }
        }
        let pageSize = number(16, 2) == 1 ? 65536 : number(16, 2)
        return number(24, 4) == number(92, 4) && number(28, 4) * pageSize > fileSize
    }

    /// Whether the bytes are as evenly distributed as ciphertext, by a chi-squared test of their frequencies.
    /// Ciphertext fails the test less than once in a million times; texts, programs and sparse files fail it clearly.
    package static func looksRandom(_ bytes: [UInt8]) -> Bool {
        guard bytes.count >= Int(smallestPage) else { return false }
        var counts = [Double](repeating: 0, count: 256)
        for byte in bytes { counts[Int(byte)] += 1 }
        let expected = Double(bytes.count) / 256
        // For random bytes the sum has mean 255 and standard deviation 22.6.
        return counts.reduce(0) { $0 + ($1 - expected) * ($1 - expected) / expected } < 400
    }

    /// Makes the error of a read without a key clear.
    static func diagnoseWithoutKey(_ error: DatabaseError, header: [UInt8]) -> DatabaseError {
        guard error.code == SQLITE_NOTADB, header != plaintextMagic, !header.isEmpty else { return error }
        return DatabaseError(
            extendedCode: error.extendedCode,
            reason: .keyRequired,
            message: """
                The file is encrypted, or not a database, and no key was given. It was not changed. Open it with its \
                key.
                """,
            sql: error.sql
        )
    }
}
