/// A bucket and the part of its names that is a repository's own: `s3://bucket/prefix`.
package struct ObjectStoreAddress: Sendable, Hashable, CustomStringConvertible {
    let bucket: String
    /// What the names of its objects begin with: empty, or with a slash at its end.
    let prefix: String

    private static let scheme = "s3://"
    private static let mostBytes = 512

    /// - Returns: `nil` for what is a path.
    /// - Throws: ``DatabaseError/Reason/misuse`` for what begins like an address and is none.
    package init?(_ text: String) throws(DatabaseError) {
        guard text.lowercased().begins(with: ObjectStoreAddress.scheme) else { return nil }
        let rest = text.utf8.dropFirst(ObjectStoreAddress.scheme.utf8.count)
        var parts = rest.split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false)
        if parts.count > 1, parts.last?.isEmpty == true { parts.removeLast() }
        // Names that are the same however they are encoded for a request and its signature.
        let isPlain = parts.allSatisfy { part in
            !part.isEmpty && !part.allSatisfy { $0 == UInt8(ascii: ".") } && part.allSatisfy(ObjectStoreAddress.isPlain)
        }
        guard isPlain, rest.count <= ObjectStoreAddress.mostBytes else {
            // Other programs take a user's name and secret before the bucket, as KEY:SECRET@BUCKET.
            let mayHaveSecret = rest.contains { $0 == UInt8(ascii: "@") || $0 == UInt8(ascii: ":") }
            throw DatabaseError(
                extendedCode: SQLITE_MISUSE,
                reason: .misuse,
                message: """
                    \(mayHaveSecret ? "s3://…" : text) names no repository in an object store. That is s3://BUCKET or s3://BUCKET/PREFIX, of letters, \
                    digits, and the signs . _ - with slashes between them.
                    """
            )
        }
        let names = parts.map { String(decoding: $0, as: UTF8.self) }
        bucket = names[0]
        prefix = names.dropFirst().map { $0 + "/" }.joined()
    }

    private static func isPlain(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "."), UInt8(ascii: "_"), UInt8(ascii: "-"):
            true
        default: false
        }
    }

    package var description: String {
        ObjectStoreAddress.scheme + bucket + (prefix.isEmpty ? "" : "/\(prefix.dropLast())")
    }
}
