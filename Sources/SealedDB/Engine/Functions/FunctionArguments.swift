public import Foundation
internal import SQLiteEngine

/// The arguments that SQL passes to a function. They are only lent for the call: the value cannot be copied or kept.
///
/// An index without an argument reads as NULL. SQLite converts types: <https://www.sqlite.org/c3ref/value_blob.html>.
public struct FunctionArguments: ~Copyable {
    /// The number of arguments.
    public let count: Int
    private let values: UnsafeMutablePointer<OpaquePointer?>?

    init(_ count: Int32, _ values: UnsafeMutablePointer<OpaquePointer?>?) {
        self.count = Int(count)
        self.values = values
    }

    private func argument(_ index: Int) -> FunctionArgument? {
        guard index >= 0, index < count, let value = values?[index] else { return nil }
        return FunctionArgument(UnsafeMutableRawPointer(value))
    }

    /// The value with its type. In text that is not valid UTF-8, U+FFFD replaces the invalid bytes; ``data(at:)``
    /// returns the original bytes.
    public subscript(index: Int) -> SQLValue {
        guard let argument = argument(index) else { return .null }
        return switch argument.type {
        case .null: .null
        case .integer: .integer(argument.int64)
        case .float: .real(argument.double)
        case .text: .text(argument.repairedText)
        case .blob: .blob(argument.data ?? Data())
        }
    }

    /// Copies of all values, which may be kept.
    public var all: [SQLValue] { (0..<count).map { self[$0] } }

    /// Returns the type of an argument; ``SqliteValueType/null`` if there is none at this place.
    public func type(at index: Int) -> SqliteValueType { argument(index)?.type ?? .null }

    /// The argument as an integer; 0 for NULL.
    public func integer(at index: Int) -> Int64 { argument(index)?.int64 ?? 0 }

    /// The argument as a floating-point number; 0 for NULL.
    public func real(at index: Int) -> Double { argument(index)?.double ?? 0 }

    /// The argument as text, including NUL characters; `nil` for NULL and for invalid UTF-8.
    public func text(at index: Int) -> String? { argument(index)?.text }

    /// A copy of the bytes of a blob or text; `nil` for NULL.
    public func data(at index: Int) -> Data? { argument(index)?.data }

    /// Calls `body` with SQLite's own bytes of a blob or text, without a copy. They are valid during the call, and
    /// empty for NULL.
    public func withBytes<T>(at index: Int, _ body: (UnsafeRawBufferPointer) throws -> T) rethrows -> T {
        try body(argument(index)?.bytes ?? UnsafeRawBufferPointer(start: nil, count: 0))
    }
}

/// An argument of a function. https://www.sqlite.org/c3ref/value_blob.html
struct FunctionArgument {
    private let value: OpaquePointer

    init(_ pointer: UnsafeMutableRawPointer) { value = OpaquePointer(pointer) }

    var type: SqliteValueType { SqliteValueType(rawValue: sqlite3_value_type(value)) ?? .null }
    var int32: Int32 { sqlite3_value_int(value) }
    var int64: Int64 { sqlite3_value_int64(value) }
    var double: Double { sqlite3_value_double(value) }

    /// SQLite's own bytes, of a text in UTF-8 whatever the store's encoding is. They are valid until the call ends or the
    /// value is converted again.
    var bytes: UnsafeRawBufferPointer {
        if type == .text { return UnsafeRawBufferPointer(textBytes ?? UnsafeBufferPointer(start: nil, count: 0)) }
        guard let start = sqlite3_value_blob(value) else { return UnsafeRawBufferPointer(start: nil, count: 0) }
        return UnsafeRawBufferPointer(start: start, count: Int(sqlite3_value_bytes(value)))
    }

    var data: Data? { type == .null ? nil : Data(bytes) }

    private var textBytes: UnsafeBufferPointer<UInt8>? {
        guard let start = sqlite3_value_text(value) else { return nil }
        return UnsafeBufferPointer(start: start, count: Int(sqlite3_value_bytes(value)))
    }

    var text: String? { textBytes.flatMap { String(validating: $0, as: UTF8.self) } }

    var repairedText: String { textBytes.map { String(decoding: $0, as: UTF8.self) } ?? "" }
}

/// Receives the result of a function. https://www.sqlite.org/c3ref/result_blob.html
struct FunctionContext {
    private let context: OpaquePointer

    init(_ pointer: UnsafeMutableRawPointer) { context = OpaquePointer(pointer) }
    init(_ context: OpaquePointer) { self.context = context }

    func set(_ value: SQLValue) {
        switch value {
        case .null: setNull()
        case .integer(let value): set(value)
        case .real(let value): set(value)
        case .text(let value): set(value)
        case .blob(let value): set(value)
        }
    }

    func setNull() { sqlite3_result_null(context) }
    func set(_ value: Int32) { sqlite3_result_int(context, value) }
    func set(_ value: Int64) { sqlite3_result_int64(context, value) }
    func set(_ value: Double) { sqlite3_result_double(context, value) }

    func set(_ data: Data) {
        data.withUnsafeBytes { sealeddb_result_blob(context, $0.baseAddress, UInt64($0.count)) }
    }

    func set(_ text: String) {
        var text = text
        text.withUTF8 { bytes in
            let start = bytes.baseAddress.map { UnsafeRawPointer($0).assumingMemoryBound(to: CChar.self) }
            sealeddb_result_text(context, start, UInt64(bytes.count))
        }
    }

    func fail(_ message: String) {
        MessageWords.noteMessage(message)
        sqlite3_result_error(context, message, -1)
    }
    func fail(code: Int32) { sqlite3_result_error_code(context, code) }
    func failNoMemory() { sqlite3_result_error_nomem(context) }
    func failTooBig() { sqlite3_result_error_toobig(context) }
}
