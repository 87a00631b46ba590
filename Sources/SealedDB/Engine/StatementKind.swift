/// What the cache must know of a statement, told by its first word.
enum StatementKind {
    /// Reads or changes rows, or bounds a transaction: may be kept and run again.
    case reusable
    /// Changes the columns that kept statements have found, or may do so by undoing such a change.
    case schemaChange
    /// Everything else. Pragmas act when they are prepared, so that a kept one would not act again.
    case other

    init(_ sql: UnsafeBufferPointer<UInt8>) {
        let blanks = sql.prefix { $0 == UInt8(ascii: " ") || (0x09...0x0d).contains($0) }
        let word = sql.dropFirst(blanks.count).prefix { (UInt8(ascii: "a")...UInt8(ascii: "z")).contains($0 | 0x20) }
        guard word.count <= 8 else {
            self = .other
            return
        }
        self =
            switch String(decoding: word, as: UTF8.self).lowercased() {
            case "select", "insert", "update", "delete", "replace", "with", "values", "begin", "commit": .reusable
            case "create", "alter", "drop", "rollback": .schemaChange
            default: .other
            }
    }

    static func isPragma(_ sql: String) -> Bool {
        KeyStatement.firstWord(of: sql) == "pragma"
    }
}
