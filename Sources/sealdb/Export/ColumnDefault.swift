import SealedDB

/// A DEFAULT of a column, as PostgreSQL has it for the type that the column gets there.
enum ColumnDefault {
    /// - Parameter text: the default as it was declared.
    /// - Returns: `nil` if it cannot be taken.
    static func translated(_ text: String, as type: TargetType) -> String? {
        var parts = SQLPart.all(of: text)
        while parts.count > 2, parts[0].isSymbol("("), parts[parts.count - 1].isSymbol(")") {
            parts = Array(parts[1..<parts.count - 1])
        }
        var sign = ""
        if parts.count == 2, let first = parts.first, first.isSymbol("-") || first.isSymbol("+") {
            if first.isSymbol("-") { sign = "-" }
            parts.removeFirst()
        }
        guard parts.count == 1, let part = parts.first else { return nil }
        switch part.kind {
        case .number: return number(sign + part.text, as: type)
        case .string where sign.isEmpty: return string(part.unquotedString, as: type)
        case .blob where sign.isEmpty && type == .bytea:
            // X'0aff'
            return
                "'\\x\(part.text.withoutLast(bytes: 1).utf8.dropFirst(2).map { String(UnicodeScalar($0)) }.joined())'"
        case .word where sign.isEmpty: return word(part.text.foldedForSQL, as: type)
        default: return nil
        }
    }

    private static func number(_ text: String, as type: TargetType) -> String? {
        switch type {
        case .bigint: return Int64(text).map { String($0) }
        case .double, .numeric: return isPlain(text) ? text : nil
        case .boolean: return text == "1" ? "TRUE" : text == "0" ? "FALSE" : nil
        // SQLite makes a text of an integer by its digits.
        case .text: return Int64(text).map { TargetName.literal(String($0)) }
        case .bytea, .date, .timestamp, .timestampWithZone: return nil
        }
    }

    private static func isPlain(_ text: String) -> Bool {
        text.utf8.allSatisfy { (0x30...0x39).contains($0) || "+-.eE".utf8.contains($0) }
            && Double(text)?.isFinite == true
    }

    private static func string(_ text: String, as type: TargetType) -> String? {
        switch type {
        case .text: return text.utf8.contains(0) ? nil : TargetName.literal(text)
        case .bigint, .double, .numeric: return number(text, as: type)
        case .date, .timestamp, .timestampWithZone:
            var text = text
            let kind = text.withUTF8 { DateForm(UnsafeRawBufferPointer($0))?.kind }
            let fits =
                switch type {
                case .date: kind == .date
                case .timestamp: kind == .date || kind == .timestamp
                default: kind == .timestampWithZone
                }
            return fits ? TargetName.literal(text) : nil
        case .boolean, .bytea: return nil
        }
    }

    private static func word(_ word: String, as type: TargetType) -> String? {
        // SQLite's clock is UTC's, in seconds.
        let now = "date_trunc('second', CURRENT_TIMESTAMP AT TIME ZONE 'UTC')"
        switch (word, type) {
        case ("null", _): return "NULL"
        case ("true", .boolean): return "TRUE"
        case ("false", .boolean): return "FALSE"
        case ("true", .bigint): return "1"
        case ("false", .bigint): return "0"
        case ("current_timestamp", .timestamp): return now
        case ("current_timestamp", .timestampWithZone): return "date_trunc('second', CURRENT_TIMESTAMP)"
        case ("current_timestamp", .text): return "to_char(\(now), 'YYYY-MM-DD HH24:MI:SS')"
        case ("current_date", .date): return "CAST(\(now) AS date)"
        case ("current_date", .text): return "to_char(\(now), 'YYYY-MM-DD')"
        case ("current_time", .text): return "to_char(\(now), 'HH24:MI:SS')"
        default: return nil
        }
    }
}
