public import Foundation

/// A value as SQLite knows it, with which functions take their arguments and give their results.
/// https://www.sqlite.org/datatype3.html
public enum SQLValue: Sendable, Hashable {
    case null
    case integer(Int64)
    /// NaN becomes NULL in SQLite.
    case real(Double)
    case text(String)
    case blob(Data)

    /// `integer` with 1 or 0.
    public init(_ value: Bool) { self = .integer(value ? 1 : 0) }

    /// `integer`; an unsigned number beyond `Int64.max` keeps its bits.
    public init(_ value: some FixedWidthInteger) { self = .integer(Int64(truncatingIfNeeded: value)) }

    /// `real`.
    public init(_ value: Double) { self = .real(value) }

    /// `text`; NULL for `nil`.
    public init(_ value: String?) { self = value.map { .text($0) } ?? .null }

    /// `blob`; NULL for `nil`.
    public init(_ value: Data?) { self = value.map { .blob($0) } ?? .null }
}

extension SQLValue: ExpressibleByNilLiteral, ExpressibleByIntegerLiteral, ExpressibleByFloatLiteral,
    ExpressibleByStringLiteral, ExpressibleByStringInterpolation, ExpressibleByBooleanLiteral
{
    public init(nilLiteral: ()) { self = .null }
    public init(integerLiteral value: Int64) { self = .integer(value) }
    public init(floatLiteral value: Double) { self = .real(value) }
    public init(stringLiteral value: String) { self = .text(value) }
    public init(booleanLiteral value: Bool) { self = .integer(value ? 1 : 0) }
}
