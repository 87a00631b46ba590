/// The library's own savepoints.
///
/// SQLite goes back to the latest one of a name. So no SQL may happen to use that name.
/// <https://www.sqlite.org/lang_savepoint.html>
enum SavepointName {
    /// For a block; another one in each process.
    static let block = "sealeddb_" + FileSystem.hexDigits(UInt64.random(in: 0...UInt64.max), count: 16)
}
