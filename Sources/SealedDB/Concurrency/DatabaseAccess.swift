public import Foundation

/// What ``DatabaseQueue`` and ``DatabasePool`` have in common: blocks that are lent a connection.
///
/// The calls without `await` run their block on the thread of the caller, who waits. Do not make them from a task where it
/// can be helped: they hold one of the few threads that all tasks share. The calls with `await` wait without a thread, run
/// their block in the caller's task (task-local values and `Task.isCancelled` are the task's) on a thread of the queue or
/// pool, in the order of the tasks' priorities, and end early when their task is cancelled.
///
/// A call that could only wait for itself, because it is made in a block that others wait for, is refused with
/// `SQLITE_MISUSE` and the names of both.
///
/// ### What `write` promises
///
/// - A block runs in an IMMEDIATE transaction, once. When the call returns, its changes are committed, and durable as far as
///   ``Configuration/synchronous`` says. When it throws, nothing of the block is kept.
/// - Calls that wait at the same time share one transaction and its commit: their blocks run one after the other, by
///   priority and then in order of arrival, each in a savepoint of its own. A block that throws, or leaves a deferred
///   foreign key violated, is undone alone. All callers go on after the commit; if it fails, all of them get its error.
/// - A block sees the changes of those before it that share its transaction. They are not committed yet, but can only be
///   lost together with its own: no outcome leaves the call before the commit.
/// - Where a statement makes SQLite roll the whole transaction back (`ON CONFLICT ROLLBACK`, a full disk, `interrupt()`, a
///   statement's time-out), the blocks before it in the shared transaction fail too, with an error that says so.
/// - Nobody joins a transaction that is older than ``Configuration/WriteBatching/maximumDuration``, or would be then if the
///   block takes as long as others did lately. A block that takes longer all the same keeps those before it waiting, which is
///   logged. So a block must never wait for what another caller does after its `write` has returned.
/// - `alone` keeps a block out of shared transactions: for one that takes long, may roll back in such a way, must not wait
///   for others' blocks, or changes much: what a transaction with savepoints changes stays in memory until it ends.
/// - A block in which a call failed and nobody looked at the failure is undone as if it had thrown
///   (``Configuration/failsBlocksAfterIgnoredErrors``).
/// - Within a block transactions can be neither begun nor ended; savepoints can. `PRAGMA defer_foreign_keys` ends with the
///   block; other pragmas hold for the connection.
/// - `lastInsertRowId`, `changes` and temporary tables belong to the connection, and so may stem from an earlier block.
public protocol DatabaseAccess: Sendable {
    /// Runs the block with a connection, and returns its result.
    /// - Throws: the block's error, or a ``DatabaseError`` if no connection could be had; the block was not called then. Also
    ///   if the block left a transaction open, which was rolled back.
    @_disfavoredOverload
    @discardableResult
    func inDatabase<T>(_ block: (Database) throws -> T) throws -> T

    /// Runs the block in a deferred transaction, in which all its queries see the same state of the store, and returns
    /// its result. A statement that writes is an error.
    /// - Throws: the block's error, or a ``DatabaseError`` if the connection or BEGIN failed.
    @discardableResult
    func read<T>(_ block: (Database) throws -> T) throws -> T

    /// As ``read(_:)-(_)``, waiting without a thread.
    ///
    /// When the task is cancelled, a call that waits ends, and a statement that runs is stopped.
    /// - Throws: as ``read(_:)-(_)``; `CancellationError` if the task was cancelled.
    @discardableResult
    func read<T: Sendable>(_ block: @Sendable (Database) throws -> T) async throws -> T

    /// Runs the block in an IMMEDIATE transaction that is committed before the call returns, and returns its result; a
    /// thrown error undoes it.
    /// - Parameter alone: whether it has the transaction to itself; else it may share one with concurrent calls.
    /// - Throws: the block's error, or a ``DatabaseError`` if the connection, BEGIN or COMMIT failed.
    @discardableResult
    func write<T>(alone: Bool, _ block: (Database) throws -> T) throws -> T

    /// As ``write(alone:_:)-(_,_)``, waiting without a thread.
    ///
    /// When the task is cancelled, a call that waits ends, and a running block is stopped at its statement, which is let
    /// finish if others' work would be rolled back with it. A block that is cancelled before its end is rolled back, also if
    /// it only computes; one that has ended in a shared transaction is committed all the same.
    /// - Throws: as above; `CancellationError` if the task was cancelled. Nothing of the block is kept then.
    @discardableResult
    func write<T: Sendable>(alone: Bool, _ block: @Sendable (Database) throws -> T) async throws -> T

    /// Runs the block on the connection that writes, without a transaction: for `VACUUM`, pragmas and transactions of its
    /// own.
    /// - Throws: as ``inDatabase(_:)-(_)``, also if the block left a transaction open, which was rolled back.
    @discardableResult
    func writeWithoutTransaction<T>(_ block: (Database) throws -> T) throws -> T

    /// As above, waiting without a thread, and ending early when the task is cancelled.
    @discardableResult
    func writeWithoutTransaction<T: Sendable>(
        _ block: @Sendable (Database) throws -> T
    ) async throws -> T

    /// Runs the block on the connection that writes, without a transaction, while no other block of the queue or pool runs.
    ///
    /// First it waits for those that are at work, and keeps nobody from going on. Then new ones wait, writers last, for a
    /// fraction of a second; if that was not enough they are let in again, and next time kept out for longer.
    /// - Parameter limit: how long to wait at most; `nil` for ever.
    /// - Throws: the block's error; ``DatabaseError/Reason/busy`` after that time, with nobody kept out any more.
    @discardableResult
    func barrier<T>(waitingAtMost limit: Duration?, _ block: (Database) throws -> T) throws -> T

    /// As above, waiting without a thread. When the task is cancelled, a call that waits ends, and nobody is kept out any
    /// more.
    @discardableResult
    func barrier<T: Sendable>(waitingAtMost limit: Duration?, _ block: @Sendable (Database) throws -> T) async throws
        -> T

    /// Gives memory back: page caches and kept statements of connections that nobody uses now, which stay open. It waits for
    /// nobody, and may be called anywhere; what comes next reads from the disk again.
    func releaseMemory()

    /// Ends the use of the queue or pool for good, and closes its connections: as a service that stops does.
    ///
    /// Calls that run or wait already are waited for, and their blocks may call the pool. New ones fail with
    /// ``DatabaseError/Reason/shutDown``.
    /// - Parameter grace: how long to wait; then those that wait fail likewise, running statements are stopped, and what
    ///   was not committed is rolled back. `nil`, the default, waits as long as it takes. Cancelling the task that shuts
    ///   down has the same effect as the end of the time.
    func shutDown(interruptingAfter grace: Duration?) async
}

extension DatabaseAccess {
    /// As `write(alone: false)`.
    @discardableResult
    public func write<T>(_ block: (Database) throws -> T) throws -> T {
        try write(alone: false, block)
    }

    /// As `barrier(waitingAtMost: nil)`.
    @discardableResult
    public func barrier<T>(_ block: (Database) throws -> T) throws -> T {
        try barrier(waitingAtMost: nil, block)
    }

    /// As `barrier(waitingAtMost: nil)`, waiting without a thread.
    @discardableResult
    public func barrier<T: Sendable>(_ block: @Sendable (Database) throws -> T) async throws -> T {
        try await barrier(waitingAtMost: nil, block)
    }

    /// Shuts down as ``shutDown(interruptingAfter:)``, waiting as long as it takes.
    public func shutDown() async {
        await shutDown(interruptingAfter: nil)
    }

    /// As `write(alone: false)`, waiting without a thread.
    @discardableResult
    public func write<T: Sendable>(_ block: @Sendable (Database) throws -> T) async throws -> T {
        try await write(alone: false, block)
    }
}

/// Blocks that return values and throw.
extension DatabaseAccess {
    /// Runs the block in an IMMEDIATE transaction, commits, and returns its result; a thrown error rolls back.
    /// - Throws: the block's error, or a ``DatabaseError`` if the connection, BEGIN or COMMIT failed.
    @_disfavoredOverload
    @discardableResult
    public func inTransaction<T>(_ block: (Database) throws -> T) throws -> T {
        try transaction(.immediate, block)
    }

    /// As ``inTransaction(_:)``, DEFERRED: takes locks as it needs them.
    @discardableResult
    public func inDeferredTransaction<T>(_ block: (Database) throws -> T) throws -> T {
        try transaction(.deferred, block)
    }

    /// As ``inTransaction(_:)``.
    @discardableResult
    public func inImmediateTransaction<T>(_ block: (Database) throws -> T) throws -> T {
        try transaction(.immediate, block)
    }

    /// As ``inTransaction(_:)``, EXCLUSIVE: keeps others out (in WAL mode: other writers).
    @discardableResult
    public func inExclusiveTransaction<T>(_ block: (Database) throws -> T) throws -> T {
        try transaction(.exclusive, block)
    }

    /// Runs the block in a savepoint, keeps its changes, and returns its result; a thrown error takes them back.
    @discardableResult
    public func inSavePoint<T>(_ block: (Database) throws -> T) throws -> T {
        try inDatabase { db in try db.savepoint { try block(db) } }
    }

    private func transaction<T>(_ kind: Database.TransactionKind, _ block: (Database) throws -> T) throws -> T {
        try inDatabase { db in try db.inTransaction(kind) { try block(db) } }
    }
}

/// FMDB's forms. What FMDB swallows is returned: the error of opening the connection, of BEGIN or of COMMIT, after which
/// nothing of the block is kept. The block is not called if there is no connection or BEGIN failed.
///
/// A nested call, which could only wait for itself, ends the process with a message.
extension DatabaseAccess {
    /// Runs the block with a connection.
    @discardableResult
    public func inDatabase(_ block: (Database) -> Void) -> (any Error)? {
        visit("inDatabase") { db in
            block(db)
            return nil
        }
    }

    /// Runs the block in an EXCLUSIVE transaction, as FMDB does, rolled back if the block sets the flag.
    @discardableResult
    public func inTransaction(_ block: (Database, UnsafeMutablePointer<ObjCBool>) -> Void) -> (any Error)? {
        visit("inTransaction") { db in db.inTransaction(.exclusive) { flag in block(db, flag) } }
    }

    /// Runs the block in a DEFERRED transaction, rolled back if the block sets the flag.
    @discardableResult
    public func inDeferredTransaction(
        _ block: (Database, UnsafeMutablePointer<ObjCBool>) -> Void
    ) -> (any Error)? {
        visit("inDeferredTransaction") { db in db.inTransaction(.deferred) { flag in block(db, flag) } }
    }

    /// Runs the block in an EXCLUSIVE transaction, rolled back if the block sets the flag.
    @discardableResult
    public func inExclusiveTransaction(
        _ block: (Database, UnsafeMutablePointer<ObjCBool>) -> Void
    ) -> (any Error)? {
        visit("inExclusiveTransaction") { db in db.inTransaction(.exclusive) { flag in block(db, flag) } }
    }

    /// Runs the block in an IMMEDIATE transaction, rolled back if the block sets the flag.
    @discardableResult
    public func inImmediateTransaction(
        _ block: (Database, UnsafeMutablePointer<ObjCBool>) -> Void
    ) -> (any Error)? {
        visit("inImmediateTransaction") { db in db.inTransaction(.immediate) { flag in block(db, flag) } }
    }

    /// Runs the block in a savepoint, rolled back if the block sets the flag.
    @discardableResult
    public func inSavePoint(_ block: (Database, UnsafeMutablePointer<ObjCBool>) -> Void) -> (any Error)? {
        visit("inSavePoint") { db in db.inSavePoint { flag in block(db, flag) } }
    }

    private func visit(_ call: String, _ body: (Database) -> (any Error)?) -> (any Error)? {
        do {
            return try inDatabase { (db) throws -> (any Error)? in body(db) }
        } catch let error as DatabaseError where error == .nestedCall {
            // The error could be discarded, and the block's work with it.
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

extension Duration {
    var seconds: Double { Double(components.seconds) + Double(components.attoseconds) / 1e18 }
}
