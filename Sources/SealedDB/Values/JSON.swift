import Foundation

/// A value that is stored in one column as JSON text.
///
/// Keys are sorted, so that equal values are stored as equal text. Dates are seconds since 1970, and data is Base64.
///
/// ```swift
/// try db.executeUpdate("INSERT INTO post (tags) VALUES (?)", JSON(["swift", "linux"]))
/// let tags = try db.executeQuery("SELECT tags FROM post").scalar(JSON<[String]>.self)?.value
/// ```
public struct JSON<Value> {
    /// What is stored as JSON.
    public var value: Value

    /// Wraps a value, to bind it as JSON.
    public init(_ value: Value) {
        self.value = value
    }
}

extension JSON: Sendable where Value: Sendable {}
extension JSON: Equatable where Value: Equatable {}
extension JSON: Hashable where Value: Hashable {}

extension JSON: Encodable where Value: Encodable {
    /// Encodes only the value.
    public func encode(to encoder: any Encoder) throws { try value.encode(to: encoder) }
}

extension JSON: Decodable where Value: Decodable {
    /// Decodes only the value.
    public init(from decoder: any Decoder) throws { self.init(try Value(from: decoder)) }
}

extension JSON: Bindable where Value: Encodable {
    /// Binds the value as JSON in TEXT.
    public func bind(to slot: borrowing ParameterSlot) throws(DatabaseError) {
        switch Result(catching: { try JSONText.encode(value) }) {
        case .success(let text): try slot.bind(text)
        case .failure(let error):
            throw slot.mismatch(Value.self, "has no form in JSON (\(CodingFailure.summary(of: error)))")
        }
    }
}

extension JSON: ColumnReadable where Value: Decodable {
    /// Reads JSON from TEXT, or from a BLOB that contains text.
    public init(column: borrowing Column) throws(DatabaseError) {
        guard column.type == .text || column.type == .blob else { throw column.mismatch(Value.self) }
        let bytes = column.withUnsafeBytes { Data($0) }
        switch Result(catching: { try JSONText.decode(Value.self, from: bytes) }) {
        case .success(let value): self.init(value)
        case .failure(let error):
            throw column.mismatch(Value.self, "whose JSON does not match (\(CodingFailure.summary(of: error)))")
        }
    }
}

/// Converts values to JSON text and back.
enum JSONText {
    static func encode(_ value: some Encodable) throws -> String {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        encoder.dateEncodingStrategy = .secondsSince1970
        return String(decoding: try encoder.encode(value), as: UTF8.self)
    }

    static func decode<Value: Decodable>(_ type: Value.Type, from bytes: Data) throws -> Value {
        let decoder = JSONDecoder()
        decoder.dateDecodingStrategy = .secondsSince1970
        return try decoder.decode(type, from: bytes)
    }
}
