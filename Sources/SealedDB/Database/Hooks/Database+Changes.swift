extension Database {
    /// Returns the changes to some tables that this connection commits from now on.
    ///
    ///     for await changes in db.changes(in: ["note"]) { … }
    ///
    /// No commit is missed, not even to a table WITHOUT ROWID or a virtual table, by a `DELETE` that empties a table,
    /// or by ``read(fromFile:)``. If SQLite does not report the rows, they are ``ChangedRows/any``. They are also
    /// ``ChangedRows/any`` for what a transaction changed before it was observed. A table that is renamed is reported by its
    /// former name alone.
    ///
    /// Changes do not queue up: what is committed while the loop is busy arrives together. If the transaction is
    /// committed, rows that a statement or a `ROLLBACK TO` has undone may be reported too. Rows that a REPLACE removed
    /// are not listed, nor is the former row id of one that was given another. VACUUM counts as
    /// ``ChangedRows/any`` of all tables, and so does a pragma that writes, such as `user_version`. ATTACH and DETACH count as changes
    /// of the schema. Commits of other connections or processes are not seen.
    /// - Parameters:
    ///   - tables: the names of the tables, compared as SQLite compares names. The tables need not exist yet.
    ///     `sqlite_schema` stands for the schema.
    ///   - database: the schema of the tables, by default `main`.
    /// https://www.sqlite.org/c3ref/update_hook.html
    public func changes(in tables: Set<String>, database: String = "main") -> DatabaseChangeSequence {
        // Others may have come before the last commit. They are told of it, and the new observer is not.
        refreshObservation()
        let sequence = DatabaseChangeSequence(tables: tables, database: database, hub: additions.hooks.changes.hub)
        refreshObservation()
        return sequence
    }

    /// Begins or ends observing, if the observers have changed.
    func refreshObservation() { additions.hooks.refreshObservation() }
}
