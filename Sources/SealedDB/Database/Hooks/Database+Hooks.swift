/// Closures that SQLite calls while statements run. They may be set before the database is opened, and stay in effect
/// when it is reopened. They are released when they are replaced, and with the database.
///
/// A closure must not use the database that calls it; such a call throws `SQLITE_MISUSE`. A closure that captures the
/// database keeps it alive for ever, so capture it `unowned`.
extension Database {
    /// Called for each row that is inserted, updated or deleted, before the commit.
    ///
    /// SQLite does not report tables WITHOUT ROWID, virtual tables, rows that a REPLACE removes, a `DELETE` without
    /// WHERE that empties a table at once, or writing to an open ``Blob``. To miss no commit, use
    /// ``changes(in:database:)``. https://www.sqlite.org/c3ref/update_hook.html
    public var updateHook: ((RowChange) -> Void)? {
        get { additions.hooks.update }
        set { additions.hooks.update = newValue }
    }

    /// Called before each commit. If it throws, the transaction is rolled back, and the call that wanted to commit
    /// throws the error, as described for functions. https://www.sqlite.org/c3ref/commit_hook.html
    public var commitHook: (() throws -> Void)? {
        get { additions.hooks.commit }
        set { additions.hooks.commit = newValue }
    }

    /// Called for each rollback of a whole transaction, except one that closing the database causes.
    /// https://www.sqlite.org/c3ref/commit_hook.html
    public var rollbackHook: (() -> Void)? {
        get { additions.hooks.rollback }
        set { additions.hooks.rollback = newValue }
    }

    /// Decides what a statement may do. It is called each time a statement is prepared. SealedDB's own restrictions
    /// come first, so this closure can only add restrictions. It also applies to calls such as ``inTransaction(_:)``.
    /// https://www.sqlite.org/c3ref/set_authorizer.html
    public var authorizer: ((AuthorizationRequest) -> AuthorizerDecision)? {
        get { additions.hooks.authorizer }
        set { additions.hooks.authorizer = newValue }
    }

    /// Sets a closure that is called regularly while statements run. If it returns false, the statement fails with
    /// `SQLITE_INTERRUPT`. https://www.sqlite.org/c3ref/progress_handler.html
    /// - Parameters:
    ///   - interval: the approximate number of SQLite's instructions between two calls; at least 1.
    ///   - goesOn: whether the statement goes on.
    public func setProgressHandler(interval: Int32, _ goesOn: @escaping () -> Bool) {
        additions.hooks.progress = Hooks.Progress(interval: max(1, interval), goesOn: goesOn)
    }

    /// Removes the progress handler.
    public func removeProgressHandler() {
        additions.hooks.progress = nil
    }
}
