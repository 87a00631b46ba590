/// The types that an import gives to columns: INTEGER, REAL and TEXT. NUMERIC occurs only in tables that exist already.
enum ColumnType: String {
    case integer = "INTEGER"
    case real = "REAL"
    case numeric = "NUMERIC"
    case text = "TEXT"
}

/// Guesses the type of a column from its values. A column gets a numeric type only if that loses nothing of any value:
/// article numbers such as "007" and versions such as "1.10" stay text.
struct ColumnGuess {
    private var hasInteger = false
    private var hasReal = false
    private var hasText = false
    /// Whether there is an integer beyond 2^53. A double cannot hold every such integer.
    private var hasLongInteger = false

    /// Takes one value into account. Empty fields are ignored, because they become NULL in numeric columns.
    mutating func observe(_ field: ArraySlice<UInt8>) {
        guard !hasText, !field.isEmpty else { return }
        switch NumberForm(field) {
        case .integer(let value):
            hasInteger = true
            if value.magnitude > 1 << 53 { hasLongInteger = true }
        case .real: hasReal = true
        case .text: hasText = true
        }
    }

    var type: ColumnType {
        if hasText { return .text }
        if hasReal { return hasLongInteger ? .text : .real }
        return hasInteger ? .integer : .text
    }
}
