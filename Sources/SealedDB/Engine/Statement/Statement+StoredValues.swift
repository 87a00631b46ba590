import Foundation
internal import SQLiteEngine

/// Readers without conversion, for ``Column``. They make as few SQLite calls as possible. If there is no row, SQLite
/// returns NULL for all of them.
extension Statement {
    func storedType(at index: Int32) -> SqliteValueType {
        guard let pointer else { return .null }
        return SqliteValueType(rawValue: sqlite3_column_type(pointer, index)) ?? .null
    }

    /// Returns an INTEGER; `nil` for any other type.
    @inline(__always)
    func storedInteger(at index: Int32) -> Int64? {
        guard let pointer else { return nil }
        let value = sqlite3_column_value(pointer, index)
        guard sqlite3_value_type(value) == SqliteValueType.integer.rawValue else { return nil }
        return sqlite3_value_int64(value)
    }

    /// Returns a REAL or an INTEGER; `nil` for any other type.
    @inline(__always)
    func storedNumber(at index: Int32) -> Double? {
        guard let pointer else { return nil }
        let value = sqlite3_column_value(pointer, index)
        let type = sqlite3_value_type(value)
        guard type == SqliteValueType.float.rawValue || type == SqliteValueType.integer.rawValue else { return nil }
        return sqlite3_value_double(value)
    }

    /// Returns a TEXT of valid UTF-8; `nil` for anything else.
    @inline(__always)
    func storedText(at index: Int32) -> String? {
        guard let pointer else { return nil }
        let value = sqlite3_column_value(pointer, index)
        guard sqlite3_value_type(value) == SqliteValueType.text.rawValue else { return nil }
        return text(of: value, at: index, in: pointer)
    }

    /// Returns a value of any type as text; `nil` for NULL and for invalid UTF-8.
    @inline(__always)
    func text(at index: Int32, in pointer: OpaquePointer) -> String? {
        text(of: sqlite3_column_value(pointer, index), at: index, in: pointer)
    }

    @inline(__always)
    private func text(of value: OpaquePointer?, at index: Int32, in pointer: OpaquePointer) -> String? {
        // Both ways may convert the value, in memory of the connection.
        if isAlone {
            guard let start = sqlite3_value_text(value) else { return nil }
            return String(validUTF8: UnsafeBufferPointer(start: start, count: Int(sqlite3_value_bytes(value))))
        }
        guard let start = sqlite3_column_text(pointer, index) else { return nil }
        return String(validUTF8: UnsafeBufferPointer(start: start, count: Int(sqlite3_column_bytes(pointer, index))))
    }

    /// Returns a value of any type where SQLite holds it. The bytes are valid until the next step, reset or conversion.
    func heldValue(at index: Int32) -> HeldValue {
        guard hasColumn(index), let pointer else { return .null }
        let value = sqlite3_column_value(pointer, index)
        switch sqlite3_value_type(value) {
        case SqliteValueType.integer.rawValue: return .integer(sqlite3_value_int64(value))
        case SqliteValueType.float.rawValue: return .real(sqlite3_value_double(value))
        case SqliteValueType.text.rawValue:
            // Both ways may convert the value, in memory of the connection.
            let start = isAlone ? sqlite3_value_text(value) : sqlite3_column_text(pointer, index)
            return .text(UnsafeRawBufferPointer(start: start, count: Int(sqlite3_value_bytes(value))))
        case SqliteValueType.blob.rawValue:
            // The pointer of an empty blob is null.
            let start = isAlone ? sqlite3_value_blob(value) : sqlite3_column_blob(pointer, index)
            let count = start == nil ? 0 : Int(sqlite3_value_bytes(value))
            return .blob(UnsafeRawBufferPointer(start: start, count: count))
        default: return .null
        }
    }

    /// Returns a BLOB; `nil` for any other type.
    @inline(__always)
    func storedData(at index: Int32) -> Data? {
        guard let pointer else { return nil }
        let value = sqlite3_column_value(pointer, index)
        guard sqlite3_value_type(value) == SqliteValueType.blob.rawValue else { return nil }
        let start = isAlone ? sqlite3_value_blob(value) : sqlite3_column_blob(pointer, index)
        guard let start else { return Data() }
        return Data(bytes: start, count: Int(sqlite3_value_bytes(value)))
    }
}

extension String {
    /// Returns `nil` for invalid UTF-8. The standard library's `String(validating:as:)` is many times slower.
    @inline(__always)
    init?(validUTF8 bytes: UnsafeBufferPointer<UInt8>) {
        #if compiler(>=6.2)
            // If the validation throws, the bytes are not UTF-8, and so not a text.
            guard let text = try? UTF8Span(validating: bytes.span) else { return nil }
            self.init(copying: text)
        #else
            self.init(decoding: bytes, as: UTF8.self)
            // If invalid bytes were replaced, the text differs from them.
            let isSame = utf8.withContiguousStorageIfAvailable { own in
                own.count == bytes.count
                    && (own.isEmpty || memcmp(own.baseAddress!, bytes.baseAddress!, own.count) == 0)
            }
            guard isSame == true else { return nil }
        #endif
    }
}
