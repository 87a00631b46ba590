extension DatabaseQueue {
    /// The changes to some tables that blocks commit which begin from now on: see ``Database/changes(in:database:)``.
    /// Does not wait for the queue, and may be called anywhere.
    public func changes(in tables: Set<String>, database: String = "main") -> DatabaseChangeSequence {
        DatabaseChangeSequence(tables: tables, database: database, hub: changeHub)
    }
}

extension DatabasePool {
    /// The changes to some tables that blocks commit which begin from now on, on whichever connection: see
    /// ``Database/changes(in:database:)``. May be called anywhere.
    public func changes(in tables: Set<String>, database: String = "main") -> DatabaseChangeSequence {
        DatabaseChangeSequence(tables: tables, database: database, hub: changeHub)
    }
}
