/// The declared types that an import gives to columns, and one more that it finds.
enum ColumnType: String {
    case integer = "INTEGER"
    case real = "REAL"
    case numeric = "NUMERIC"
    case text = "TEXT"
}

/// Collects what a column's values have in common. A column becomes a number column only if no value loses anything
/// by it: article numbers such as "007" and versions such as "1.10" stay text.
struct ColumnGuess {
    private var hasInteger = false
    private var hasReal = false
    private var hasText = false
    /// Beyond 2^53 a double cannot hold every integer.
    private var hasLongInteger = false

    /// Empty fields become NULL in number columns, so they say nothing.
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
