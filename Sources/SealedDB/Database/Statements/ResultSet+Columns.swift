public import Foundation

/// The readers. If there is no row or no such column, numbers are 0, `Bool` is false, and everything else is `nil`.
/// SQLite converts types: <https://www.sqlite.org/c3ref/column_blob.html>.
extension ResultSet {
    /// The number of columns; 0 once the result set is closed.
    public var columnCount: Int32 { prepared.columnCount }

    /// Returns the index of a column by its name, first in the exact spelling, then without regard to case. If several
    /// columns have the same name, the last one is used. Returns -1 if there is none.
    public func columnIndex(forName columnName: String) -> Int32 {
        prepared.columnIndex(of: columnName)
    }

    /// Returns the name of a column in the statement's result; `nil` if there is no such index.
    public func columnName(for columnIdx: Int32) -> String? { prepared.columnName(at: columnIdx) }

    /// The lower-case column names, as in FMDB, with their indexes. Of columns with the same name, the last one is
    /// used.
    public var columnNameToIndexMap: [String: Int32] {
        var map: [String: Int32] = [:]
        for index in 0..<columnCount { map[prepared.columnName(at: index)?.lowercased() ?? ""] = index }
        return map
    }

    /// Returns the low 32 bits of the integer.
    public func int(forColumnIndex columnIdx: Int32) -> Int32 {
        Int32(truncatingIfNeeded: prepared.int64(at: columnIdx))
    }
    /// As ``int(forColumnIndex:)``, by name, of any case.
    public func int(forColumn columnName: String) -> Int32 { int(forColumnIndex: columnIndex(forName: columnName)) }

    /// Returns the integer; 0 for NULL, and if there is no value.
    public func long(forColumnIndex columnIdx: Int32) -> Int {
        Int(truncatingIfNeeded: prepared.int64(at: columnIdx))
    }
    /// As ``long(forColumnIndex:)``, by name, of any case.
    public func long(forColumn columnName: String) -> Int { long(forColumnIndex: columnIndex(forName: columnName)) }

    /// Returns the integer; 0 for NULL, and if there is no value.
    public func longLongInt(forColumnIndex columnIdx: Int32) -> Int64 { prepared.int64(at: columnIdx) }
    /// As ``longLongInt(forColumnIndex:)``, by name, of any case.
    public func longLongInt(forColumn columnName: String) -> Int64 {
        longLongInt(forColumnIndex: columnIndex(forName: columnName))
    }

    /// Returns the bits of the `Int64`, so that every `UInt64` is read as it was bound.
    public func unsignedLongLongInt(forColumnIndex columnIdx: Int32) -> UInt64 {
        UInt64(bitPattern: prepared.int64(at: columnIdx))
    }
    /// As ``unsignedLongLongInt(forColumnIndex:)``, by name, of any case.
    public func unsignedLongLongInt(forColumn columnName: String) -> UInt64 {
        unsignedLongLongInt(forColumnIndex: columnIndex(forName: columnName))
    }

    /// Returns true for an integer other than 0.
    public func bool(forColumnIndex columnIdx: Int32) -> Bool { prepared.int64(at: columnIdx) != 0 }
    /// As ``bool(forColumnIndex:)``, by name, of any case.
    public func bool(forColumn columnName: String) -> Bool { bool(forColumnIndex: columnIndex(forName: columnName)) }

    /// Returns the number; 0 for NULL, and if there is no value.
    public func double(forColumnIndex columnIdx: Int32) -> Double { prepared.double(at: columnIdx) }
    /// As ``double(forColumnIndex:)``, by name, of any case.
    public func double(forColumn columnName: String) -> Double {
        double(forColumnIndex: columnIndex(forName: columnName))
    }

    /// Returns text, including NUL characters; `nil` for NULL and for invalid UTF-8.
    public func string(forColumnIndex columnIdx: Int32) -> String? { prepared.text(at: columnIdx) }
    /// As ``string(forColumnIndex:)``, by name, of any case.
    public func string(forColumn columnName: String) -> String? {
        string(forColumnIndex: columnIndex(forName: columnName))
    }

    /// Returns a date from seconds since 1970, or from text if the database has a date format.
    public func date(forColumnIndex columnIdx: Int32) -> Date? {
        guard prepared.type(at: columnIdx) != .null else { return nil }
        guard let format = parentDB?.dateFormat else {
            return Date(timeIntervalSince1970: prepared.double(at: columnIdx))
        }
        return prepared.text(at: columnIdx).flatMap { format.date(from: $0) }
    }
    /// As ``date(forColumnIndex:)``, by name, of any case.
    public func date(forColumn columnName: String) -> Date? { date(forColumnIndex: columnIndex(forName: columnName)) }

    /// Returns a copy of the bytes; `nil` for NULL, and empty data for an empty blob.
    public func data(forColumnIndex columnIdx: Int32) -> Data? { prepared.data(at: columnIdx) }
    /// As ``data(forColumnIndex:)``, by name, of any case.
    public func data(forColumn columnName: String) -> Data? { data(forColumnIndex: columnIndex(forName: columnName)) }

    /// Returns NUL-terminated UTF-8 in SQLite's memory. It is valid until the next step or the next read of this
    /// column.
    public func utf8String(forColumnIndex columnIdx: Int32) -> UnsafePointer<UInt8>? {
        prepared.textPointer(at: columnIdx)
    }
    /// As ``utf8String(forColumnIndex:)``, by name, of any case.
    public func utf8String(forColumn columnName: String) -> UnsafePointer<UInt8>? {
        utf8String(forColumnIndex: columnIndex(forName: columnName))
    }

    /// Returns an `NSNumber`, `String`, `Data`, or `NSNull` for NULL; `nil` if there is no row or no such column.
    public func object(forColumnIndex columnIdx: Int32) -> Any? { prepared.object(at: columnIdx) }
    /// As ``object(forColumnIndex:)``, by name, of any case.
    public func object(forColumn columnName: String) -> Any? {
        object(forColumnIndex: columnIndex(forName: columnName))
    }

    /// The same as ``object(forColumn:)``.
    public subscript(columnName: String) -> Any? { object(forColumn: columnName) }
    /// The same as ``object(forColumnIndex:)``.
    public subscript(columnIdx: Int32) -> Any? { object(forColumnIndex: columnIdx) }

    /// Returns the type of the value in this row; ``SqliteValueType/null`` if there is none.
    public func type(forColumnIndex columnIdx: Int32) -> SqliteValueType { prepared.type(at: columnIdx) }
    /// As ``type(forColumnIndex:)``, by name, of any case.
    public func type(forColumn columnName: String) -> SqliteValueType {
        type(forColumnIndex: columnIndex(forName: columnName))
    }

    /// Returns true for NULL, and if there is no value.
    public func columnIndexIsNull(_ columnIdx: Int32) -> Bool { prepared.type(at: columnIdx) == .null }
    /// As ``columnIndexIsNull(_:)``, by name, of any case.
    public func columnIsNull(_ columnName: String) -> Bool { columnIndexIsNull(columnIndex(forName: columnName)) }

    /// The row as a dictionary, with names as they are spelled, and values as in ``object(forColumn:)``; `nil` if there
    /// is no row. Of columns with the same name, the last one is used.
    public var resultDictionary: [AnyHashable: Any]? {
        guard prepared.hasRow else { return nil }
        return prepared.objectsByName?.row { prepared.object(at: $0) ?? NSNull() }
    }

    /// Like ``resultDictionary``, with lower-case names.
    @available(*, deprecated, renamed: "resultDictionary")
    public func resultDict() -> [AnyHashable: Any]? {
        guard prepared.hasRow else { return nil }
        var result: [AnyHashable: Any] = [:]
        for column in 0..<columnCount {
            result[prepared.columnName(at: column)?.lowercased() ?? ""] = prepared.object(at: column)
        }
        return result
    }
}
