/// A pattern for one name of a path: `*` is any text, `?` any character, `[a-z]` one of these, `[!a-z]` one that is not;
/// a backslash makes the next character literal. As in a shell, a dot at the beginning is matched by a dot alone.
struct NamePattern: Sendable {
    private enum Token: Sendable {
        case text
        case any
        case literal(Unicode.Scalar)
        case set([ClosedRange<Unicode.Scalar>], isNegated: Bool)

        func matches(_ scalar: Unicode.Scalar) -> Bool {
            switch self {
            case .text, .any: true
            case .literal(let own): own == scalar
            case .set(let ranges, let isNegated): ranges.contains { $0.contains(scalar) } != isNegated
            }
        }

        var isText: Bool {
            if case .text = self { true } else { false }
        }
    }

    private let tokens: [Token]

    /// A pattern that every name matches that does not begin with a dot.
    static let anything = NamePattern(tokens: [.text])

    private init(tokens: [Token]) { self.tokens = tokens }

    /// - Returns: `nil` if a bracket is not closed, holds nothing or a range that ends before it begins, or if a backslash
    ///   ends the text.
    init?(_ text: String) {
        var tokens: [Token] = []
        var rest = text.unicodeScalars[...]
        while let scalar = rest.popFirst() {
            switch scalar {
            case "*": tokens.append(.text)
            case "?": tokens.append(.any)
            case "\\":
                guard let next = rest.popFirst() else { return nil }
                tokens.append(.literal(next))
            case "[":
                guard let set = NamePattern.set(&rest) else { return nil }
                tokens.append(set)
            default: tokens.append(.literal(scalar))
            }
        }
        self.tokens = tokens
    }

    private static func set(_ rest: inout Substring.UnicodeScalarView) -> Token? {
        var ranges: [ClosedRange<Unicode.Scalar>] = []
        let isNegated = rest.first == "!"
        if isNegated { rest.removeFirst() }
        while let scalar = rest.popFirst() {
            if scalar == "]" { return ranges.isEmpty ? nil : .set(ranges, isNegated: isNegated) }
            var last = scalar
            if rest.first == "-", let end = rest.dropFirst().first, end != "]" {
                rest.removeFirst(2)
                last = end
            }
            guard scalar <= last else { return nil }
            ranges.append(scalar...last)
        }
        return nil
    }

    /// The only name that matches; `nil` if there may be others.
    var literal: String? {
        var result = String.UnicodeScalarView()
        for token in tokens {
            guard case .literal(let scalar) = token else { return nil }
            result.append(scalar)
        }
        return String(result)
    }

    func matches(_ name: String) -> Bool {
        let scalars = Array(name.unicodeScalars)
        if scalars.first == ".", !beginsWithDot { return false }
        // Where to go on if what follows the last `*` does not match: it then takes one character more.
        var retry: (token: Int, scalar: Int)?
        var (token, scalar) = (0, 0)
        while scalar < scalars.count {
            if token < tokens.count, tokens[token].isText {
                retry = (token + 1, scalar)
                token += 1
            } else if token < tokens.count, tokens[token].matches(scalars[scalar]) {
                token += 1
                scalar += 1
            } else if let last = retry {
                (token, scalar) = (last.token, last.scalar + 1)
                retry = (token, scalar)
            } else {
                return false
            }
        }
        return tokens[token...].allSatisfy(\.isText)
    }

    private var beginsWithDot: Bool {
        if case .literal(".") = tokens.first { true } else { false }
    }
}
