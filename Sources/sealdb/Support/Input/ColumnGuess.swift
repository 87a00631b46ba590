/// The types that columns have, or get in an import.
enum ColumnType: String {
    case integer = "INTEGER"
    case real = "REAL"
    case numeric = "NUMERIC"
    case text = "TEXT"
    case blob = "BLOB"
    /// No type: each value stays what it is.
    case any = ""

    /// The type for the word of an option.
    init?(word: String) {
        let word = word.uppercased()
        guard !word.isEmpty else { return nil }
        self.init(rawValue: word == "ANY" ? "" : word)
    }

    /// Whether SQLite leaves each value as it is.
    var keepsValues: Bool { self == .blob || self == .any }
}

/// Guesses the type of a column from its values. A column gets a numeric type only if that loses nothing of any value:
/// article numbers such as "007" and versions such as "1.10" stay text.
struct ColumnGuess {
    private var hasInteger = false
    private var hasReal = false
    private var hasText = false
    private var hasBlob = false
    /// Whether there is an integer beyond 2^53. A double cannot hold every such integer.
    private var hasLongInteger = false
    /// Whether there is a number in quotes.
    private var hasQuotedNumber = false
    /// Whether a text spells a number that would not stay as it is written; and whether another text does not spell one.
    private(set) var hasLossyNumber = false
    private var hasOtherText = false
    /// Whether the values have types of their own, as in JSON.
    private var isTyped = false

    /// Takes one value into account. NULL and, in CSV and TSV, an empty field belong in every column.
    mutating func observe(_ field: UnsafeRawBufferPointer, _ kind: ImportedRecord.Kind) {
        switch kind {
        case .null: return
        case .integer:
            isTyped = true
            hasInteger = true
        case .real:
            isTyped = true
            hasReal = true
        case .blob:
            isTyped = true
            hasBlob = true
        case .text:
            isTyped = true
            hasText = true
        case .plain, .quoted: observeWritten(field, isQuoted: kind == .quoted)
        }
    }

    private mutating func observeWritten(_ field: UnsafeRawBufferPointer, isQuoted: Bool) {
        guard !hasOtherText, !field.isEmpty else { return }
        switch ImportedField(field) {
        case .integer(let value):
            hasInteger = true
            if value.magnitude > 1 << 53 { hasLongInteger = true }
            if isQuoted { hasQuotedNumber = true }
        case .real(let value) where !(isQuoted && value.isInfinite):
            hasReal = true
            if isQuoted { hasQuotedNumber = true }
        case .blob where !isQuoted: hasBlob = true
        case .real, .blob, .text:
            hasText = true
            if NumberForm.spellsNumber(field) { hasLossyNumber = true } else { hasOtherText = true }
        }
    }

    /// - Parameter quotesMean: whether a number in quotes is a text, because the file has other numbers without.
    func type(quotesMean: Bool) -> ColumnType {
        let kinds = [hasInteger, hasReal, hasText, hasBlob].count { $0 }
        if isTyped {
            if kinds > 1 { return .any }
            return hasInteger ? .integer : hasReal ? .real : hasBlob ? .blob : .text
        }
        if hasBlob { return kinds == 1 ? .blob : .text }
        if hasText || quotesMean && hasQuotedNumber { return .text }
        if hasReal { return hasLongInteger ? .text : .real }
        return hasInteger ? .integer : .text
    }

    /// Whether the column holds nothing but numbers, of which some would not stay as they are written.
    var isOfLossyNumbers: Bool {
        !isTyped && !hasOtherText && !hasBlob && (hasLossyNumber || hasReal && hasLongInteger)
    }
}
