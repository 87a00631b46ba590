internal import Foundation

/// Decodes a row by the names of its columns.
final class RowContainer<Key: CodingKey>: KeyedDecodingContainerProtocol {
    private let decoder: RowDecoder
    // Not retained: the decoder retains the statement.
    private let statement: Unmanaged<Statement>
    /// The column indexes of enum keys, by the one byte that such a key consists of; `unknown` before a key is first
    /// used. It is `nil` for other types of keys.
    private let columns: UnsafeMutablePointer<Int32>?
    // These are unchecked, because the calls are never nested.
    /// The column indexes of other keys, in the order of their first use. Each row usually repeats this order.
    @exclusivity(unchecked) private var named: [(name: String, column: Int32)] = []
    @exclusivity(unchecked) private var position = 0

    private static var unknown: Int32 { -2 }
    private static var none: Int32 { -1 }

    init(_ decoder: RowDecoder) {
        self.decoder = decoder
        statement = .passUnretained(decoder.statement)
        if _isPOD(Key.self), MemoryLayout<Key>.size <= 1 {
            let columns = UnsafeMutablePointer<Int32>.allocate(capacity: 256)
            columns.initialize(repeating: RowContainer.unknown, count: 256)
            self.columns = columns
        } else {
            columns = nil
        }
    }

    deinit {
        columns?.deallocate()
    }

    var codingPath: [any CodingKey] { [] }

    var allKeys: [Key] {
        (0..<decoder.statement.columnCount).compactMap { decoder.statement.columnName(at: $0) }
            .compactMap { decoder.naming.key(forColumn: $0) }
    }

    func contains(_ key: Key) -> Bool { index(of: key) >= 0 }

    func decodeNil(forKey key: Key) throws -> Bool { decoder.isNull(at: try column(of: key)) }

    // The usual types are read here. The generic functions below handle values of another type, and missing columns.

    func decode(_ type: Int.Type, forKey key: Key) throws -> Int {
        if let value = integer(index(of: key)) { return Int(value) }
        return try scalar(type, key)
    }

    func decode(_ type: Int64.Type, forKey key: Key) throws -> Int64 {
        if let value = integer(index(of: key)) { return value }
        return try scalar(type, key)
    }

    func decode(_ type: Double.Type, forKey key: Key) throws -> Double {
        if let value = number(index(of: key)) { return value }
        return try scalar(type, key)
    }

    func decode(_ type: String.Type, forKey key: Key) throws -> String {
        if let value = text(index(of: key)) { return value }
        return try scalar(type, key)
    }

    func decode(_ type: Bool.Type, forKey key: Key) throws -> Bool {
        if let value = integer(index(of: key)) { return value != 0 }
        return try scalar(type, key)
    }

    @inline(__always)
    private func integer(_ index: Int32) -> Int64? {
        index < 0 ? nil : statement._withUnsafeGuaranteedRef { $0.storedInteger(at: index) }
    }

    @inline(__always)
    private func number(_ index: Int32) -> Double? {
        index < 0 ? nil : statement._withUnsafeGuaranteedRef { $0.storedNumber(at: index) }
    }

    @inline(__always)
    private func text(_ index: Int32) -> String? {
        index < 0 ? nil : statement._withUnsafeGuaranteedRef { $0.storedText(at: index) }
    }

    @inline(never)
    private func scalar<Value: ColumnReadable>(_ type: Value.Type, _ key: Key) throws(DatabaseError) -> Value {
        try Value(column: decoder.column(at: column(of: key)))
    }

    // This method satisfies the requirements for all other scalar types.
    func decode<Value: Decodable & ColumnReadable>(_ type: Value.Type, forKey key: Key) throws -> Value {
        try Value(column: decoder.column(at: column(of: key)))
    }

    func decode<Value: Decodable>(_ type: Value.Type, forKey key: Key) throws -> Value {
        let index = try column(of: key)
        if Value.self == Data.self, let data = statement._withUnsafeGuaranteedRef({ $0.storedData(at: index) }) {
            return unsafeBitCast(data, to: type)
        }
        return try decoder.value(type, at: index)
    }

    func decodeIfPresent<Value: Decodable>(_ type: Value.Type, forKey key: Key) throws -> Value? {
        let index = self.index(of: key)
        return index < 0 || decoder.isNull(at: index) ? nil : try decoder.value(type, at: index)
    }

    // Each of these has a default implementation that looks the key up three times. Swift would prefer it to a generic
    // method.
    func decodeIfPresent(_ type: Bool.Type, forKey key: Key) throws -> Bool? { try scalar(key) }
    func decodeIfPresent(_ type: String.Type, forKey key: Key) throws -> String? {
        try text(index(of: key)) ?? scalar(key)
    }
    func decodeIfPresent(_ type: Double.Type, forKey key: Key) throws -> Double? {
        try number(index(of: key)) ?? scalar(key)
    }
    func decodeIfPresent(_ type: Float.Type, forKey key: Key) throws -> Float? { try scalar(key) }
    func decodeIfPresent(_ type: Int.Type, forKey key: Key) throws -> Int? {
        try integer(index(of: key)).map { Int($0) } ?? scalar(key)
    }
    func decodeIfPresent(_ type: Int8.Type, forKey key: Key) throws -> Int8? { try scalar(key) }
    func decodeIfPresent(_ type: Int16.Type, forKey key: Key) throws -> Int16? { try scalar(key) }
    func decodeIfPresent(_ type: Int32.Type, forKey key: Key) throws -> Int32? { try scalar(key) }
    func decodeIfPresent(_ type: Int64.Type, forKey key: Key) throws -> Int64? {
        try integer(index(of: key)) ?? scalar(key)
    }
    func decodeIfPresent(_ type: UInt.Type, forKey key: Key) throws -> UInt? { try scalar(key) }
    func decodeIfPresent(_ type: UInt8.Type, forKey key: Key) throws -> UInt8? { try scalar(key) }
    func decodeIfPresent(_ type: UInt16.Type, forKey key: Key) throws -> UInt16? { try scalar(key) }
    func decodeIfPresent(_ type: UInt32.Type, forKey key: Key) throws -> UInt32? { try scalar(key) }
    func decodeIfPresent(_ type: UInt64.Type, forKey key: Key) throws -> UInt64? { try scalar(key) }

    private func scalar<Value: ColumnReadable>(_ key: Key) throws(DatabaseError) -> Value? {
        let index = self.index(of: key)
        return index < 0 || decoder.isNull(at: index) ? nil : try Value(column: decoder.column(at: index))
    }

    func nestedContainer<Nested: CodingKey>(
        keyedBy type: Nested.Type,
        forKey key: Key
    ) throws -> KeyedDecodingContainer<Nested> {
        throw nested(key)
    }

    func nestedUnkeyedContainer(forKey key: Key) throws -> any UnkeyedDecodingContainer { throw nested(key) }

    /// Returns the decoder of the same row: the properties of a superclass are columns too.
    func superDecoder() -> any Decoder { decoder }

    func superDecoder(forKey key: Key) -> any Decoder { decoder }

    private func nested(_ key: Key) -> DatabaseError {
        .notDecodable(
            "The column for \"\(key.stringValue)\" holds JSON. Give what is in it a Decodable type of its own.",
            decoder.statement
        )
    }

    // MARK: Lookup

    private func column(of key: Key) throws(DatabaseError) -> Int32 {
        let index = self.index(of: key)
        guard index >= 0 else {
            let name = decoder.naming.column(for: key)
            throw .notDecodable(
                "Row \(decoder.statement.rowNumber): \(decoder.statement.noColumn(name))",
                decoder.statement
            )
        }
        return index
    }

    /// Returns the column index of a key; -1 if there is none.
    private func index(of key: Key) -> Int32 {
        if let columns {
            // The only byte of a key without payload identifies it.
            let place = columns + Int(withUnsafeBytes(of: key) { $0.first ?? 0 })
            if place.pointee == RowContainer.unknown { place.pointee = find(key) }
            return place.pointee
        }
        let name = key.stringValue
        for _ in named.indices {
            if position >= named.count { position = 0 }
            defer { position += 1 }
            if named[position].name.isSame(as: name) { return named[position].column }
        }
        named.append((name, find(key)))
        return named[named.count - 1].column
    }

    private func find(_ key: Key) -> Int32 {
        let name = decoder.naming.column(for: key)
        let names = (0..<decoder.statement.columnCount).map { decoder.statement.columnName(at: $0) ?? "" }
        let exact = ExactText(name)
        let found =
            names.lastIndex { ExactText($0) == exact }
            ?? names.lastIndex { ExactText($0.lowercased()) == ExactText(name.lowercased()) }
        return found.map { Int32($0) } ?? RowContainer.none
    }
}
