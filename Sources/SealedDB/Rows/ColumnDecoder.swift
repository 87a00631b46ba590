/// Lets a type decode itself from one column.
struct ColumnDecoder: Decoder {
    let decoder: RowDecoder
    let index: Int32

    /// Thrown if the type is not a single value, so that the column must be read as JSON.
    struct HoldsSeveralValues: Error {}

    var codingPath: [any CodingKey] { [] }
    var userInfo: [CodingUserInfoKey: Any] { [:] }

    func container<Key: CodingKey>(keyedBy type: Key.Type) throws -> KeyedDecodingContainer<Key> {
        throw HoldsSeveralValues()
    }

    func unkeyedContainer() throws -> any UnkeyedDecodingContainer { throw HoldsSeveralValues() }

    func singleValueContainer() -> any SingleValueDecodingContainer { ColumnValue(decoder: decoder, index: index) }
}

/// Decodes a single value from one column, or from the whole row. The single value of a row is its first column.
struct ColumnValue: SingleValueDecodingContainer {
    let decoder: RowDecoder
    /// The index of the column; `nil` for the whole row.
    let index: Int32?

    var codingPath: [any CodingKey] { [] }

    func decodeNil() -> Bool { decoder.isNull(at: index ?? 0) }

    /// Reads 0 and 1 alone: a type that tries a truth value before a number would take any number for one.
    func decode(_ type: Bool.Type) throws -> Bool {
        let column = decoder.column(at: index ?? 0)
        guard let stored = column.integer() else { throw column.mismatch(type) }
        guard stored == 0 || stored == 1 else { throw column.mismatch(type, "that is neither 0 nor 1") }
        return stored == 1
    }

    // This method satisfies the requirements for all other scalar types.
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
