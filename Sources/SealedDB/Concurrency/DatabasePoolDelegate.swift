/// Decides about the connections of a ``DatabasePool``, as FMDB's informal protocol does: about those of FMDB's calls
/// and of snapshots, but not about those of `read` and `write`.
///
/// The methods are called without any lock, on the thread that wants the connection. If several threads want one, they
/// call at the same time. The methods may use the pool; a call that could only wait for itself is refused. To set up
/// connections, a ``Configuration/prepare`` closure is enough.
public protocol DatabasePoolDelegate: AnyObject {
    /// Returns whether the connection may be lent now. Called each time that a connection is to be lent. If it returns
    /// false, the connection is closed, and the caller gets an error. The default implementation returns true.
    func databasePool(_ pool: DatabasePool, shouldAddDatabaseToPool database: Database) -> Bool

    /// Called when a new connection was opened and accepted. The default implementation does nothing.
    func databasePool(_ pool: DatabasePool, didAdd database: Database)
}

extension DatabasePoolDelegate {
    /// Lets every connection in.
    public func databasePool(_ pool: DatabasePool, shouldAddDatabaseToPool database: Database) -> Bool { true }
    /// Does nothing.
    public func databasePool(_ pool: DatabasePool, didAdd database: Database) {}
}
