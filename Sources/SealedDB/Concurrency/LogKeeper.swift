/// Moves the log of WAL mode into the database file, for the one connection of a pool that does so.
///
/// SQLite would let each connection do it whenever it has committed; two that do so at once can damage the file in
/// versions before 3.51.3. https://www.sqlite.org/wal.html#walresetbug
// @unchecked: used by whoever has the writer.
final class LogKeeper: @unchecked Sendable {
    /// SQLite's own, in frames. https://www.sqlite.org/pragma.html#pragma_wal_autocheckpoint
    static let threshold: Int32 = 1000

    /// How many frames the log may have before writers wait for readers, so that it can begin anew.
    private static let patience: Int32 = 10_000
    private var nextRestart = LogKeeper.patience

    /// Does what it can without waiting for readers; for a log that keeps growing it waits for them a little.
    func checkpointIfDue(_ database: Database) {
        guard let connection = database.connection, !database.isInTransaction else { return }
        let frames = connection.walFrameCount
        guard frames >= LogKeeper.threshold else { return }
        connection.walFrameCount = 0
        // Nothing is lost by a checkpoint that fails: the log has it all, and grows until one succeeds.
        if frames < nextRestart {
            if frames < LogKeeper.patience { nextRestart = LogKeeper.patience }
            _ = try? connection.checkpoint(.passive, schema: "main")  // See above.
        } else {
            nextRestart = frames + LogKeeper.patience / 2
            connection.setBusyTimeout(seconds: 0.1)
            _ = try? connection.checkpoint(.restart, schema: "main")  // See above.
            connection.setBusyTimeout(seconds: database.configuration.busyTimeout)
        }
    }
}
