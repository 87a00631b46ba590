internal import SQLiteEngine

/// A row that a statement changed, as reported to ``Database/updateHook``.
/// https://www.sqlite.org/c3ref/update_hook.html
public struct RowChange: Sendable, Hashable {
    /// What was done to a row.
    public enum Operation: Sendable, Hashable {
        /// The row is new.
        case insert
        /// The row was changed.
        case update
        /// The row was removed.
        case delete
    }

    /// What was done to the row.
    public let operation: Operation
    /// The schema name, such as `main`.
    public let database: String
    /// The name of the table.
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
