import Foundation

/// A type that can be read from a column.
///
/// Values are never guessed or truncated. They are only converted as this table says:
///
/// | type | read from |
/// |---|---|
/// | integers | INTEGER that fits; `UInt64` and `UInt` take the bits of the `Int64`, so every value can be read back |
/// | `Double`, `Float` | REAL, or INTEGER rounded to the nearest; a finite value must stay finite |
/// | `Bool` | INTEGER; every value except 0 is true, as in SQLite |
/// | `String`, `Substring` | TEXT of valid UTF-8 |
/// | `Data`, `[UInt8]` | BLOB |
/// | `Date` | REAL, INTEGER or their TEXT as seconds since 1970, TEXT as SQLite writes dates; if the database has a date format, only TEXT in that format |
/// | `UUID` | TEXT in its usual form, or BLOB of 16 bytes |
/// | `URL` | TEXT that is a valid URL as it stands |
/// | `Decimal` | TEXT of an exactly representable number, INTEGER, or REAL as the shortest number that denotes it |
/// | ``JSON`` | TEXT, or BLOB of JSON text |
/// | ``SQLValue`` | any value |
/// | optionals | NULL as `nil`, any other value as the wrapped type |
/// | enums with raw value | the raw value, which must be that of a case |
///
/// Anything else, including NULL, is an error with ``DatabaseError/Reason/typeMismatch``. The error names the row, the
/// column, the type found and the type expected, but never the value. The FMDB readers, such as
/// ``ResultSet/string(forColumn:)``, use SQLite's own conversions instead.
///
/// ```swift
/// struct Celsius: ColumnReadable {
///     var degrees: Double
///     init(column: borrowing Column) throws(DatabaseError) { degrees = try Double(column: column) }
/// }
/// ```
public protocol ColumnReadable {
    /// Reads the value of the column in the current row.
    /// - Throws: ``DatabaseError/Reason/typeMismatch``, made by ``Column/mismatch(_:_:)``, if the column holds
    ///   something else.
    init(column: borrowing Column) throws(DatabaseError)
}

/// One column of the current row, while a value is being read from it. It cannot be kept.
/// https://www.sqlite.org/c3ref/column_blob.html
public struct Column: ~Copyable {
    // Not retained: the caller of `init(column:)` keeps the statement alive, and the column cannot outlive that call.
    private let reference: Unmanaged<Statement>
    @usableFromInline var position: Int32

    @inline(__always)
    init(statement: Statement, index: Int32) {
        reference = .passUnretained(statement)
        position = index
    }

    var statement: Statement { reference._withUnsafeGuaranteedRef { $0 } }

    /// The index of the column, from 0.
    public var index: Int32 { position }

    /// The name of the column in the statement's result.
    public var name: String { statement.columnName(at: index) ?? "" }

    /// The type of the value in this row.
    public var type: SqliteValueType { reference._withUnsafeGuaranteedRef { $0.storedType(at: position) } }

    /// Whether the value in this row is NULL.
    public var isNull: Bool { type == .null }

    /// Returns an INTEGER; `nil` for any other type.
    @usableFromInline
    func integer() -> Int64? { reference._withUnsafeGuaranteedRef { $0.storedInteger(at: position) } }

    /// Returns a REAL or an INTEGER; `nil` for any other type.
    @usableFromInline
    func number() -> Double? { reference._withUnsafeGuaranteedRef { $0.storedNumber(at: position) } }

    /// Returns a TEXT of valid UTF-8; `nil` for anything else.
    @usableFromInline
    func text() -> String? { reference._withUnsafeGuaranteedRef { $0.storedText(at: position) } }

    /// Returns a BLOB; `nil` for any other type.
    func data() -> Data? { reference._withUnsafeGuaranteedRef { $0.storedData(at: position) } }

    /// Calls `body` with the bytes of a BLOB or TEXT, without copying them. They are valid only during the call, and
    /// empty for NULL.
    /// - Throws: what `body` throws.
    public func withUnsafeBytes<T, E: Error>(
        _ body: (UnsafeRawBufferPointer) throws(E) -> T
    ) throws(E) -> T {
        if let result = try statement.withBytes(at: index, body) { return result }
        return try body(UnsafeRawBufferPointer(start: nil, count: 0))
    }

    /// Returns an error that says what was found where a value of `type` was expected. Throw it from
    /// ``ColumnReadable/init(column:)``.
    /// - Parameters:
    ///   - type: what the value should have been.
    ///   - detail: what is wrong with a value of the right SQLite type, such as `"that is out of range"`. It must not
    ///     contain the value itself.
    @inline(never)
    public func mismatch(_ type: Any.Type, _ detail: String = "") -> DatabaseError {
        let found =
            switch self.type {
            case .integer: "INTEGER"
            case .float: "REAL"
            case .text: "TEXT"
            case .blob: "BLOB"
            case .null: "NULL"
            }
        let advice = isNull ? ". Read it as an optional" : detail.isEmpty ? "" : " " + detail
        return DatabaseError(
            extendedCode: SQLITE_MISMATCH,
            reason: .typeMismatch,
            message: """
                Row \(statement.rowNumber), column "\(name)" (index \(index)): expected \(type), found \(found)\(advice).
                """,
            sql: statement.sql
        )
    }
}

extension Optional: ColumnReadable where Wrapped: ColumnReadable {
    /// Reads NULL as `nil`.
    @inlinable
    public init(column: borrowing Column) throws(DatabaseError) {
        self = column.isNull ? nil : try Wrapped(column: column)
    }
}

extension RawRepresentable where Self: ColumnReadable, RawValue: ColumnReadable {
    /// Reads the raw value.
    /// - Throws: ``DatabaseError/Reason/typeMismatch`` if the column holds no raw value, or one that no case has.
    @inlinable
    public init(column: borrowing Column) throws(DatabaseError) {
        guard let value = Self(rawValue: try RawValue(column: column)) else {
            throw column.mismatch(Self.self, "that is none of its raw values")
        }
        self = value
    }
}
