import SealedDB

/// The sections and entries of a configuration file, before their meaning is looked at.
///
///     # a comment, on a line of its own
///     [section "argument"]
///     name = value
struct ConfigurationText: Sendable {
    struct Entry: Sendable {
        let name: String
        let value: String
        let line: Int
    }

    struct Section: Sendable {
        let name: String
        /// What stands in quotes behind the name; `nil` if nothing does.
        let argument: String?
        let line: Int
        var entries: [Entry] = []

        func entry(_ name: String) -> Entry? { entries.first { $0.name.isSame(as: name) } }
    }

    struct Problem: Sendable {
        let line: Int
        let text: String
    }

    private(set) var sections: [Section] = []
    private(set) var problems: [Problem] = []

    init(_ text: String) {
        for (index, line) in text.parts(between: "\n").enumerated() {
            let line = ConfigurationText.trimmed(line)
            guard !line.isEmpty, !line.begins(with: "#") else { continue }
            if let problem = add(line, index + 1) { problems.append(Problem(line: index + 1, text: problem)) }
        }
    }

    /// - Returns: what is wrong with the line. It never shows the line: it may be a key, in the wrong place.
    private mutating func add(_ line: String, _ number: Int) -> String? {
        if line.unicodeScalars.contains(where: { $0 != "\t" && ($0 < " " || $0 == "\u{7f}") }) {
            return "The line holds a control character, such as the end of a line of Windows."
        }
        if line.begins(with: "[") {
            guard let section = ConfigurationText.section(line, number) else {
                return #"A section begins with a line such as [defaults] or [store "/srv/app/*.db"]."#
            }
            let isKnown = sections.contains {
                $0.name.isSame(as: section.name) && ExactText($0.argument ?? "") == ExactText(section.argument ?? "")
            }
            sections.append(section)
            return isKnown ? "This section occurs again. Put everything into the first one." : nil
        }
        guard let equals = line.utf8.firstIndex(of: UInt8(ascii: "=")) else {
            return "A line is [section], name = value, or a comment that begins with #."
        }
        let name = ConfigurationText.trimmed(line[..<equals])
        let value = ConfigurationText.trimmed(line[line.utf8.index(after: equals)...])
        guard !sections.isEmpty else { return "A section, such as [defaults], must come first." }
        guard !name.isEmpty, name.utf8.allSatisfy({ $0 == UInt8(ascii: "-") || (0x61...0x7a).contains($0) }) else {
            return "A name consists of small letters and dashes."
        }
        if value.isEmpty { return "\(name) has no value." }
        if value.hasBytes(of: " #") || value.hasBytes(of: "\t#") {
            return "A comment stands on a line of its own, and no value holds a blank before #."
        }
        guard sections[sections.count - 1].entry(name) == nil else { return "\(name) occurs again in this section." }
        sections[sections.count - 1].entries.append(Entry(name: name, value: value, line: number))
        return nil
    }

    /// In the argument, a backslash stands before a quote or another backslash.
    private static func section(_ line: String, _ number: Int) -> Section? {
        guard line.ends(with: "]") else { return nil }
        let inner = trimmed(String(line.unicodeScalars.dropFirst().dropLast()))
        guard let quote = inner.utf8.firstIndex(of: UInt8(ascii: "\"")) else {
            return inner.isEmpty || inner.has(" ") ? nil : Section(name: inner, argument: nil, line: number)
        }
        let name = trimmed(inner[..<quote])
        var rest = inner.unicodeScalars[quote...].dropFirst()
        var argument = String.UnicodeScalarView()
        while let scalar = rest.popFirst(), scalar != "\"" {
            // Other backslashes belong to the pattern.
            if scalar == "\\", let next = rest.first, next == "\"" || next == "\\" {
                argument.append(rest.removeFirst())
            } else {
                argument.append(scalar)
            }
            if rest.isEmpty { return nil }
        }
        guard rest.isEmpty, !name.isEmpty, !argument.isEmpty else { return nil }
        return Section(name: name, argument: String(argument), line: number)
    }

    private static func trimmed(_ text: some StringProtocol) -> String {
        func isBlank(_ scalar: Unicode.Scalar) -> Bool { scalar == " " || scalar == "\t" }
        var scalars = text.unicodeScalars.drop(while: isBlank)
        while let last = scalars.last, isBlank(last) { scalars.removeLast() }
        return String(String.UnicodeScalarView(scalars))
    }
}
