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

    /// Whether a statement names the pragma that defers foreign keys, in whatever form.
    static func mayDeferForeignKeys(_ sql: Slice<UnsafeBufferPointer<UInt8>>) -> Bool {
        // Letters are told apart without their case.
        let name = "defer_foreign_keys".utf8.map { $0 | 0x20 }
        guard sql.count > name.count else { return false }
        return (sql.startIndex...sql.endIndex - name.count).contains { start in
            sql[start] | 0x20 == name[0] && sql[start..<start + name.count].lazy.map { $0 | 0x20 }.elementsEqual(name)
        }
    }

    static func isPragma(_ sql: String) -> Bool {
        KeyStatement.firstWord(of: sql) == "pragma"
    }
}
