import Foundation

/// Encodes an Encodable value into columns and values, as ``RowDecoder`` reads them. A ``Bindable`` property, and one
/// that encodes itself as a single value, are stored as such; all others as JSON text.
final class RowEncoder: Encoder {
    let naming: ColumnNaming
    let codingPath: [any CodingKey] = []
    let userInfo: [CodingUserInfoKey: Any] = [:]
    private(set) var columns: [String] = []
    private(set) var values: [any Bindable] = []
    /// Why the value cannot be a row. It is stored because not all of Swift's encoding calls can throw.
    private var problem: String?

    private init(naming: ColumnNaming) {
        self.naming = naming
    }

    static func encode(_ value: some Encodable, naming: ColumnNaming) throws(DatabaseError) -> RowEncoder {
        let encoder = RowEncoder(naming: naming)
        do {
            try value.encode(to: encoder)
        } catch let error as EncodingError {
            encoder.reject(CodingFailure.summary(of: error))
        } catch {
            throw .thrown(
                error,
                message: "A \(type(of: value)) was not stored, because its encode(to:) failed.",
                code: SQLITE_MISMATCH
            )
        }
        if let problem = encoder.problem {
            throw DatabaseError(
                extendedCode: SQLITE_MISMATCH,
                reason: .typeMismatch,
                message: "A \(type(of: value)) cannot be stored as a row: \(problem). Nothing was executed."
            )
        }
        return encoder
    }

    /// Returns the position of a column: first in the exact spelling, then without regard to case.
    func position(of column: String) -> Int? {
        columns.firstIndex { ExactText($0) == ExactText(column) }
            ?? columns.firstIndex { ExactText(name: $0) == ExactText(name: column) }
    }

    func reject(_ problem: String) { self.problem = self.problem ?? problem }

    func append(_ value: any Bindable, forKey key: some CodingKey) {
        let column = naming.column(for: key)
        // SQLite would take both, and drop one of the values.
        if columns.contains(where: { ExactText(name: $0) == ExactText(name: column) }) {
            reject("two of its properties are column \"\(column)\"")
        }
        columns.append(column)
        values.append(value)
    }

    func container<Key: CodingKey>(keyedBy type: Key.Type) -> KeyedEncodingContainer<Key> {
        KeyedEncodingContainer(RowEncodingContainer<Key>(encoder: self))
    }

    func unkeyedContainer() -> any UnkeyedEncodingContainer {
        reject("it is a list")
        return DiscardedList()
    }

    func singleValueContainer() -> any SingleValueEncodingContainer {
        reject("it has no named properties")
        return ColumnEncoder()
    }
}

/// Encodes the properties of a value. `nil` is stored as NULL, so that reading returns what was stored.
private struct RowEncodingContainer<Key: CodingKey>: KeyedEncodingContainerProtocol {
    let encoder: RowEncoder

    var codingPath: [any CodingKey] { [] }

    func encodeNil(forKey key: Key) { encoder.append(.null, forKey: key) }

    // This method satisfies the requirements for all scalar types.
    func encode<Value: Encodable & Bindable>(_ value: Value, forKey key: Key) { encoder.append(value, forKey: key) }

    func encode<Value: Encodable>(_ value: Value, forKey key: Key) throws {
        let stored = try ColumnEncoder.stored(value)
        if stored.isReadAsAnother(than: value) {
            encoder.reject(
                """
                "\(key.stringValue)" would be read as another value than it is: \(Value.self) tries several types, which its \
                column does not tell apart. Make the property a JSON<\(Value.self)>
                """
            )
        }
        encoder.append(stored.value, forKey: key)
    }

    func encodeIfPresent<Value: Encodable>(_ value: Value?, forKey key: Key) throws {
        if let value { try encode(value, forKey: key) } else { encodeNil(forKey: key) }
    }

    // Each of these has a default implementation that omits `nil`. Swift would prefer it to a generic method.
    func encodeIfPresent(_ value: Bool?, forKey key: Key) { encoder.append(value, forKey: key) }
    func encodeIfPresent(_ value: String?, forKey key: Key) { encoder.append(value, forKey: key) }
    func encodeIfPresent(_ value: Double?, forKey key: Key) { encoder.append(value, forKey: key) }
    func encodeIfPresent(_ value: Float?, forKey key: Key) { encoder.append(value, forKey: key) }
    func encodeIfPresent(_ value: Int?, forKey key: Key) { encoder.append(value, forKey: key) }
    func encodeIfPresent(_ value: Int8?, forKey key: Key) { encoder.append(value, forKey: key) }
    func encodeIfPresent(_ value: Int16?, forKey key: Key) { encoder.append(value, forKey: key) }
    func encodeIfPresent(_ value: Int32?, forKey key: Key) { encoder.append(value, forKey: key) }
    func encodeIfPresent(_ value: Int64?, forKey key: Key) { encoder.append(value, forKey: key) }
    func encodeIfPresent(_ value: UInt?, forKey key: Key) { encoder.append(value, forKey: key) }
    func encodeIfPresent(_ value: UInt8?, forKey key: Key) { encoder.append(value, forKey: key) }
    func encodeIfPresent(_ value: UInt16?, forKey key: Key) { encoder.append(value, forKey: key) }
    func encodeIfPresent(_ value: UInt32?, forKey key: Key) { encoder.append(value, forKey: key) }
    func encodeIfPresent(_ value: UInt64?, forKey key: Key) { encoder.append(value, forKey: key) }

    func nestedContainer<Nested: CodingKey>(
        keyedBy type: Nested.Type,
        forKey key: Key
    ) -> KeyedEncodingContainer<Nested> {
        reject(key)
        return KeyedEncodingContainer(Discarded())
    }

    func nestedUnkeyedContainer(forKey key: Key) -> any UnkeyedEncodingContainer {
        reject(key)
        return DiscardedList()
    }

    private func reject(_ key: Key) {
        encoder.reject("give what is in \"\(key.stringValue)\" an Encodable type of its own")
    }

    /// Returns the encoder of the same row: the properties of a superclass are columns too.
    func superEncoder() -> any Encoder { encoder }

    func superEncoder(forKey key: Key) -> any Encoder { encoder }
}
