import SealedDB

/// Names in PostgreSQL. https://www.postgresql.org/docs/15/sql-syntax-lexical.html#SQL-SYNTAX-IDENTIFIERS
enum TargetName {
    /// As many bytes as a name has. PostgreSQL would cut longer ones off, and could so make two names one.
    static let limit = 63

    static func quoted(_ name: String) -> String { name.quoted(by: "\"") }

    static func literal(_ text: String) -> String {
        // A backslash means nothing in them: the session has standard_conforming_strings on.
        text.quoted(by: "'")
    }

    /// Why PostgreSQL cannot have the name; `nil` if it can.
    static func problem(of name: String) -> String? {
        if name.isEmpty { return "has no name, and PostgreSQL wants one" }
        let count = name.utf8.count
        return count > limit ? "has a name of \(count) bytes, and PostgreSQL takes \(limit)" : nil
    }

    /// Every table of PostgreSQL has columns of these names.
    static let systemColumns: Set<String> = ["ctid", "xmin", "xmax", "cmin", "cmax", "tableoid"]

    /// A name that begins like this, and is in none of those that are taken.
    static func free(_ name: String, _ suffix: String, taken: inout Set<String>) -> String {
        var number = 0
        while true {
            let end = number == 0 ? suffix : "\(suffix)\(number)"
            var start = ""
            for scalar in name.unicodeScalars {
                guard start.utf8.count + String(scalar).utf8.count + end.utf8.count <= limit else { break }
                start.unicodeScalars.append(scalar)
            }
            if taken.insert(start + end).inserted { return start + end }
            number += 1
        }
    }
}
