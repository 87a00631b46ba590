internal import SQLiteEngine

/// A row that a statement changed, as reported to ``Database/updateHook``.
/// https://www.sqlite.org/c3ref/update_hook.html
public struct RowChange: Sendable, Hashable {
    public enum Operation: Sendable, Hashable {
        case insert, update, delete
    }

    public let operation: Operation
    /// The schema name, such as `main`.
    public let database: String
    public let table: String
    /// The row id. After an update, the row's new one.
    public let rowID: Int64

    init(code: Int32, database: String, table: String, rowID: Int64) {
        self.operation =
            switch code {
            case SQLITE_INSERT: .insert
            case SQLITE_DELETE: .delete
            default: .update
            }
        self.database = database
        self.table = table
        self.rowID = rowID
    }
}
