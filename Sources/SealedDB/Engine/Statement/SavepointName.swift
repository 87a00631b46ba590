/// The names of the library's own savepoints.
///
/// SQLite uses the most recent savepoint of a name. So SQL of the caller must not use the same name by accident.
/// <https://www.sqlite.org/lang_savepoint.html>
enum SavepointName {
    /// The name for the savepoint of a block. It is random for each process.
    static let block = "sealeddb_" + FileSystem.hexDigits(UInt64.random(in: 0...UInt64.max), count: 16)
}
