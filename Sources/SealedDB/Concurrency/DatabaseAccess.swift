public import Foundation

/// What ``DatabaseQueue`` and ``DatabasePool`` have in common: they lend a connection to a block.
///
/// Calls without `await` run their block on the caller's thread, which waits. If possible, do not make them from a
/// task: they block one of the few threads that all tasks share. Calls with `await` wait without blocking a thread.
/// Their block runs in the caller's task, with its task-local values and its `Task.isCancelled`, on a thread of the
/// queue or pool. Tasks are served by priority. A call with `await` ends early if its task is cancelled.
///
/// A call in a block is refused with `SQLITE_MISUSE` if it could only wait for itself, because others wait for that
/// block. If it would wait by way of another call, the message names both calls.
///
/// ### What `write` promises
///
/// - A block runs once, in an IMMEDIATE transaction. When the call returns, its changes are committed, and durable as
///   far as ``Configuration/synchronous`` says. When the call throws, nothing of the block is kept.
/// - Calls that wait at the same time share one transaction and its commit. Their blocks run one after the other, by
///   priority and then in the order of arrival, each in a savepoint of its own. If a block throws, or leaves a deferred
///   foreign key violated, only its own changes are undone. All calls return after the commit. If the commit fails, the
///   calls that have no error of their own get its error.
/// - A block sees the changes of earlier blocks in its transaction. They are not committed yet, but they can only be
///   lost together with the block's own changes: no call returns before the commit.
/// - If a statement makes SQLite roll back the whole transaction, the earlier blocks of the shared transaction fail
///   too, with an error that says so. Causes are `ON CONFLICT ROLLBACK`, a full disk, `interrupt()` and a statement's
///   time limit.
/// - A block does not join a transaction that is older than ``Configuration/WriteBatching/maximumDuration``, or that
///   would be older when the block ends, if it takes as long as recent blocks. If a block takes longer than expected,
///   the earlier blocks have to wait, and a warning is logged. So a block must never wait for what another caller does
///   after its `write` has returned.
/// - `alone` keeps a block out of shared transactions. Use it for a block that takes long, that may roll back the whole
///   transaction, that must not wait for the blocks of others, or that changes much: a transaction with savepoints
///   keeps its changes in memory until it ends.
/// - If a call in a block fails and nobody notices the failure, the block is undone as if it had thrown
///   (``Configuration/failsBlocksAfterIgnoredErrors``).
/// - A block can neither begin nor end a transaction, but it can use savepoints. `PRAGMA defer_foreign_keys` ends with
///   the block; other pragmas stay in effect on the connection.
/// - `lastInsertRowId`, `changes` and temporary tables belong to the connection, so they may come from an earlier
///   block.
public protocol DatabaseAccess: Sendable {
    /// Runs the block with a connection, and returns its result.
    /// - Throws: the block's error; a ``DatabaseError`` if there was no connection, and the block was not called; a
    ///   ``DatabaseError`` if the block left a transaction open, which was rolled back.
    @_disfavoredOverload
    @discardableResult
    func inDatabase<T>(_ block: (Database) throws -> T) throws -> T

    /// Runs the block in a deferred transaction, and returns its result. All queries of the block see the same state of
    /// the store. A statement that writes is an error.
    /// - Throws: the block's error, or a ``DatabaseError`` if the connection or BEGIN failed.
    @discardableResult
    func read<T>(_ block: (Database) throws -> T) throws -> T

    /// Like ``read(_:)-(_)``, but waits without blocking a thread.
    ///
    /// If the task is cancelled, a call that waits ends, and a running statement is stopped.
    /// - Throws: as ``read(_:)-(_)``; `CancellationError` if the task was cancelled.
    @discardableResult
    func read<T: Sendable>(_ block: @Sendable (Database) throws -> T) async throws -> T

    /// Runs the block in an IMMEDIATE transaction, which is committed before the call returns, and returns the block's
    /// result. A thrown error undoes the block.
    /// - Parameters:
    ///   - alone: whether the block has the transaction to itself. If false, it may share one with concurrent calls.
    ///   - block: what to do with the connection, which is lent for the call.
    /// - Throws: the block's error, or a ``DatabaseError`` if the connection, BEGIN or COMMIT failed.
    @discardableResult
    func write<T>(alone: Bool, _ block: (Database) throws -> T) throws -> T

    /// Like ``write(alone:_:)-(_,_)``, but waits without blocking a thread.
    ///
    /// If the task is cancelled, a call that waits ends, and a running statement of the block is stopped. But if
    /// stopping it would roll back the work of others, the statement is allowed to finish. A block that is cancelled
    /// before its end is rolled back, even if it only computes. A block that has already ended in a shared transaction
    /// is committed.
    /// - Throws: as the synchronous form. `CancellationError` if the task was cancelled; nothing of the block is kept
    ///   then.
    @discardableResult
    func write<T: Sendable>(alone: Bool, _ block: @Sendable (Database) throws -> T) async throws -> T

    /// Runs the block on the writer's connection without a transaction: for `VACUUM`, pragmas, and transactions of the
    /// block itself.
    /// - Throws: as ``inDatabase(_:)-(_)``, also if the block left a transaction open, which was rolled back.
    @discardableResult
    func writeWithoutTransaction<T>(_ block: (Database) throws -> T) throws -> T

    /// Like the synchronous form, but waits without blocking a thread, and ends early if the task is cancelled.
    /// - Throws: as the synchronous form; `CancellationError` if the task was cancelled.
    @discardableResult
    func writeWithoutTransaction<T: Sendable>(
        _ block: @Sendable (Database) throws -> T
    ) async throws -> T

    /// Runs the block on the writer's connection, without a transaction, while no other block of the queue or pool
    /// runs.
    ///
    /// First the call waits for the blocks that are running, and keeps no others out. Then it keeps new blocks out for
    /// a fraction of a second, writers last. If that was not enough, it lets them in again, and keeps them out for
    /// longer the next time.
    /// - Parameters:
    ///   - limit: how long to wait at most; `nil` for no limit.
    ///   - block: what to do alone.
    /// - Throws: the block's error; ``DatabaseError/Reason/busy`` when the limit has passed. Others are then no longer
    ///   kept out.
    @discardableResult
    func barrier<T>(waitingAtMost limit: Duration?, _ block: (Database) throws -> T) throws -> T

    /// Like the synchronous form, but waits without blocking a thread. If the task is cancelled, a call that waits
    /// ends, and others are no longer kept out.
    /// - Throws: as the synchronous form; `CancellationError` if the task was cancelled.
    @discardableResult
    func barrier<T: Sendable>(waitingAtMost limit: Duration?, _ block: @Sendable (Database) throws -> T) async throws
        -> T

    /// Gives back the page caches and cached statements of connections that nobody uses now. The connections stay open.
    /// The call does not wait, and may be made anywhere. Later reads have to read from the disk again.
    func releaseMemory()

    /// Ends the use of the queue or pool for good, and closes its connections, for example when a service stops.
    ///
    /// The call waits for calls that already run or wait. Their blocks may still call the queue or pool. New calls fail
    /// with ``DatabaseError/Reason/shutDown``.
    /// - Parameter grace: how long to wait. After that, calls that still wait fail with the same error, running
    ///   statements are stopped, and what was not committed is rolled back. `nil`, the default, waits without a limit.
    ///   Cancelling the task that shuts down has the same effect as the end of the grace.
    func shutDown(interruptingAfter grace: Duration?) async
}

extension DatabaseAccess {
    /// Like `write(alone: false)`.
    /// - Throws: as `write(alone: false)`.
    @discardableResult
    public func write<T>(_ block: (Database) throws -> T) throws -> T {
        try write(alone: false, block)
    }

    /// Like `barrier(waitingAtMost: nil)`.
    /// - Throws: as the form with a limit, which never passes.
    @discardableResult
    public func barrier<T>(_ block: (Database) throws -> T) throws -> T {
        try barrier(waitingAtMost: nil, block)
    }

    /// Like `barrier(waitingAtMost: nil)`, but waits without blocking a thread.
    /// - Throws: as the form with a limit, which never passes; `CancellationError` if the task was cancelled.
    @discardableResult
    public func barrier<T: Sendable>(_ block: @Sendable (Database) throws -> T) async throws -> T {
        try await barrier(waitingAtMost: nil, block)
    }

    /// Shuts down like ``shutDown(interruptingAfter:)``, and waits without a limit.
    public func shutDown() async {
        await shutDown(interruptingAfter: nil)
    }

    /// Like `write(alone: false)`, but waits without blocking a thread.
    /// - Throws: as the synchronous form. `CancellationError` if the task was cancelled; nothing of the block is kept
    ///   then.
    @discardableResult
    public func write<T: Sendable>(_ block: @Sendable (Database) throws -> T) async throws -> T {
        try await write(alone: false, block)
    }
}

/// Calls whose blocks return values and throw.
extension DatabaseAccess {
    /// Runs the block in an IMMEDIATE transaction, commits, and returns the block's result. A thrown error rolls back.
    /// - Throws: the block's error, or a ``DatabaseError`` if the connection, BEGIN or COMMIT failed.
    @_disfavoredOverload
    @discardableResult
    public func inTransaction<T>(_ block: (Database) throws -> T) throws -> T {
        try transaction(.immediate, block)
    }

    /// Like ``inTransaction(_:)->T``, but DEFERRED: the transaction takes locks when it needs them.
    @discardableResult
    public func inDeferredTransaction<T>(_ block: (Database) throws -> T) throws -> T {
        try transaction(.deferred, block)
    }

    /// Like ``inTransaction(_:)->T``.
    @discardableResult
    public func inImmediateTransaction<T>(_ block: (Database) throws -> T) throws -> T {
        try transaction(.immediate, block)
    }

    /// Like ``inTransaction(_:)->T``, but EXCLUSIVE: the transaction keeps all others out (in WAL mode only other
    /// writers).
    @discardableResult
    public func inExclusiveTransaction<T>(_ block: (Database) throws -> T) throws -> T {
        try transaction(.exclusive, block)
    }

    /// Runs the block in a savepoint, keeps its changes, and returns its result. A thrown error undoes the changes.
    /// - Throws: the block's error, or a ``DatabaseError`` if the connection could not be had, or the savepoint not be
    ///   started or released.
    @discardableResult
    public func inSavePoint<T>(_ block: (Database) throws -> T) throws -> T {
        try inDatabase { db in try db.savepoint { try block(db) } }
    }

    private func transaction<T>(_ kind: Database.TransactionKind, _ block: (Database) throws -> T) throws -> T {
        try inDatabase { db in try db.inTransaction(kind) { try block(db) } }
    }
}

/// FMDB's forms of these calls. Errors that FMDB ignores are returned: those of opening the connection, of BEGIN and of
/// COMMIT. Nothing of the block is kept then. If there is no connection or BEGIN failed, the block is not called.
///
/// A nested call could only wait for itself, so it ends the process with a message.
extension DatabaseAccess {
    /// Runs the block with a connection.
    /// - Returns: the error of the connection, or of a transaction that the block left open; otherwise `nil`.
    @discardableResult
    public func inDatabase(_ block: (Database) -> Void) -> (any Error)? {
        visit("inDatabase") { db in
            block(db)
            return nil
        }
    }

    /// Runs the block in an EXCLUSIVE transaction, as FMDB does. It is rolled back if the block sets the flag.
    /// - Returns: the error of the connection, of BEGIN or of COMMIT; `nil` if the block was committed, or rolled back by its
    ///   flag.
    @discardableResult
    public func inTransaction(_ block: (Database, UnsafeMutablePointer<ObjCBool>) -> Void) -> (any Error)? {
        visit("inTransaction") { db in db.inTransaction(.exclusive) { flag in block(db, flag) } }
    }

    /// Runs the block in a DEFERRED transaction. It is rolled back if the block sets the flag.
    /// - Returns: the error of the connection, of BEGIN or of COMMIT; `nil` if the block was committed, or rolled back by its
    ///   flag.
    @discardableResult
    public func inDeferredTransaction(
        _ block: (Database, UnsafeMutablePointer<ObjCBool>) -> Void
    ) -> (any Error)? {
        visit("inDeferredTransaction") { db in db.inTransaction(.deferred) { flag in block(db, flag) } }
    }

    /// Runs the block in an EXCLUSIVE transaction. It is rolled back if the block sets the flag.
    /// - Returns: the error of the connection, of BEGIN or of COMMIT; `nil` if the block was committed, or rolled back by its
    ///   flag.
    @discardableResult
    public func inExclusiveTransaction(
        _ block: (Database, UnsafeMutablePointer<ObjCBool>) -> Void
    ) -> (any Error)? {
        visit("inExclusiveTransaction") { db in db.inTransaction(.exclusive) { flag in block(db, flag) } }
    }

    /// Runs the block in an IMMEDIATE transaction. It is rolled back if the block sets the flag.
    /// - Returns: the error of the connection, of BEGIN or of COMMIT; `nil` if the block was committed, or rolled back by its
    ///   flag.
    @discardableResult
    public func inImmediateTransaction(
        _ block: (Database, UnsafeMutablePointer<ObjCBool>) -> Void
    ) -> (any Error)? {
        visit("inImmediateTransaction") { db in db.inTransaction(.immediate) { flag in block(db, flag) } }
    }

    /// Runs the block in a savepoint. It is rolled back if the block sets the flag.
    /// - Returns: the error of the connection, or of starting or ending the savepoint; otherwise `nil`.
    @discardableResult
    public func inSavePoint(_ block: (Database, UnsafeMutablePointer<ObjCBool>) -> Void) -> (any Error)? {
        visit("inSavePoint") { db in db.inSavePoint { flag in block(db, flag) } }
    }

    private func visit(_ call: String, _ body: (Database) -> (any Error)?) -> (any Error)? {
        do {
            return try inDatabase { (db) throws -> (any Error)? in body(db) }
        } catch let error as DatabaseError where error == .nestedCall {
            // A returned error could be ignored, and then the block's work would be missing unnoticed.
            fatalError("\(Self.self).\(call): \(error.message)")
        } catch {
            return error
        }
    }
}

extension DatabaseError {
    static let nestedCall = DatabaseError(
        extendedCode: SQLITE_MISUSE,
        reason: .misuse,
        message: """
            called from within a block of the same queue, where it would wait for itself for ever. Use the Database \
            that the block was given.
            """
    )
}
