import SealedDB

/// A type of PostgreSQL, as far as an export uses it.
enum TargetType: Equatable {
    case bigint, double, boolean, text, bytea, date, timestamp, timestampWithZone
    case numeric(NumericLimits?)

    /// As PostgreSQL's own `format_type` writes it.
    var name: String {
        switch self {
        case .bigint: "bigint"
        case .double: "double precision"
        case .boolean: "boolean"
        case .text: "text"
        case .bytea: "bytea"
        case .date: "date"
        case .timestamp: "timestamp without time zone"
        case .timestampWithZone: "timestamp with time zone"
        case .numeric(nil): "numeric"
        case .numeric(let limits?): "numeric(\(limits.precision),\(limits.scale))"
        }
    }
}

/// How many digits a NUMERIC has in all, and behind the point.
struct NumericLimits: Equatable {
    let precision: Int
    let scale: Int

    /// - Returns: `nil` for what PostgreSQL does not take.
    init?(precision: Int, scale: Int) {
        guard (1...1000).contains(precision), (0...precision).contains(scale) else { return nil }
        (self.precision, self.scale) = (precision, scale)
    }
}

/// What a column is declared to hold, by SQLite's rules of affinity and by the names that people use.
/// https://www.sqlite.org/datatype3.html#determination_of_column_affinity
enum DeclaredType: Equatable {
    case integer, real, text, blob, boolean
    case numeric(NumericLimits?)
    case date, dateTime
    /// Nothing, ANY, or a name that says nothing: then what is stored tells.
    case any

    init(_ declaration: String) {
        let text = declaration.foldedForSQL
        let name = text.parts(between: "(")[0].split(separator: " ").joined(separator: " ")
        switch name {
        case "", "any": self = .any
        case "bool", "boolean": self = .boolean
        case "date": self = .date
        case "datetime", "timestamp", "timestamptz", "timestamp with time zone", "timestamp without time zone":
            self = .dateTime
        case _ where text.hasBytes(of: "int"): self = .integer
        case _ where ["char", "clob", "text"].contains { text.hasBytes(of: $0) }: self = .text
        case _ where text.hasBytes(of: "blob"): self = .blob
        case _ where ["real", "floa", "doub"].contains { text.hasBytes(of: $0) }: self = .real
        case "numeric", "decimal", "dec", "number": self = .numeric(DeclaredType.limits(in: text))
        default: self = .any
        }
    }

    /// What stands in the parentheses: `DECIMAL(10, 2)`.
    private static func limits(in text: String) -> NumericLimits? {
        let parts = text.parts(between: "(")
        guard parts.count == 2, parts[1].ends(with: ")") else { return nil }
        let numbers = parts[1].withoutLast(bytes: 1).parts(between: ",").map { part in
            Int(part.split(separator: " ").joined())
        }
        switch numbers.count {
        case 1: return numbers[0].flatMap { NumericLimits(precision: $0, scale: 0) }
        case 2:
            guard let precision = numbers[0], let scale = numbers[1] else { return nil }
            return NumericLimits(precision: precision, scale: scale)
        default: return nil
        }
    }
}
