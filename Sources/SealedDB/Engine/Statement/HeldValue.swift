/// A value where SQLite or the caller holds it, without a copy.
///
/// The bytes of a text are UTF-8, though not always valid: SQLite stores what it is given.
package enum HeldValue {
    case null
    case integer(Int64)
    case real(Double)
    case text(UnsafeRawBufferPointer)
    case blob(UnsafeRawBufferPointer)
}

extension UnsafeRawBufferPointer {
    /// Whether the bytes are valid UTF-8.
    package var isUTF8: Bool {
        var rest = self
        while rest.count >= 8 {
            guard rest.loadUnaligned(as: UInt64.self) & 0x8080_8080_8080_8080 == 0 else { break }
            rest = UnsafeRawBufferPointer(rebasing: rest[8...])
        }
        guard rest.contains(where: { $0 >= 0x80 }) else { return true }
        return rest.withMemoryRebound(to: UInt8.self) { String(validUTF8: $0) != nil }
    }
}
