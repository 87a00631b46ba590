import Foundation

/// A type that can be read from a column.
///
/// No value is guessed at, and none is cut off. A conversion happens only where the table names it:
///
/// | type | read from |
/// |---|---|
/// | integers | INTEGER that fits; `UInt64` and `UInt` take the bits of the `Int64`, so that every value comes back |
/// | `Double`, `Float` | REAL, or INTEGER rounded to the nearest; a finite value must stay finite |
/// | `Bool` | INTEGER; all but 0 is true, as in SQLite |
/// | `String`, `Substring` | TEXT of valid UTF-8 |
/// | `Data`, `[UInt8]` | BLOB |
/// | `Date` | REAL or INTEGER as seconds since 1970; if the database has a date format, TEXT in it and nothing else |
/// | `UUID` | TEXT in its usual form, or BLOB of 16 bytes |
/// | `URL` | TEXT that is a valid URL as it stands |
/// | `Decimal` | TEXT of a number that it holds exactly, INTEGER, or REAL as the shortest number that denotes it |
/// | ``JSON`` | TEXT, or BLOB of JSON text |
/// | ``SQLValue`` | everything |
/// | optionals | NULL as `nil`, else as their type |
/// | enums with raw value | the raw value, which must be that of a case |
///
/// Everything else, NULL too, is an error with ``DatabaseError/Reason/typeMismatch`` that names row, column, the type
/// found and the type expected, never the value. SQLite's own conversions are those of the FMDB readers, such as
/// ``ResultSet/string(forColumn:)``.
///
/// ```swift
/// struct Celsius: ColumnReadable {
///     var degrees: Double
///     init(column: borrowing Column) throws(DatabaseError) { degrees = try Double(column: column) }
/// }
/// ```
public protocol ColumnReadable {
    /// Reads the value of the column in the current row.
    init(column: borrowing Column) throws(DatabaseError)
}

/// One column of the current row, for as long as a value is being read from it. It cannot be kept.
/// https://www.sqlite.org/c3ref/column_blob.html
public struct Column: ~Copyable {
    // Kept alive by the caller of `init(column:)`, which the column cannot outlive.
    private let reference: Unmanaged<Statement>
    @usableFromInline var position: Int32

    @inline(__always)
    init(statement: Statement, index: Int32) {
        reference = .passUnretained(statement)
        position = index
    }

    var statement: Statement { reference._withUnsafeGuaranteedRef { $0 } }

    /// Index of the column, from 0.
    public var index: Int32 { position }

    /// Name of the column as the statement gives it.
    public var name: String { statement.columnName(at: index) ?? "" }

    /// Type of the value in this row.
    public var type: SqliteValueType { reference._withUnsafeGuaranteedRef { $0.storedType(at: position) } }

    /// Whether the value in this row is NULL.
    public var isNull: Bool { type == .null }

    /// `nil` unless the value is an INTEGER.
    @usableFromInline
    func integer() -> Int64? { reference._withUnsafeGuaranteedRef { $0.storedInteger(at: position) } }

    /// `nil` unless the value is a REAL or an INTEGER.
    @usableFromInline
    func number() -> Double? { reference._withUnsafeGuaranteedRef { $0.storedNumber(at: position) } }

    /// `nil` unless the value is a TEXT of valid UTF-8.
    @usableFromInline
    func text() -> String? { reference._withUnsafeGuaranteedRef { $0.storedText(at: position) } }

    /// `nil` unless the value is a BLOB.
    func data() -> Data? { reference._withUnsafeGuaranteedRef { $0.storedData(at: position) } }

    /// Calls `body` with the bytes of a BLOB or TEXT, without copying them; they are valid only meanwhile, and there are
    /// none for NULL.
    public func withUnsafeBytes<T, E: Error>(
        _ body: (UnsafeRawBufferPointer) throws(E) -> T
    ) throws(E) -> T {
        if let result = try statement.withBytes(at: index, body) { return result }
        return try body(UnsafeRawBufferPointer(start: nil, count: 0))
    }

    /// An error that says what was found where a value of `type` was expected, to be thrown from
    /// ``ColumnReadable/init(column:)``.
    /// - Parameter detail: what is wrong with a value of the right SQLite type, such as `"that is out of range"`; never
    ///   the value itself.
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
    /// NULL as `nil`.
    @inlinable
    public init(column: borrowing Column) throws(DatabaseError) {
        self = column.isNull ? nil : try Wrapped(column: column)
    }
}

extension RawRepresentable where Self: ColumnReadable, RawValue: ColumnReadable {
    /// Reads the raw value.
    @inlinable
    public init(column: borrowing Column) throws(DatabaseError) {
        guard let value = Self(rawValue: try RawValue(column: column)) else {
            throw column.mismatch(Self.self, "that is none of its raw values")
        }
        self = value
    }
}
