internal import SQLiteEngine

/// What SQLite asked its authorizer while it compiled a statement. https://www.sqlite.org/c3ref/c_alter_table.html
struct StatementFacts: OptionSet {
    let rawValue: UInt8

    /// Begins or ends a transaction. Savepoints do not.
    static let transaction = StatementFacts(rawValue: 1)
    /// Changes the schema of a database, or the set of databases.
    static let schema = StatementFacts(rawValue: 2)
    /// Attaches or detaches a file.
    static let attach = StatementFacts(rawValue: 4)
    static let pragma = StatementFacts(rawValue: 8)
    static let savepoint = StatementFacts(rawValue: 16)
    /// Runs statements of its own, which may write although SQLite says that it leaves the database unchanged.
    static let statements = StatementFacts(rawValue: 32)

    init(rawValue: UInt8) { self.rawValue = rawValue }

    /// What the authorizer tells. https://www.sqlite.org/c3ref/c_alter_table.html
    init(_ action: Int32, _ first: UnsafePointer<CChar>?, _ second: UnsafePointer<CChar>?) {
        switch action {
        case SQLITE_READ, SQLITE_SELECT, SQLITE_INSERT, SQLITE_UPDATE, SQLITE_DELETE: self = []
        case SQLITE_FUNCTION:
            self = second.map { sqlite3_stricmp($0, "sqlcipher_export") == 0 } == true ? .statements : []
        case SQLITE_TRANSACTION: self = .transaction
        case SQLITE_SAVEPOINT: self = .savepoint
        // https://www.sqlite.org/pragma.html#pragma_optimize
        case SQLITE_PRAGMA:
            self = first.map { sqlite3_stricmp($0, "optimize") == 0 } == true ? [.pragma, .statements] : .pragma
        case SQLITE_ATTACH, SQLITE_DETACH: self = [.attach, .schema]
        case SQLITE_ALTER_TABLE, SQLITE_CREATE_VTABLE, SQLITE_DROP_VTABLE,
            SQLITE_CREATE_INDEX...SQLITE_CREATE_VIEW, SQLITE_DROP_INDEX...SQLITE_DROP_VIEW:
            self = .schema
        default: self = []
        }
    }
}

/// What the statement cache must know about a statement.
enum StatementKind {
    /// Reads or changes rows, or begins or ends a transaction. It may be kept and run again.
    case reusable
    /// Changes the columns that kept statements have looked up, or may undo such a change.
    case schemaChange
    /// Everything else. Some pragmas take effect when they are prepared, so a kept one would have no effect on its next
    /// run.
    case other

    /// A statement may only be kept if both SQLite and the text say so. It counts as a schema change if either says so:
    /// SQLite compiles `DROP TABLE IF EXISTS` to nothing while the table does not exist, and compiles it again, within
    /// a step, once the table exists.
    init(_ text: SQLStatementText, _ facts: StatementFacts) {
        if text.isExplained {
            self = .other
        } else if facts.contains(.schema) || StatementKind.schemaVerbs.contains(text.verb ?? "") {
            self = .schemaChange
        } else {
            self =
                !facts.contains(.pragma) && StatementKind.reusableVerbs.contains(text.verb ?? "") ? .reusable : .other
        }
    }

    private static let schemaVerbs: Set = ["create", "alter", "drop", "rollback", "attach", "detach"]
    private static let reusableVerbs: Set = [
        "select", "insert", "update", "delete", "replace", "with", "values", "begin", "commit", "end",
    ]
}
