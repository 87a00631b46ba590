public import Foundation
import Synchronization

/// One connection that many threads share: FMDB's `FMDatabaseQueue`. Blocks run one at a time, in order of arrival, on
/// the thread of the caller, who waits.
///
/// Files are opened in WAL mode with a page cache of 32 MiB, unless the configuration says otherwise; a new file without
/// a key only from its second opening on, because `setKey(_:)` may follow in a block. The connection is opened again,
/// with the same key, if it was closed. Result sets end with the block that made them.
///
/// A call of the queue from within one of its own blocks could only wait for itself: it throws `SQLITE_MISUSE` where
/// the call can throw, and traps with a message where it cannot.
// @unchecked: `database` and `configuration` are only touched inside `serial`, one block at a time.
public final class DatabaseQueue: @unchecked Sendable {
    /// The path as given; `nil` in memory.
    public let path: String?
    private let database: Database
    private let serial = DispatchQueue(label: "SealedDB.DatabaseQueue")
    private let flags: Int32
    private let vfs: String?
    /// The thread that is inside a block; 0 for none.
    private let owner = Atomic<UInt>(0)

    /// Opens at once; `nil` on failure. Use ``init(path:configuration:)`` to learn the reason.
    public convenience init?(path aPath: String?) {
        try? self.init(path: aPath, configuration: Configuration())
    }

    /// Opens the file of a URL; `nil` on failure.
    public convenience init?(url: URL?) {
        self.init(path: url?.path)
    }

    /// Opens with `SQLITE_OPEN_…` flags, which every reopening uses; `nil` on failure.
    public convenience init?(path aPath: String?, flags openFlags: Int32) {
        self.init(path: aPath, flags: openFlags, vfs: nil)
    }

    /// Opens the file of a URL with `SQLITE_OPEN_…` flags; `nil` on failure.
    public convenience init?(url: URL?, flags openFlags: Int32) {
        self.init(path: url?.path, flags: openFlags, vfs: nil)
    }

    /// Opens through a named VFS; `nil` on failure.
    public convenience init?(path aPath: String?, flags openFlags: Int32, vfs vfsName: String?) {
        try? self.init(path: aPath, configuration: Configuration(), flags: openFlags, vfs: vfsName)
    }

    /// Opens, and proves the key right.
    /// - Throws: ``DatabaseError``, as ``Database/openVerified()``.
    public convenience init(path: String?, configuration: Configuration) throws {
        try self.init(path: path, configuration: configuration, flags: configuration.flags, vfs: nil)
    }

    private init(path: String?, configuration: Configuration, flags: Int32, vfs: String?) throws(DatabaseError) {
        var configuration = configuration
        if configuration.journalMode == nil { configuration.journalMode = .wal }
        if configuration.cacheSize == nil { configuration.cacheSize = 32 * 1024 }
        if configuration.synchronous == nil { configuration.synchronous = .full }
        self.path = path
        self.flags = flags
        self.vfs = vfs
        database = Database(path: path, configuration: configuration, threading: .gated)
        guard database.open(withFlags: flags, vfs: vfs) else { throw database.recordedError ?? .notOpen }
        database.connection?.leave()
    }

    deinit {
        database.connection?.enter()
        database.close()
    }

    /// The `SQLITE_OPEN_…` flags of every opening.
    public var openFlags: Int32 { flags }

    /// The VFS of every opening; `nil` for the default.
    public var vfsName: String? { vfs }

    // MARK: Blocks

    /// Runs the block with the connection. FMDB's form.
    /// - Returns: the error if the connection could not be reopened; the block was not called then.
    @discardableResult
    public func inDatabase(_ block: (Database) -> Void) -> (any Error)? {
        trapIfNested("inDatabase")
        return attempt { try visit { block(database) } }
    }

    /// Runs the block with the connection, and returns its result.
    /// - Throws: the block's error, or a ``DatabaseError`` if the connection could not be reopened.
    @_disfavoredOverload
    @discardableResult
    public func inDatabase<T>(_ block: (Database) throws -> T) throws -> T {
        try visit { try block(database) }
    }

    /// Runs the block in an EXCLUSIVE transaction, as FMDB does, rolled back if the block sets the flag.
    /// - Returns: the error of reopening, BEGIN or COMMIT, after which nothing of the block is kept; else `nil`.
    ///   The block is not called if BEGIN failed.
    @discardableResult
    public func inTransaction(_ block: (Database, UnsafeMutablePointer<ObjCBool>) -> Void) -> (any Error)? {
        transaction(.exclusive, "inTransaction", block)
    }

    /// Runs the block in an IMMEDIATE transaction, commits, and returns its result; a thrown error rolls back.
    /// - Throws: the block's error, or a ``DatabaseError`` if reopening, BEGIN or COMMIT failed.
    @_disfavoredOverload
    @discardableResult
    public func inTransaction<T>(_ block: (Database) throws -> T) throws -> T {
        try visit { try database.inTransaction(.immediate) { try block(database) } }
    }

    /// As ``inTransaction(_:)-(_)``, DEFERRED.
    @discardableResult
    public func inDeferredTransaction(
        _ block: (Database, UnsafeMutablePointer<ObjCBool>) -> Void
    ) -> (any Error)? {
        transaction(.deferred, "inDeferredTransaction", block)
    }

    /// As ``inTransaction(_:)-(_)``, EXCLUSIVE.
    @discardableResult
    public func inExclusiveTransaction(
        _ block: (Database, UnsafeMutablePointer<ObjCBool>) -> Void
    ) -> (any Error)? {
        transaction(.exclusive, "inExclusiveTransaction", block)
    }

    /// As ``inTransaction(_:)-(_)``, IMMEDIATE.
    @discardableResult
    public func inImmediateTransaction(
        _ block: (Database, UnsafeMutablePointer<ObjCBool>) -> Void
    ) -> (any Error)? {
        transaction(.immediate, "inImmediateTransaction", block)
    }

    /// Runs the block in a savepoint, rolled back if the block sets the flag.
    @discardableResult
    public func inSavePoint(_ block: (Database, UnsafeMutablePointer<ObjCBool>) -> Void) -> (any Error)? {
        trapIfNested("inSavePoint")
        var result: (any Error)?
        let failure = attempt { try visit { result = database.inSavePoint { flag in block(database, flag) } } }
        return failure ?? result
    }

    // MARK: Life

    /// Closes the connection; the next block opens it again.
    public func close() {
        trapIfNested("close")
        serial.sync {
            database.connection?.enter()
            database.close()
        }
    }

    /// Gives the store a new key by copy, verify, swap (see ``KeyRotation``). Callers meanwhile wait, and go on with
    /// the new key.
    /// - Parameter progress: called on this thread after each step; throwing stops the rotation.
    /// - Throws: ``DatabaseError``; unless its message says otherwise, the store is unchanged and the queue goes on with
    ///   the old key.
    @discardableResult
    public func rotateKey(
        to newKey: Key,
        progress: ((KeyRotation.Progress) throws -> Void)? = nil
    ) throws -> KeyRotation.Report {
        try visit { try database.rotateKey(to: newKey, progress: progress) }
    }

    // MARK: Serialisation

    private var isNested: Bool {
        owner.load(ordering: .sequentiallyConsistent) == UInt(pthread_self())
    }

    private func trapIfNested(_ call: String) {
        precondition(!isNested, "DatabaseQueue.\(call): \(DatabaseQueue.nestedMessage)")
    }

    private static let nestedMessage = """
        called from within a block of the same queue, where it would wait for itself for ever. Use the Database that \
        the block was given.
        """

    private func visit<T>(_ body: () throws -> T) throws -> T {
        guard !isNested else {
            throw DatabaseError(extendedCode: SQLITE_MISUSE, reason: .misuse, message: DatabaseQueue.nestedMessage)
        }
        return try serial.sync {
            owner.store(UInt(pthread_self()), ordering: .sequentiallyConsistent)
            defer { owner.store(0, ordering: .sequentiallyConsistent) }
            database.connection?.enter()
            try database.recording { () throws(DatabaseError) in try database.reopen() }
            defer {
                database.closeOpenResultSets()
                database.connection?.leave()
            }
            return try body()
        }
    }

    private func transaction(
        _ kind: Database.TransactionKind,
        _ call: String,
        _ block: (Database, UnsafeMutablePointer<ObjCBool>) -> Void
    ) -> (any Error)? {
        trapIfNested(call)
        var result: (any Error)?
        let failure = attempt {
            try visit { result = database.inTransaction(kind, flagged: { flag in block(database, flag) }) }
        }
        return failure ?? result
    }

    private func attempt(_ body: () throws -> Void) -> (any Error)? {
        do {
            try body()
            return nil
        } catch {
            return error
        }
    }
}
