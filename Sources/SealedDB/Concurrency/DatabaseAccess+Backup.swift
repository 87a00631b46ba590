/// Backups of a store that is in use.
extension DatabaseAccess {
    /// Copies the store into a new file, and compares the copy with it page by page; a store without a key row by row.
    ///
    /// ```swift
    /// try await pool.backup(to: "/backups/app-2026-11-23.db")
    /// ```
    /// The copy shows the store at one moment. It is an ordinary store with the same cipher settings, under the store's
    /// key or a key of its own. If the store has no key, the copy has none either, unless you give
    /// one. The file appears under its name only when it is complete, verified and synced.
    ///
    /// The call is one `read`: a pool goes on reading and writing meanwhile, a queue waits. A rotation waits for it.
    /// - Parameters:
    ///   - path: a file that does not exist yet.
    ///   - key: the copy's key, which is confirmed (see ``Key/confirm()``); `nil`, the default, for the store's own.
    ///   - progress: called on this thread after each step. If it throws, the backup stops. It must not call the queue.
    /// - Throws: ``DatabaseError``; no new file is left then, unless the message says otherwise.
    ///   ``DatabaseError/Reason/alreadyExists`` if `path` exists.
    /// <https://www.sqlite.org/backup.html>
    @discardableResult
    public func backup(
        to path: String,
        key: Key? = nil,
        progress: ((KeyRotation.Progress) throws -> Void)? = nil
    ) throws -> KeyRotation.Report {
        try read { db in try db.backup(toNewFile: path, key: key, progress: progress) }
    }

    /// Like the synchronous form, but does not block a thread that tasks share. Cancelling the task stops the backup.
    /// - Throws: as the synchronous form; `CancellationError` if the task was cancelled.
    @discardableResult
    public func backup(
        to path: String,
        key: Key? = nil,
        progress: (@Sendable (KeyRotation.Progress) throws -> Void)? = nil
    ) async throws -> KeyRotation.Report {
        do {
            return try await read { db in
                try db.backup(toNewFile: path, key: key) { state in
                    try Task.checkCancellation()
                    try progress?(state)
                }
            }
        } catch let error as DatabaseError where error.underlyingError is CancellationError {
            throw CancellationError()
        }
    }
}
