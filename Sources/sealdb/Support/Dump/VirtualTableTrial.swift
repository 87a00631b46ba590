import SealedDB

/// What the engine makes of a statement that makes a virtual table, found out in a database in memory.
///
/// The statement's text does not tell it: modules take abbreviated options, and make some tables only when they need
/// them. A table of the store that is wrongly taken for one that the module makes would be left out.
struct VirtualTableTrial {
    /// The tables that the module makes, and those that it may make later, without the table's name and underscore: the
    /// part of each statement from its first parenthesis on.
    private var shadows: [ExactText: String] = [:]
    /// Whether a full-text table keeps its text itself.
    var keepsText: Bool { shadows[ExactText("content")] != nil }
    private let name: String
    /// Those that stand in the store only if the module has made them.
    private var sure: Set<ExactText> = []

    /// - Parameters:
    ///   - statement: the statement that makes it.
    ///   - content: the statement that makes the table or view from which a full-text table takes its text.
    /// - Throws: the engine's error, such as for a tokenizer that it does not know.
    init(_ name: String, module: String, _ statement: String, content: String?) throws {
        self.name = name
        let database = Database(path: nil)
        guard database.open() else { throw database.lastError() }
        defer { database.close() }
        // Where it is wrong, the statement below fails.
        if let content { database.executeStatements(SQL(raw: content)) }
        let before = Set(try VirtualTableTrial.tables(of: database).map { ExactText(name: $0.name) })
        try database.execute(script: SQL(raw: statement))
        try note(database, isSure: true, without: before)
        guard module == "fts3" || module == "fts4" else { return }
        // Then it makes the table "stat". https://www.sqlite.org/fts3.html#*fts4automergecmd
        let table = SQLLiteral.name(name)
        try database.execute(script: SQL(raw: "INSERT INTO \(table)(\(table)) VALUES('automerge=2')"))
        try note(database, isSure: false, without: before)
    }

    private mutating func note(_ database: Database, isSure: Bool, without before: Set<ExactText>) throws {
        for (table, sql) in try VirtualTableTrial.tables(of: database) {
            guard !before.contains(ExactText(name: table)), let ending = ending(of: table) else { continue }
            if isSure { sure.insert(ending) }
            shadows[ending] = VirtualTableTrial.columns(sql)
        }
    }

    private static func tables(of database: Database) throws -> [(name: String, sql: String)] {
        try database.executeQuery("SELECT name, sql FROM main.sqlite_schema WHERE type = 'table' AND sql IS NOT NULL")
            .all((String, String).self).map { (name: $0.0, sql: $0.1) }
    }

    private static func columns(_ sql: String) -> String { String(sql.utf8.drop { $0 != UInt8(ascii: "(") }) ?? "" }

    /// What stands behind the name of the virtual table and an underscore; `nil` for another name.
    private func ending(of table: String) -> ExactText? {
        let start = Array((name + "_").foldedForSQL.utf8)
        let bytes = Array(table.foldedForSQL.utf8)
        guard bytes.starts(with: start) else { return nil }
        return ExactText(String(decoding: bytes[start.count...], as: UTF8.self))
    }

    /// Whether the module has made this table of the store for itself.
    func hasMade(_ table: String, _ sql: String) -> Bool {
        guard let ending = ending(of: table), let columns = shadows[ending] else { return false }
        // The other ones somebody may have made for himself.
        return sure.contains(ending) || columns == VirtualTableTrial.columns(sql)
    }
}
