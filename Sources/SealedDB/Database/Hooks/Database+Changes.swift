extension Database {
    /// The changes to some tables that this connection commits from now on.
    ///
    ///     for await changes in db.changes(in: ["note"]) { … }
    ///
    /// No commit is missed, also not of a table WITHOUT ROWID, a virtual table, a `DELETE` that empties a table, or
    /// ``read(fromFile:)``: where SQLite does not tell the rows, they are ``ChangedRows/any``, and so they are for what a
    /// transaction changed before it was observed. Nothing piles up: what is committed while the loop is busy arrives
    /// together. Rows that a statement or a `ROLLBACK TO` took back may be told if the transaction is committed. Rows that
    /// a REPLACE displaced are not listed. A commit by another connection or process is not seen.
    /// - Parameters:
    ///   - tables: compared as SQLite compares names; they need not exist yet.
    ///   - database: the schema that they are in, by default `main`.
    /// https://www.sqlite.org/c3ref/update_hook.html
    public func changes(in tables: Set<String>, database: String = "main") -> DatabaseChangeSequence {
        let sequence = DatabaseChangeSequence(tables: tables, database: database, hub: additions.hooks.changes.hub)
        refreshObservation()
        return sequence
    }

    /// Begins or ends observing, if somebody asked for that meanwhile.
    func refreshObservation() { additions.hooks.refreshObservation() }
}
