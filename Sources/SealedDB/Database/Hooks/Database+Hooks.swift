/// Closures that SQLite calls while statements run. They may be set before the database is opened, come back when it is
/// opened again, and are dropped when they are replaced and with the database.
///
/// They may not use the database that calls them, which throws `SQLITE_MISUSE` if they do. One that captures the database
/// keeps it alive for ever, so capture it `unowned`.
extension Database {
    /// Told of each row that is inserted, updated or deleted, before it is committed.
    ///
    /// SQLite does not tell of tables WITHOUT ROWID and virtual tables, of rows that a REPLACE displaces, of a `DELETE`
    /// without WHERE that empties a table at once, and of blobs that are written by themselves. Use
    /// ``changes(in:database:)`` to miss no commit. https://www.sqlite.org/c3ref/update_hook.html
    public var updateHook: ((RowChange) -> Void)? {
        get { additions.hooks.update }
        set { additions.hooks.update = newValue }
    }

    /// Called before each commit; throwing refuses it. The transaction is then rolled back, and the committing call
    /// throws the error, as described for functions. https://www.sqlite.org/c3ref/commit_hook.html
    public var commitHook: (() throws -> Void)? {
        get { additions.hooks.commit }
        set { additions.hooks.commit = newValue }
    }

    /// Told of each rollback of a whole transaction, but not of one that closing the database causes.
    /// https://www.sqlite.org/c3ref/commit_hook.html
    public var rollbackHook: (() -> Void)? {
        get { additions.hooks.rollback }
        set { additions.hooks.rollback = newValue }
    }

    /// Asked what a statement may do, each time one is prepared. SealedDB's own restrictions come first: the answer can
    /// only restrict more. Calls such as ``inTransaction(_:)`` are subject to it too.
    /// https://www.sqlite.org/c3ref/set_authorizer.html
    public var authorizer: ((AuthorizationRequest) -> AuthorizerDecision)? {
        get { additions.hooks.authorizer }
        set { additions.hooks.authorizer = newValue }
    }

    /// Has the closure called again and again while statements run; the statement fails with `SQLITE_INTERRUPT` when it
    /// returns false. https://www.sqlite.org/c3ref/progress_handler.html
    /// - Parameter interval: roughly how many of SQLite's instructions lie between two calls; at least 1.
    public func setProgressHandler(interval: Int32, _ goesOn: @escaping () -> Bool) {
        additions.hooks.progress = Hooks.Progress(interval: max(1, interval), goesOn: goesOn)
    }

    /// Ends the calls of the progress handler.
    public func removeProgressHandler() {
        additions.hooks.progress = nil
    }
}
