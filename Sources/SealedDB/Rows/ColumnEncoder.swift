import Foundation

/// Lets a value encode itself into one column, and determines whether it is a single value.
final class ColumnEncoder: Encoder, SingleValueEncodingContainer {
    let codingPath: [any CodingKey] = []
    let userInfo: [CodingUserInfoKey: Any] = [:]
    private var value: StoredValue?
    private var holdsSeveralValues = false

    /// Returns what to bind for the value: the value itself, the single value that it encodes, or its JSON.
    static func stored<Value: Encodable>(_ value: Value) throws -> StoredValue {
        if let value = value as? any Bindable { return StoredValue(value: value, isJSON: false) }
        let encoder = ColumnEncoder()
        try value.encode(to: encoder)
        if !encoder.holdsSeveralValues, let single = encoder.value { return single }
        return StoredValue(value: try JSONText.encode(value), isJSON: true)
    }

    func container<Key: CodingKey>(keyedBy type: Key.Type) -> KeyedEncodingContainer<Key> {
        holdsSeveralValues = true
        return KeyedEncodingContainer(Discarded())
    }

    func unkeyedContainer() -> any UnkeyedEncodingContainer {
        holdsSeveralValues = true
        return DiscardedList()
    }

    func singleValueContainer() -> any SingleValueEncodingContainer { self }

    func encodeNil() { value = StoredValue(value: .null, isJSON: false) }

    // This method satisfies the requirements for all scalar types.
    func encode<Value: Encodable & Bindable>(_ value: Value) {
        self.value = StoredValue(value: value, isJSON: false)
    }

    func encode<Value: Encodable>(_ value: Value) throws { self.value = try ColumnEncoder.stored(value) }
}

// Containers for values that are encoded as JSON instead, or rejected. They discard everything.

struct Discarded<Key: CodingKey>: KeyedEncodingContainerProtocol {
    var codingPath: [any CodingKey] { [] }
    func encodeNil(forKey key: Key) {}
    func encode<Value: Encodable>(_ value: Value, forKey key: Key) {}
    func nestedContainer<Nested: CodingKey>(
        keyedBy type: Nested.Type,
        forKey key: Key
    ) -> KeyedEncodingContainer<Nested> {
        KeyedEncodingContainer(Discarded<Nested>())
    }
    func nestedUnkeyedContainer(forKey key: Key) -> any UnkeyedEncodingContainer { DiscardedList() }
    func superEncoder() -> any Encoder { ColumnEncoder() }
    func superEncoder(forKey key: Key) -> any Encoder { ColumnEncoder() }
}

struct DiscardedList: UnkeyedEncodingContainer {
    var codingPath: [any CodingKey] { [] }
    private(set) var count = 0
    mutating func encodeNil() { count += 1 }
    mutating func encode<Value: Encodable>(_ value: Value) { count += 1 }
    mutating func nestedContainer<Nested: CodingKey>(keyedBy type: Nested.Type) -> KeyedEncodingContainer<Nested> {
        count += 1
        return KeyedEncodingContainer(Discarded<Nested>())
    }
    mutating func nestedUnkeyedContainer() -> any UnkeyedEncodingContainer {
        count += 1
        return DiscardedList()
    }
    mutating func superEncoder() -> any Encoder {
        count += 1
        return ColumnEncoder()
    }
}
