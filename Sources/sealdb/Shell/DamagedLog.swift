import SealedDB

/// The log of a shell's store, if it has committed transactions behind damaged bytes: SQLite leaves them out without a word,
/// and drops them when the store is written or closed.
struct DamagedLog {
    private let problem: String

    /// `nil` if the log is whole. Make it before the store is opened: SQLite has checked the log of one that is open.
    init?(ofStore path: String) throws {
        let count = try Database.hiddenTransactionCount(ofStore: path)
        guard count > 0 else { return nil }
        problem = """
            The log \(path)-wal is damaged: \(count.counted("committed transaction")) \(count == 1 ? "stands" : "stand") \
            behind bytes that were changed
            """
    }

    /// Refuses what others would take for all of the store.
    func refuseCopy() throws(Failure) {
        throw Failure(
            .data,
            """
            \(problem), and SQLite leaves them out. Nothing was written. Keep a copy of the store with its log. \
            `sealdb recover` saves into a new store what they hold. To go on without them, leave the shell, and open the store \
            once to write, as by `sealdb exec`.
            """
        )
    }
}
