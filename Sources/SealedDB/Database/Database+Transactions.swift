public import Foundation

extension Database {
    /// Begins an EXCLUSIVE transaction, as FMDB does. https://www.sqlite.org/lang_transaction.html
    /// - Returns: false on failure, also within a transaction; see ``lastError()``.
    @discardableResult
    public func beginTransaction() -> Bool { begin(.exclusive) }

    /// Begins a transaction that takes locks as it needs them.
    @discardableResult
    public func beginDeferredTransaction() -> Bool { begin(.deferred) }

    /// Begins a transaction that may write at once.
    @discardableResult
    public func beginImmediateTransaction() -> Bool { begin(.immediate) }

    /// Begins a transaction that keeps others out (in WAL mode: other writers).
    @discardableResult
    public func beginExclusiveTransaction() -> Bool { begin(.exclusive) }

    /// Makes the transaction's changes permanent. False on failure; the transaction may then still be open.
    @discardableResult
    public func commit() -> Bool {
        succeeds { () throws(DatabaseError) in try commit(openConnection()) }
    }

    private func commit(_ connection: Connection, _ sql: String = "COMMIT") throws(DatabaseError) {
        do throws(DatabaseError) {
            try connection.run(sql)
        } catch {
            // It is still open, and can be committed again.
            guard connection.isAutocommit, let state = connection.stateAfterFailedCommit(error.extendedCode),
                // The statement may have said so.
                !error.message.hasPrefix(state)
            else { throw error }
            throw error.adding(context: state)
        }
    }

    /// Takes the transaction's changes back.
    @discardableResult
    public func rollback() -> Bool {
        succeeds { () throws(DatabaseError) in try openConnection().run("ROLLBACK") }
    }

    /// Whether a transaction is open, asked of SQLite itself. https://www.sqlite.org/c3ref/get_autocommit.html
    public var isInTransaction: Bool { connection.map { !$0.isAutocommit } ?? false }

    /// Former name of ``isInTransaction``.
    @available(*, deprecated, renamed: "isInTransaction")
    public func inTransaction() -> Bool { isInTransaction }

    /// Runs the block in an IMMEDIATE transaction, commits, and returns its result; a thrown error rolls back. The block
    /// cannot begin or end a transaction itself, by SQL or by calls.
    /// - Throws: the block's error, or a ``DatabaseError`` if BEGIN or COMMIT failed, or a call in the block whose failure
    ///   was not looked at (``Configuration/failsBlocksAfterIgnoredErrors``); all changes are then undone.
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
            // Its caller does not want it any more, and is told that nothing of it is kept.
            if supervision.isStopped { throw DatabaseError.stopped }
            try recording { () throws(DatabaseError) in try commit(openConnection()) }
            return result
        } catch {
            takeBack { connection throws(DatabaseError) in try connection.run("ROLLBACK") }
            throw error
        }
    }

    /// FMDB's form: rolled back if the block sets the flag.
    func inTransaction(
        _ kind: TransactionKind,
        _ block: (UnsafeMutablePointer<ObjCBool>) -> Void
    ) -> (any Error)? {
        failure { try leavingFailures { try transaction(kind) { try run(block) } } }
    }

    private struct RolledBack: Error {}

    /// FMDB's way to roll back, as a thrown error.
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
            // The result need not be looked at.
            if let error = error as? DatabaseError { ignore(error) }
            return error
        }
    }

    // MARK: Savepoints. https://www.sqlite.org/lang_savepoint.html

    /// Starts a savepoint; they nest.
    public func startSavePoint(withName name: String) throws(DatabaseError) {
        try recording { () throws(DatabaseError) in try openConnection().run("SAVEPOINT \(quoted(name))") }
    }

    /// Ends a savepoint, keeping its changes.
    public func releaseSavePoint(withName name: String) throws(DatabaseError) {
        try recording { () throws(DatabaseError) in
            // The outermost one commits.
            try commit(openConnection(), "RELEASE SAVEPOINT \(quoted(name))")
        }
    }

    /// Takes the changes since the savepoint back; the savepoint stays.
    public func rollbackToSavePoint(withName name: String) throws(DatabaseError) {
        try recording { () throws(DatabaseError) in try openConnection().run("ROLLBACK TO \(quoted(name))") }
    }

    /// Runs the block in a savepoint of its own, which is rolled back if the block sets the flag. The block cannot begin or
    /// end a transaction: `rollback()` returns false there, and has the savepoint rolled back.
    /// - Returns: the error of starting or ending it, or of such a `rollback()`, else `nil`; rolling back by the flag is not
    ///   an error.
    @discardableResult
    public func inSavePoint(_ block: (UnsafeMutablePointer<ObjCBool>) -> Void) -> (any Error)? {
        failure { try leavingFailures { try ownSavepoint { try run(block) } } }
    }

    /// Runs the block in a savepoint of its own, keeps its changes, and returns its result; a thrown error takes them
    /// back. Savepoints nest, within a transaction or without. The block cannot begin or end a transaction.
    /// - Throws: the block's error, or a ``DatabaseError`` if the savepoint could not be started or ended, or a call in the
    ///   block whose failure was not looked at (``Configuration/failsBlocksAfterIgnoredErrors``).
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

    /// Undoes what a block did that failed. SQLite may have done so by itself, and the block may have closed the database.
    ///
    /// If it cannot be undone (an authorizer forbids it, or there is no memory), it must not be kept by whatever COMMIT or
    /// RELEASE comes next: the whole transaction goes, at last with the connection.
    private func takeBack(_ rollBack: (Connection) throws(DatabaseError) -> Void) {
        guard isInTransaction, let connection else { return }
        // A block around this one does not keep the library from it.
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
        "'" + name.replacing("'", with: "''") + "'"
    }
}
