public import Foundation

/// What ``DatabaseQueue`` and ``DatabasePool`` have in common: blocks that are lent a connection, on the thread of the
/// caller, who waits.
public protocol DatabaseAccess: Sendable {
    /// Runs the block with a connection, and returns its result.
    /// - Throws: the block's error, or a ``DatabaseError`` if no connection could be had; the block was not called then.
    @_disfavoredOverload
    @discardableResult
    func inDatabase<T>(_ block: (Database) throws -> T) throws -> T
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
