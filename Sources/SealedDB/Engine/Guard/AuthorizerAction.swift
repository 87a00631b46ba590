internal import SQLiteEngine

/// An action of a statement, reported while SQLite prepares the statement.
/// https://www.sqlite.org/c3ref/c_alter_table.html
public enum AuthorizerAction: Sendable, Hashable {
    /// Makes an index.
    case createIndex(String, table: String)
    /// Makes a table.
    case createTable(String)
    /// Makes a temporary index.
    case createTemporaryIndex(String, table: String)
    /// Makes a temporary table.
    case createTemporaryTable(String)
    /// Makes a temporary trigger.
    case createTemporaryTrigger(String, table: String)
    /// Makes a temporary view.
    case createTemporaryView(String)
    /// Makes a trigger.
    case createTrigger(String, table: String)
    /// Makes a view.
    case createView(String)
    /// Makes a virtual table with the module.
    case createVirtualTable(String, module: String)
    /// Changes a table.
    case alterTable(String)
    /// Removes an index.
    case dropIndex(String, table: String)
    /// Removes a table.
    case dropTable(String)
    /// Removes a temporary index.
    case dropTemporaryIndex(String, table: String)
    /// Removes a temporary table.
    case dropTemporaryTable(String)
    /// Removes a temporary trigger.
    case dropTemporaryTrigger(String, table: String)
    /// Removes a temporary view.
    case dropTemporaryView(String)
    /// Removes a trigger.
    case dropTrigger(String, table: String)
    /// Removes a view.
    case dropView(String)
    /// Removes a virtual table of the module.
    case dropVirtualTable(String, module: String)
    /// Begins a `SELECT`.
    case select
    /// Reads a column. The column is empty if the statement uses the table but none of its columns, as `count(*)` does.
    case read(table: String, column: String)
    /// Inserts rows.
    case insert(table: String)
    /// Changes a column.
    case update(table: String, column: String)
    /// Deletes rows.
    case delete(table: String)
    /// Calls a function.
    case function(String)
    /// Uses a recursive common table expression.
    case recursiveSelect
    /// A pragma. The argument is `nil` if the pragma sets a key.
    case pragma(String, argument: String?)
    /// `BEGIN`, `COMMIT` or `ROLLBACK`.
    case transaction(String)
    /// `BEGIN`, `RELEASE` or `ROLLBACK`, with the name of the savepoint.
    case savepoint(String, name: String)
    /// Attaches a file. The path is `nil` if it is only known when the statement runs.
    case attach(path: String?)
    /// Detaches a database.
    case detach(String)
    /// Collects statistics of a table.
    case analyze(table: String)
    /// Makes an index anew.
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
    /// What the statement would do.
    public let action: AuthorizerAction
    /// The schema name, such as `main`, if the action has one.
    public let database: String?
    /// The trigger or view that performs the action; `nil` if the statement itself does.
    public let source: String?
}

/// The decision about an action. https://www.sqlite.org/c3ref/c_deny.html
public enum AuthorizerDecision: Sendable, Hashable {
    /// The action is allowed.
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
