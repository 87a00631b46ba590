import SealedDB

/// What proves that two tables hold the same rows, in whatever order they come.
///
/// Each row counts with the SHA-256 of its bytes in the binary form of COPY, in which a value of a type has one form alone, and
/// the hashes are added as numbers of 256 bits. The first side are the bytes that were sent, the second those that PostgreSQL
/// sends when the rows are read back from the table. A row that is missing, surplus, doubled or changed in any bit changes the
/// count or the sum; a sum, unlike XOR, does not let two equal rows cancel each other. That errors would leave both as they are
/// has a chance of 2 to the power of -256. Somebody who can choose rows could make two tables of one sum, and a server that
/// lies need not even do that: this is no proof against a server that is not trusted, and neither is any other.
///
/// It does not compare the store with what was sent: what a value becomes in PostgreSQL is up to `CopiedRow`, and to its tests.
struct RowDigest: Equatable {
    private(set) var count: Int64 = 0
    /// The lowest first.
    private var sum: [UInt64] = [0, 0, 0, 0]

    mutating func add(_ row: UnsafeRawBufferPointer) throws {
        let hash = try SHA256Hash()
        try hash.update(row)
        let value = try hash.value()
        var carry = false
        value.withUnsafeBytes { bytes in
            for index in 0..<4 {
                let part = UInt64(littleEndian: bytes.loadUnaligned(fromByteOffset: index * 8, as: UInt64.self))
                let (first, overflows) = sum[index].addingReportingOverflow(part)
                let (second, overflowsToo) = first.addingReportingOverflow(carry ? 1 : 0)
                sum[index] = second
                carry = overflows || overflowsToo
            }
        }
        count += 1
    }

    /// In hex digits, the highest first.
    var text: String {
        sum.reversed().map { part in
            let digits = String(part, radix: 16)
            return String(repeating: "0", count: 16 - digits.count) + digits
        }.joined()
    }
}
