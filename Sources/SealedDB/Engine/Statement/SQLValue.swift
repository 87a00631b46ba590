public import Foundation

/// A value of SQLite, which functions take as arguments and return as results. https://www.sqlite.org/datatype3.html
public enum SQLValue: Sendable, Hashable {
    /// NULL.
    case null
    /// An integer.
    case integer(Int64)
    /// A floating-point number. SQLite stores NaN as NULL.
    case real(Double)
    /// Text.
    case text(String)
    /// Bytes.
    case blob(Data)

    /// Creates an `integer`: 1 for true, 0 for false.
    public init(_ value: Bool) { self = .integer(value ? 1 : 0) }

    /// Creates an `integer`. An unsigned number beyond `Int64.max` keeps its bits and becomes negative.
    public init(_ value: some FixedWidthInteger) { self = .integer(Int64(truncatingIfNeeded: value)) }

    /// Creates a `real`.
    public init(_ value: Double) { self = .real(value) }

    /// Creates a `text`, or NULL for `nil`.
    public init(_ value: String?) { self = value.map { .text($0) } ?? .null }

    /// Creates a `blob`, or NULL for `nil`.
    public init(_ value: Data?) { self = value.map { .blob($0) } ?? .null }
}

extension SQLValue: ExpressibleByNilLiteral, ExpressibleByIntegerLiteral, ExpressibleByFloatLiteral,
    ExpressibleByStringLiteral, ExpressibleByStringInterpolation, ExpressibleByBooleanLiteral
{
    /// NULL.
    public init(nilLiteral: ()) { self = .null }
    /// An integer.
    public init(integerLiteral value: Int64) { self = .integer(value) }
    /// A number.
    public init(floatLiteral value: Double) { self = .real(value) }
    /// Text.
    public init(stringLiteral value: String) { self = .text(value) }
    /// 1 or 0, as SQLite has it.
    public init(booleanLiteral value: Bool) { self = .integer(value ? 1 : 0) }
}
