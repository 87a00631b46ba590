public import Foundation

extension Database {
    /// Begins an EXCLUSIVE transaction, as FMDB does. https://www.sqlite.org/lang_transaction.html
    /// - Returns: false on failure, such as within a transaction; see ``lastError()``.
    @discardableResult
    public func beginTransaction() -> Bool { begin(.exclusive) }

    /// Begins a DEFERRED transaction, which takes locks when it needs them.
    /// - Returns: false on failure, such as within a transaction; see ``lastError()``.
    @discardableResult
    public func beginDeferredTransaction() -> Bool { begin(.deferred) }

    /// Begins an IMMEDIATE transaction, which takes the lock for writing at once.
    /// - Returns: false on failure, such as within a transaction; see ``lastError()``.
    @discardableResult
    public func beginImmediateTransaction() -> Bool { begin(.immediate) }

    /// Begins an EXCLUSIVE transaction, which keeps out all others (in WAL mode only other writers).
    /// - Returns: false on failure, such as within a transaction; see ``lastError()``.
    @discardableResult
    public func beginExclusiveTransaction() -> Bool { begin(.exclusive) }

    /// Commits the transaction.
    /// - Returns: false on failure; see ``lastError()``. The transaction may then still be open.
    @discardableResult
    public func commit() -> Bool {
        succeeds { () throws(DatabaseError) in try commit(openConnection()) }
    }

    private func commit(_ connection: Connection, _ sql: String = "COMMIT") throws(DatabaseError) {
        do throws(DatabaseError) {
            try connection.run(sql)
        } catch {
            // The transaction may still be open, and can then be committed again.
            guard connection.isAutocommit, let state = connection.stateAfterFailedCommit(error.extendedCode) else {
                throw error
            }
            throw error.adding(commitState: state)
        }
    }

    /// Rolls back the transaction.
    /// - Returns: false on failure, such as without a transaction; see ``lastError()``.
    @discardableResult
    public func rollback() -> Bool {
        succeeds { () throws(DatabaseError) in try openConnection().run("ROLLBACK") }
    }

    /// Whether a transaction is open. SQLite itself is asked. https://www.sqlite.org/c3ref/get_autocommit.html
    public var isInTransaction: Bool { connection.map { !$0.isAutocommit } ?? false }

    /// The former name of ``isInTransaction``.
    @available(*, deprecated, renamed: "isInTransaction")
    public func inTransaction() -> Bool { isInTransaction }

    /// Runs the block in an IMMEDIATE transaction, commits, and returns the result of the block. If the block throws,
    /// the transaction is rolled back. The block cannot begin or end a transaction itself, by SQL or by calls.
    /// - Throws: the block's error, or a ``DatabaseError`` if BEGIN or COMMIT failed, or if a call in the block failed
    ///   unnoticed (``Configuration/failsBlocksAfterIgnoredErrors``). All changes are then undone.
    public func inTransaction<T>(_ block: () throws -> T) throws -> T {
        try inTransaction(.immediate, block)
    }

    enum TransactionKind: String {
        case deferred = "DEFERRED"
        case immediate = "IMMEDIATE"
        case exclusive = "EXCLUSIVE"
    }

    func begin(_ kind: TransactionKind) -> Bool {
        succeeds { () throws(DatabaseError) in try openConnection().run("BEGIN \(kind.rawValue)") }
    }

    func inTransaction<T>(_ kind: TransactionKind, _ block: () throws -> T) throws -> T {
        try transaction(kind) { try noticingFailures(block) }
    }

    private func transaction<T>(_ kind: TransactionKind, _ block: () throws -> T) throws -> T {
        try recording { () throws(DatabaseError) in try openConnection().run("BEGIN \(kind.rawValue)") }
        do {
            let result = try supervision.keepingTransaction(block)
            // The caller no longer wants the block's result, and learns that nothing of it is stored.
            if supervision.isStopped { throw DatabaseError.stopped }
            try recording { () throws(DatabaseError) in try commit(openConnection()) }
            return result
        } catch {
            takeBack { connection throws(DatabaseError) in try connection.run("ROLLBACK") }
            throw error
        }
    }

    /// FMDB's form: rolls back if the block sets the flag.
    func inTransaction(
        _ kind: TransactionKind,
        _ block: (UnsafeMutablePointer<ObjCBool>) -> Void
    ) -> (any Error)? {
        failure { try leavingFailures { try transaction(kind) { try run(block) } } }
    }

    private struct RolledBack: Error {}

    /// Turns FMDB's flag for rolling back into a thrown error.
    private func run(_ block: (UnsafeMutablePointer<ObjCBool>) -> Void) throws {
        var flag: ObjCBool = false
        block(&flag)
        if flag.boolValue { throw RolledBack() }
    }

    private func failure(_ body: () throws -> Void) -> (any Error)? {
        do {
            try body()
            return nil
        } catch is RolledBack {
            return nil
        } catch {
            // The caller may ignore the returned error, so it is also kept as unnoticed.
            if let error = error as? DatabaseError { ignore(error) }
            return error
        }
    }

    // MARK: Savepoints. https://www.sqlite.org/lang_savepoint.html

    /// Starts a savepoint. Savepoints can be nested.
    /// - Throws: ``DatabaseError``, also if the database is not open.
    public func startSavePoint(withName name: String) throws(DatabaseError) {
        try recording { () throws(DatabaseError) in try openConnection().run("SAVEPOINT \(quoted(name))") }
    }

    /// Releases a savepoint, and keeps its changes.
    /// - Throws: ``DatabaseError`` if there is no savepoint of this name, or if this is the outermost one and its
    ///   changes could not be committed.
    public func releaseSavePoint(withName name: String) throws(DatabaseError) {
        try recording { () throws(DatabaseError) in
            // Releasing the outermost savepoint commits.
            try commit(openConnection(), "RELEASE SAVEPOINT \(quoted(name))")
        }
    }

    /// Rolls back all changes since the savepoint. The savepoint itself stays.
    /// - Throws: ``DatabaseError`` if there is no savepoint of this name.
    public func rollbackToSavePoint(withName name: String) throws(DatabaseError) {
        try recording { () throws(DatabaseError) in try openConnection().run("ROLLBACK TO \(quoted(name))") }
    }

    /// Runs the block in a new savepoint, which is rolled back if the block sets the flag. The block cannot begin or
    /// end a transaction: `rollback()` returns false there, and causes the savepoint to be rolled back.
    /// - Returns: the error of starting or ending the savepoint, or of such a `rollback()`; otherwise `nil`. Rolling
    ///   back by the flag is not an error.
    @discardableResult
    public func inSavePoint(_ block: (UnsafeMutablePointer<ObjCBool>) -> Void) -> (any Error)? {
        failure { try leavingFailures { try ownSavepoint { try run(block) } } }
    }

    /// Runs the block in a new savepoint, keeps its changes, and returns its result. If the block throws, its changes
    /// are rolled back. Savepoints can be nested, within a transaction or without one. The block cannot begin or end a
    /// transaction.
    /// - Throws: the block's error, or a ``DatabaseError`` if the savepoint could not be started or ended, or if a call
    ///   in the block failed unnoticed (``Configuration/failsBlocksAfterIgnoredErrors``).
    @discardableResult
    public func savepoint<T>(_ block: () throws -> T) throws -> T {
        try ownSavepoint { try noticingFailures(block) }
    }

    private func ownSavepoint<T>(_ block: () throws -> T) throws -> T {
        savepointCount += 1
        let name = "\(SavepointName.block)_\(savepointCount)"
        try startSavePoint(withName: name)
        do {
            let result = try supervision.keepingTransaction(block)
            try releaseSavePoint(withName: name)
            return result
        } catch {
            takeBack { connection throws(DatabaseError) in
                try connection.run("ROLLBACK TO \(quoted(name))")
                try connection.run("RELEASE SAVEPOINT \(quoted(name))")
            }
            throw error
        }
    }

    /// Undoes the changes of a block that failed. SQLite may already have undone them, and the block may have closed
    /// the database.
    ///
    /// If they cannot be undone (an authorizer forbids it, or memory has run out), the next COMMIT or RELEASE must not
    /// keep them. So the whole transaction is rolled back, if necessary by closing the connection.
    private func takeBack(_ rollBack: (Connection) throws(DatabaseError) -> Void) {
        guard isInTransaction, let connection else { return }
        // The rules for a surrounding block must not stop the library's own rollback.
        let scope = supervision.scope
        supervision.scope = .block
        defer { supervision.scope = scope }
        do throws(DatabaseError) {
            try rollBack(connection)
        } catch {
            if !connection.rollBack() { close() }
        }
    }

    private func quoted(_ name: String) -> String {
        name.quoted(by: "'")
    }
}
