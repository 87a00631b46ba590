import SealedDB

/// A condition that means the same in PostgreSQL: columns and literals that are compared, in lists or between two others, AND,
/// OR, NOT, IS NULL, and the length of texts. Everything else is not taken: SQLite's conversions, functions and truth of
/// numbers are others, and a condition that looks the same would refuse other rows.
struct PortableExpression {
    struct Column {
        let name: String
        let type: TargetType
        /// Whether texts are compared byte by byte.
        let isBinary: Bool
    }

    private enum Form: Equatable {
        case number, text, truth
        /// 0 or 1, which may stand for a truth.
        case truthNumber
        case condition
    }

    private struct NotPortable: Error {}

    private let parts: [SQLPart]
    private let columns: [ExactText: Column]
    private var index = 0
    private var depth = 0

    /// - Returns: the condition as PostgreSQL has it; `nil` if it cannot be taken.
    static func condition(_ parts: [SQLPart], columns: [ExactText: Column]) -> String? {
        var reader = PortableExpression(parts: parts, columns: columns)
        // That it cannot be taken is the answer.
        guard let text = try? reader.either(), reader.index == parts.count else { return nil }
        return text
    }

    private init(parts: [SQLPart], columns: [ExactText: Column]) {
        (self.parts, self.columns) = (parts, columns)
    }

    private var next: SQLPart? { index < parts.count ? parts[index] : nil }

    private mutating func skip(_ words: String...) -> Bool {
        guard index + words.count <= parts.count,
            zip(parts[index...], words).allSatisfy({ $0.isWord($1) || $0.isSymbol($1) })
        else { return false }
        index += words.count
        return true
    }

    /// Deeper ones are of no use to anybody.
    private static let mostDepth = 50

    private mutating func either() throws -> String {
        depth += 1
        defer { depth -= 1 }
        guard depth < PortableExpression.mostDepth else { throw NotPortable() }
        var text = try both()
        while skip("or") { text += " OR \(try both())" }
        return text
    }

    private mutating func both() throws -> String {
        var text = try denial()
        while skip("and") { text += " AND \(try denial())" }
        return text
    }

    private mutating func denial() throws -> String {
        var prefix = ""
        while skip("not") { prefix += "NOT " }
        return prefix + (try comparison())
    }

    private static let operators = [
        "=": "=", "==": "=", "<>": "<>", "!=": "<>", "<": "<", "<=": "<=", ">": ">", ">=": ">=",
    ]

    private mutating func comparison() throws -> String {
        if next?.isSymbol("(") == true {
            let start = index
            index += 1
            // If it is no condition, it may be a value in parentheses.
            if let inner = try? either(), skip(")"), !beginsComparison { return "(\(inner))" }
            index = start
        }
        let (value, form) = try operand()
        if skip("isnull") || skip("is", "null") { return "\(value) IS NULL" }
        if skip("notnull") || skip("not", "null") || skip("is", "not", "null") { return "\(value) IS NOT NULL" }
        if skip("in", "(") { return try list(value, form, "IN") }
        if skip("not", "in", "(") { return try list(value, form, "NOT IN") }
        if skip("between") { return try range(value, form, "BETWEEN") }
        if skip("not", "between") { return try range(value, form, "NOT BETWEEN") }
        if let symbol = next, symbol.kind == .symbol, let name = PortableExpression.operators[symbol.text] {
            index += 1
            let (other, otherForm) = try operand()
            let (left, right) = try matched((value, form), (other, otherForm))
            let orders = name != "=" && name != "<>"
            guard !orders || form != .truth && otherForm != .truth else { throw NotPortable() }
            return "\(left) \(name) \(right)" + (orders && form == .text ? " COLLATE \"C\"" : "")
        }
        // A truth by itself. PostgreSQL takes no number for one.
        guard form == .truth else { throw NotPortable() }
        return value
    }

    /// Whether what follows a parenthesis makes it a value.
    private var beginsComparison: Bool {
        guard let next else { return false }
        return PortableExpression.operators[next.text] != nil
            || ["is", "isnull", "notnull", "in", "between", "not"]
                .contains { next.isWord($0) }
            || next.kind == .symbol && !next.isSymbol(")")
    }

    private mutating func list(_ value: String, _ form: Form, _ word: String) throws -> String {
        var items: [String] = []
        repeat {
            items.append(try matched((value, form), try operand()).1)
        } while skip(",")
        guard skip(")") else { throw NotPortable() }
        return "\(value) \(word) (\(items.joined(separator: ", ")))"
    }

    private mutating func range(_ value: String, _ form: Form, _ word: String) throws -> String {
        guard form == .number || form == .truthNumber else { throw NotPortable() }
        let low = try matched((value, form), try operand()).1
        guard skip("and") else { throw NotPortable() }
        return "\(value) \(word) \(low) AND \(try matched((value, form), try operand()).1)"
    }

    /// Both sides of a comparison, of one type.
    private func matched(_ left: (String, Form), _ right: (String, Form)) throws -> (String, String) {
        func truth(_ text: String) -> String { text == "1" ? "TRUE" : "FALSE" }
        switch (left.1, right.1) {
        case (.number, .number), (.number, .truthNumber), (.truthNumber, .number), (.truthNumber, .truthNumber),
            (.text, .text), (.truth, .truth):
            return (left.0, right.0)
        case (.truth, .truthNumber): return (left.0, truth(right.0))
        case (.truthNumber, .truth): return (truth(left.0), right.0)
        default: throw NotPortable()
        }
    }

    private mutating func operand() throws -> (String, Form) {
        depth += 1
        defer { depth -= 1 }
        guard depth < PortableExpression.mostDepth else { throw NotPortable() }
        guard let part = next else { throw NotPortable() }
        if skip("(") {
            let inner = try operand()
            guard skip(")") else { throw NotPortable() }
            return inner
        }
        if skip("-") || skip("+") {
            guard let number = next, number.kind == .number else { throw NotPortable() }
            index += 1
            return ((part.text == "-" ? "-" : "") + (try literal(number)), .number)
        }
        index += 1
        switch part.kind {
        case .number:
            let text = try literal(part)
            return (text, text == "0" || text == "1" ? .truthNumber : .number)
        case .string:
            let text = part.unquotedString
            guard !text.utf8.contains(0) else { throw NotPortable() }
            return (TargetName.literal(text), .text)
        case .word, .quotedName:
            if part.isWord("length"), skip("(") { return (try length(), .number) }
            guard next?.isSymbol("(") != true, next?.isSymbol(".") != true,
                let column = columns[ExactText(name: part.name)]
            else { throw NotPortable() }
            return try value(of: column)
        default: throw NotPortable()
        }
    }

    private func value(of column: Column) throws -> (String, Form) {
        let name = TargetName.quoted(column.name)
        switch column.type {
        case .bigint, .double, .numeric: return (name, .number)
        case .boolean: return (name, .truth)
        case .text where column.isBinary: return (name, .text)
        case .text, .bytea, .date, .timestamp, .timestampWithZone: throw NotPortable()
        }
    }

    private mutating func length() throws -> String {
        guard let part = next, [.word, .quotedName].contains(part.kind),
            let column = columns[ExactText(name: part.name)],
            column.type == .text
        else { throw NotPortable() }
        index += 1
        guard skip(")") else { throw NotPortable() }
        return "char_length(\(TargetName.quoted(column.name)))"
    }

    /// A decimal number that both read alike.
    private func literal(_ part: SQLPart) throws -> String {
        let text = part.text
        guard text.utf8.count <= 18, text.utf8.allSatisfy({ (0x30...0x39).contains($0) || $0 == UInt8(ascii: ".") }),
            text.utf8.first != UInt8(ascii: "."), text.utf8.last != UInt8(ascii: ".")
        else { throw NotPortable() }
        return text
    }
}
