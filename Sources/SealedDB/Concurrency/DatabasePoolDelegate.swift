/// Is asked about the connections of a ``DatabasePool``: FMDB's informal protocol.
///
/// Called on the thread that wants the connection, by several threads at once if they want several, and without any lock:
/// it may use the pool, where a call that could only wait for itself is refused. To set up connections a
/// ``Configuration/prepare`` closure is enough.
public protocol DatabasePoolDelegate: AnyObject {
    /// Whether the connection may be lent now; asked at every lending. False closes it, and the caller gets an error.
    /// Default true.
    func databasePool(_ pool: DatabasePool, shouldAddDatabaseToPool database: Database) -> Bool

    /// A new connection was opened. Default: nothing.
    func databasePool(_ pool: DatabasePool, didAdd database: Database)
}

extension DatabasePoolDelegate {
    public func databasePool(_ pool: DatabasePool, shouldAddDatabaseToPool database: Database) -> Bool { true }
    public func databasePool(_ pool: DatabasePool, didAdd database: Database) {}
}
