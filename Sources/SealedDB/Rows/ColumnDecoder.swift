/// Lets a type decode itself from one column.
struct ColumnDecoder: Decoder {
    let decoder: RowDecoder
    let index: Int32

    /// Thrown to say that the column is JSON.
    struct HoldsSeveralValues: Error {}

    var codingPath: [any CodingKey] { [] }
    var userInfo: [CodingUserInfoKey: Any] { [:] }

    func container<Key: CodingKey>(keyedBy type: Key.Type) throws -> KeyedDecodingContainer<Key> {
        throw HoldsSeveralValues()
    }

    func unkeyedContainer() throws -> any UnkeyedDecodingContainer { throw HoldsSeveralValues() }

    func singleValueContainer() -> any SingleValueDecodingContainer { ColumnValue(decoder: decoder, index: index) }
}

/// One column as a single value, or the whole row, whose single value is the first column.
struct ColumnValue: SingleValueDecodingContainer {
    let decoder: RowDecoder
    /// `nil` for the whole row.
    let index: Int32?

    var codingPath: [any CodingKey] { [] }

    func decodeNil() -> Bool { decoder.isNull(at: index ?? 0) }

    // The scalars: this witnesses all requirements for them.
    func decode<Value: Decodable & ColumnReadable>(_ type: Value.Type) throws -> Value {
        let column = decoder.column(at: index ?? 0)
        return try Value(column: column)
    }

    func decode<Value: Decodable>(_ type: Value.Type) throws -> Value {
        if let index { return try decoder.value(type, at: index) }
        if type is any ColumnReadable.Type { return try decoder.value(type, at: 0) }
        return try Value(from: decoder)
    }
}
