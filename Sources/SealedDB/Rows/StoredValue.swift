import Foundation

/// What a value that is not ``Bindable`` is stored as in its column.
struct StoredValue {
    let value: any Bindable
    /// Whether it is the JSON of a list or an object, or of what cannot be a single value.
    let isJSON: Bool

    /// Whether the type would read another value than `original` from the column.
    ///
    /// A type that is one of several, such as a number or a truth value, finds out what it is by trying one after
    /// another. JSON tells all of them apart. A column has the same integer for `true` and for 1, and the same text for a
    /// list as for a text that looks like one.
    func isReadAsAnother(than original: some Encodable) -> Bool {
        guard isAmbiguous, let type = type(of: original) as? any Decodable.Type else { return false }
        return isReadAsAnother(type)
    }

    private func isReadAsAnother<Value: Decodable>(_ type: Value.Type) -> Bool {
        let trial = Trial(self)
        // A type that cannot read what it has written throws when it is read. That is no other value.
        guard let read = try? Value(from: trial), !trial.hasUnknown, let read = read as? any Encodable,
            let again = try? ColumnEncoder.stored(read)
        else { return false }
        return again.isJSON != isJSON || again.value as? AnyHashable != value as? AnyHashable
    }

    /// Whether another type could have been stored in the same way.
    private var isAmbiguous: Bool {
        if isJSON || value is Bool { return true }
        if let text = value as? String { return Trial.maySeemJSON(text) }
        return trialInteger.map { $0 == 0 || $0 == 1 || $0 < 0 && !(value is any SignedInteger) } ?? false
    }

    /// The INTEGER that is stored; `nil` for any other type.
    fileprivate var trialInteger: Int64? {
        if let value = value as? Bool { return value ? 1 : 0 }
        return (value as? any FixedWidthInteger).map { Int64(truncatingIfNeeded: $0) }
    }
}

/// Lets a type decode itself from a stored value as it would from the column, before it is stored: by the rules of
/// `ColumnValue`, which needs a row.
private final class Trial: Decoder, SingleValueDecodingContainer {
    let codingPath: [any CodingKey] = []
    let userInfo: [CodingUserInfoKey: Any] = [:]
    /// Whether a type was asked for of which only a column can tell what it reads.
    private(set) var hasUnknown = false
    private let integer: Int64?
    private let text: String?

    /// Thrown for what the column does not hold.
    private struct Mismatch: Error {}

    init(_ stored: StoredValue) {
        integer = stored.trialInteger
        text = stored.value as? String
    }

    static func maySeemJSON(_ text: String) -> Bool {
        guard let first = text.utf8.first(where: { !" \t\r\n".utf8.contains($0) }) else { return false }
        return first == UInt8(ascii: "[") || first == UInt8(ascii: "{")
    }

    func container<Key: CodingKey>(keyedBy type: Key.Type) throws -> KeyedDecodingContainer<Key> {
        throw ColumnDecoder.HoldsSeveralValues()
    }

    func unkeyedContainer() throws -> any UnkeyedDecodingContainer { throw ColumnDecoder.HoldsSeveralValues() }

    func singleValueContainer() -> any SingleValueDecodingContainer { self }

    func decodeNil() -> Bool { false }

    func decode(_ type: Bool.Type) throws -> Bool {
        guard let integer, integer == 0 || integer == 1 else { throw Mismatch() }
        return integer == 1
    }

    func decode(_ type: String.Type) throws -> String {
        guard let text else { throw Mismatch() }
        return text
    }

    func decode(_ type: Double.Type) throws -> Double { Double(try stored(Int64.self)) }
    func decode(_ type: Float.Type) throws -> Float { Float(try stored(Int64.self)) }

    // This method satisfies the requirements for all integer types.
    func decode<Value: Decodable & FixedWidthInteger>(_ type: Value.Type) throws -> Value { try stored(type) }

    func decode<Value: Decodable>(_ type: Value.Type) throws -> Value {
        switch type {
        case is Date.Type where integer != nil:
            return try same(Date(timeIntervalSince1970: decode(Double.self)))
        case is Decimal.Type where integer != nil: return try same(Decimal(stored(Int64.self)))
        case is Data.Type, is UUID.Type, is Date.Type, is Decimal.Type: throw Mismatch()
        case is any ColumnReadable.Type:
            hasUnknown = true
            throw Mismatch()
        default: break
        }
        do {
            return try Value(from: self)
        } catch is ColumnDecoder.HoldsSeveralValues {
            return try JSONText.decode(type, from: Data(decode(String.self).utf8))
        }
    }

    private func stored<Value: FixedWidthInteger>(_ type: Value.Type) throws -> Value {
        guard let integer else { throw Mismatch() }
        if Value.bitWidth == 64 { return Value(truncatingIfNeeded: integer) }
        guard let value = Value(exactly: integer) else { throw Mismatch() }
        return value
    }

    /// Returns a value as the type that it is known to be.
    private func same<Value>(_ value: Any) throws -> Value {
        guard let value = value as? Value else { throw Mismatch() }
        return value
    }
}
