public import Foundation

/// One connection that many threads and tasks share: FMDB's `FMDatabaseQueue`. Blocks run one at a time, by priority and
/// then in order of arrival. FMDB's calls, and the others in synchronous code, run them on the thread of the caller, who
/// waits; tasks wait without a thread.
///
/// Files are opened in WAL mode with a page cache of 32 MiB, unless the configuration says otherwise; a new file without
/// a key only from its second opening on, because `setKey(_:)` may follow in a block. The connection is opened again,
/// with the same key, if it was closed. Result sets end with the block that made them.
///
/// A call of the queue from within one of its own blocks could only wait for itself: it throws `SQLITE_MISUSE` where
/// the call can throw, and traps with a message where it cannot.
public final class DatabaseQueue: DatabaseAccess {
    /// The path as given; `nil` in memory.
    public let path: String?
    /// The `SQLITE_OPEN_…` flags of every opening.
    public let openFlags: Int32
    /// The VFS of every opening; `nil` for the default.
    public let vfsName: String?
    let reception: Reception
    let writer: Writer
    let rotation = RotationGate()
    private let interrupter: Interrupter
    let changeHub: ChangeHub

    /// Opens a database in memory, which ends with the queue. It traps if there is not even memory for that.
    public convenience init() {
        do {
            try self.init(path: nil, configuration: Configuration())
        } catch {
            fatalError("DatabaseQueue(): \(error)")
        }
    }

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

    /// Opens the file of a URL through a named VFS; `nil` on failure.
    public convenience init?(url: URL?, flags openFlags: Int32, vfs vfsName: String?) {
        self.init(path: url?.path, flags: openFlags, vfs: vfsName)
    }

    /// Opens, and proves the key right.
    /// - Throws: ``DatabaseError``, as ``Database/openVerified()``.
    public convenience init(path: String?, configuration: Configuration) throws {
        try self.init(path: path, configuration: configuration, flags: configuration.flags, vfs: nil)
    }

    private init(path: String?, configuration: Configuration, flags: Int32, vfs: String?) throws(DatabaseError) {
        let database = Database(path: path, configuration: configuration.forSharedUse, gate: ThreadGate())
        database.enter()
        defer { database.leave() }
        self.path = path
        self.openFlags = flags
        self.vfsName = vfs
        interrupter = database.interrupter
        changeHub = database.additions.hooks.changes.hub
        guard database.open(withFlags: flags, vfs: vfs) else { throw database.recordedError ?? .notOpen }
        reception = Reception(readers: 0, lends: false, instruments: Instruments(path: path))
        writer = Writer(database: database, limits: configuration.writeBatching, reception: reception) {
            db throws(DatabaseError) in
            try db.reopen()
        }
    }

    deinit {
        writer.closeWhenIdle()
    }

    @_disfavoredOverload
    @discardableResult
    public func inDatabase<T>(_ block: (Database) throws -> T) throws -> T {
        try writer.inDatabase(block)
    }

    /// Whether the calling thread is inside a block of this queue, where the queue's own calls are an error.
    public var isInsideBlock: Bool { reception.isInside }

    /// Seconds to wait for a turn before the call fails as busy; `nil`, the default, for ever.
    public var maximumWaitTimeInterval: TimeInterval? {
        get { reception.maximumWait }
        set { reception.maximumWait = newValue }
    }

    // MARK: Changes

    /// The changes to some tables that blocks commit which begin from now on: see ``Database/changes(in:database:)``.
    /// Does not wait for the queue, and may be called anywhere.
    public func changes(in tables: Set<String>, database: String = "main") -> DatabaseChangeSequence {
        DatabaseChangeSequence(tables: tables, database: database, hub: changeHub)
    }

    // MARK: Reading and writing

    @discardableResult
    public func read<T>(_ block: (Database) throws -> T) throws -> T {
        try writer.read(block)
    }

    @discardableResult
    public func read<T: Sendable>(_ block: @Sendable (Database) throws -> T) async throws -> T {
        try await writer.read(block)
    }

    @discardableResult
    public func write<T>(alone: Bool, _ block: (Database) throws -> T) throws -> T {
        try writer.write(alone: alone, block)
    }

    @discardableResult
    public func write<T: Sendable>(
        alone: Bool,
        _ block: @Sendable (Database) throws -> T
    ) async throws -> T {
        try await writer.write(alone: alone, block)
    }

    @discardableResult
    public func writeWithoutTransaction<T>(_ block: (Database) throws -> T) throws -> T {
        try writer.inDatabase(block)
    }

    @discardableResult
    public func writeWithoutTransaction<T: Sendable>(
        _ block: @Sendable (Database) throws -> T
    ) async throws -> T {
        try await writer.inDatabase(block)
    }

    @discardableResult
    public func barrier<T>(waitingAtMost limit: Duration?, _ block: (Database) throws -> T) throws -> T {
        try writer.barrier(limit: limit?.seconds, block)
    }

    @discardableResult
    public func barrier<T: Sendable>(
        waitingAtMost limit: Duration?,
        _ block: @Sendable (Database) throws -> T
    ) async throws -> T {
        try await writer.barrier(limit: limit?.seconds, block)
    }

    // MARK: Life

    /// Stops the statement that is running in a block, which then fails with `SQLITE_INTERRUPT`. From any thread.
    /// https://www.sqlite.org/c3ref/interrupt.html
    public func interrupt() { _ = interrupter.interrupt() }

    /// As ``Database/checkpoint(_:)``, as a block of its own.
    public func checkpoint(_ checkpointMode: CheckpointMode) throws {
        try inDatabase { db in try db.checkpoint(checkpointMode) }
    }

    /// As ``Database/checkpoint(_:name:)``, as a block of its own.
    public func checkpoint(_ checkpointMode: CheckpointMode, name: String?) throws {
        try inDatabase { db in try db.checkpoint(checkpointMode, name: name) }
    }

    /// As ``Database/checkpoint(_:name:logFrameCount:checkpointCount:)``, as a block of its own.
    public func checkpoint(
        _ checkpointMode: CheckpointMode,
        name: String?,
        logFrameCount: UnsafeMutablePointer<Int32>?,
        checkpointCount: UnsafeMutablePointer<Int32>?
    ) throws {
        try inDatabase { db in
            try db.checkpoint(
                checkpointMode,
                name: name,
                logFrameCount: logFrameCount,
                checkpointCount: checkpointCount
            )
        }
    }

    /// Closes the connection, where others use it for longer than the maximum wait after them; the next block opens it
    /// again.
    public func close() {
        guard !isInsideBlock else { fatalError("DatabaseQueue.close: \(DatabaseError.nestedCall.message)") }
        do {
            try writer.closeInTurn()
        } catch {
            // Its turn did not come in time.
            writer.closeWhenIdle()
        }
    }

    public func releaseMemory() { writer.releaseMemory() }

    public func shutDown(interruptingAfter grace: Duration?) async {
        let supervision = Supervisions([writer.database])
        await reception.shutDown(interruptingAfter: grace) { supervision.stop() }
        await onOtherThread { [writer] in writer.closeWhenIdle() }
    }
}
