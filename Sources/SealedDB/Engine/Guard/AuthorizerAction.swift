internal import SQLiteEngine

/// An action of a statement, reported while SQLite prepares the statement.
/// https://www.sqlite.org/c3ref/c_alter_table.html
public enum AuthorizerAction: Sendable, Hashable {
    case createIndex(String, table: String)
    case createTable(String)
    case createTemporaryIndex(String, table: String)
    case createTemporaryTable(String)
    case createTemporaryTrigger(String, table: String)
    case createTemporaryView(String)
    case createTrigger(String, table: String)
    case createView(String)
    case createVirtualTable(String, module: String)
    case alterTable(String)
    case dropIndex(String, table: String)
    case dropTable(String)
    case dropTemporaryIndex(String, table: String)
    case dropTemporaryTable(String)
    case dropTemporaryTrigger(String, table: String)
    case dropTemporaryView(String)
    case dropTrigger(String, table: String)
    case dropView(String)
    case dropVirtualTable(String, module: String)
    case select
    /// Reads a column. The column is empty if the statement uses the table but none of its columns, as `count(*)` does.
    case read(table: String, column: String)
    case insert(table: String)
    case update(table: String, column: String)
    case delete(table: String)
    case function(String)
    case recursiveSelect
    /// A pragma. The argument is `nil` if the pragma sets a key.
    case pragma(String, argument: String?)
    /// `BEGIN`, `COMMIT` or `ROLLBACK`.
    case transaction(String)
    /// `BEGIN`, `RELEASE` or `ROLLBACK`, with the name of the savepoint.
    case savepoint(String, name: String)
    /// Attaches a file. The path is `nil` if it is only known when the statement runs.
    case attach(path: String?)
    case detach(String)
    case analyze(table: String)
    case reindex(String)
    /// An action that only later versions of SQLite know, with SQLite's number.
    case other(Int32)

    init(_ code: Int32, _ first: String?, _ second: String?) {
        let (one, two) = (first ?? "", second ?? "")
        self =
            switch code {
            case SQLITE_CREATE_INDEX: .createIndex(one, table: two)
            case SQLITE_CREATE_TABLE: .createTable(one)
            case SQLITE_CREATE_TEMP_INDEX: .createTemporaryIndex(one, table: two)
            case SQLITE_CREATE_TEMP_TABLE: .createTemporaryTable(one)
            case SQLITE_CREATE_TEMP_TRIGGER: .createTemporaryTrigger(one, table: two)
            case SQLITE_CREATE_TEMP_VIEW: .createTemporaryView(one)
            case SQLITE_CREATE_TRIGGER: .createTrigger(one, table: two)
            case SQLITE_CREATE_VIEW: .createView(one)
            case SQLITE_CREATE_VTABLE: .createVirtualTable(one, module: two)
            case SQLITE_ALTER_TABLE: .alterTable(two)
            case SQLITE_DROP_INDEX: .dropIndex(one, table: two)
            case SQLITE_DROP_TABLE: .dropTable(one)
            case SQLITE_DROP_TEMP_INDEX: .dropTemporaryIndex(one, table: two)
            case SQLITE_DROP_TEMP_TABLE: .dropTemporaryTable(one)
            case SQLITE_DROP_TEMP_TRIGGER: .dropTemporaryTrigger(one, table: two)
            case SQLITE_DROP_TEMP_VIEW: .dropTemporaryView(one)
            case SQLITE_DROP_TRIGGER: .dropTrigger(one, table: two)
            case SQLITE_DROP_VIEW: .dropView(one)
            case SQLITE_DROP_VTABLE: .dropVirtualTable(one, module: two)
            case SQLITE_SELECT: .select
            case SQLITE_READ: .read(table: one, column: two)
            case SQLITE_INSERT: .insert(table: one)
            case SQLITE_UPDATE: .update(table: one, column: two)
            case SQLITE_DELETE: .delete(table: one)
            case SQLITE_FUNCTION: .function(two)
            case SQLITE_RECURSIVE: .recursiveSelect
            case SQLITE_PRAGMA:
                .pragma(one, argument: SQLStatementText.keyPragmas.contains(one.lowercased()) ? nil : second)
            case SQLITE_TRANSACTION: .transaction(one)
            case SQLITE_SAVEPOINT: .savepoint(one, name: two)
            case SQLITE_ATTACH: .attach(path: first)
            case SQLITE_DETACH: .detach(one)
            case SQLITE_ANALYZE: .analyze(table: one)
            case SQLITE_REINDEX: .reindex(one)
            default: .other(code)
            }
    }
}

/// An action of a statement, on which ``Database/authorizer`` decides.
public struct AuthorizationRequest: Sendable, Hashable {
    public let action: AuthorizerAction
    /// The schema name, such as `main`, if the action has one.
    public let database: String?
    /// The trigger or view that performs the action; `nil` if the statement itself does.
    public let source: String?
}

/// The decision about an action. https://www.sqlite.org/c3ref/c_deny.html
public enum AuthorizerDecision: Sendable, Hashable {
    case allow
    /// The statement fails with `SQLITE_AUTH`.
    case deny
    /// The statement runs without the action: a column reads as NULL, and a change is not made. Rows are deleted
    /// nevertheless.
    case ignore

    var code: Int32 {
        switch self {
        case .allow: SQLITE_OK
        case .deny: SQLITE_DENY
        case .ignore: SQLITE_IGNORE
        }
    }

    /// Returns the stricter of two decisions.
    func and(_ other: @autoclosure () -> AuthorizerDecision) -> AuthorizerDecision {
        switch self {
        case .deny: .deny
        case .ignore: other() == .deny ? .deny : .ignore
        case .allow: other()
        }
    }
}
