public import Foundation

/// One connection that many threads and tasks share: FMDB's `FMDatabaseQueue`. Blocks run one at a time, by priority
/// and then in the order of arrival. FMDB's calls, and the other calls in synchronous code, run their blocks on the
/// caller's thread, which waits. Tasks wait without blocking a thread.
///
/// Files are opened in WAL mode with a page cache of 32 MiB, unless the configuration says otherwise. A new file
/// without a key only gets these settings at its second opening, because `setKey(_:)` may follow in a block. If the
/// connection was closed, the next block opens it again with the same key. Result sets end with the block that made
/// them.
///
/// A call of the queue from within one of its own blocks could only wait for itself. It throws `SQLITE_MISUSE` if the
/// call can throw, and traps with a message if it cannot.
public final class DatabaseQueue: DatabaseAccess {
    /// The path as given; `nil` for a database in memory.
    public let path: String?
    /// The `SQLITE_OPEN_…` flags for every opening.
    public let openFlags: Int32
    /// The VFS for every opening; `nil` for the default VFS.
    public let vfsName: String?
    let reception: Reception
    let writer: Writer
    let rotation = RotationGate()
    private let interrupter: Interrupter
    let changeHub: ChangeHub
    /// `nil` without a ``Configuration/replication``.
    let shipper: Shipper?

    /// Opens a database in memory, which exists as long as the queue. Traps if opening fails, for example because there
    /// is not enough memory.
    public convenience init() {
        do {
            try self.init(path: nil, configuration: .asInFMDB)
        } catch {
            fatalError("DatabaseQueue(): \(error)")
        }
    }

    /// Opens the database at once. Returns `nil` on failure; ``init(path:configuration:)`` throws the reason.
    public convenience init?(path aPath: String?) {
        try? self.init(path: aPath, configuration: .asInFMDB)
    }

    /// Opens the file of a URL. Returns `nil` on failure.
    public convenience init?(url: URL?) {
        self.init(path: url?.path)
    }

    /// Opens the database with `SQLITE_OPEN_…` flags, which are also used for every reopening. Returns `nil` on
    /// failure.
    public convenience init?(path aPath: String?, flags openFlags: Int32) {
        self.init(path: aPath, flags: openFlags, vfs: nil)
    }

    /// Opens the file of a URL with `SQLITE_OPEN_…` flags. Returns `nil` on failure.
    public convenience init?(url: URL?, flags openFlags: Int32) {
        self.init(path: url?.path, flags: openFlags, vfs: nil)
    }

    /// Opens the database through a named VFS. Returns `nil` on failure.
    public convenience init?(path aPath: String?, flags openFlags: Int32, vfs vfsName: String?) {
        try? self.init(path: aPath, configuration: .asInFMDB, flags: openFlags, vfs: vfsName)
    }

    /// Opens the file of a URL through a named VFS. Returns `nil` on failure.
    public convenience init?(url: URL?, flags openFlags: Int32, vfs vfsName: String?) {
        self.init(path: url?.path, flags: openFlags, vfs: vfsName)
    }

    /// Opens the database, and verifies the key.
    /// - Throws: ``DatabaseError``, as ``Database/openVerified()`` does.
    public convenience init(path: String?, configuration: Configuration) throws {
        try self.init(path: path, configuration: configuration, flags: configuration.flags, vfs: nil)
    }

    private init(path: String?, configuration: Configuration, flags: Int32, vfs: String?) throws(DatabaseError) {
        let file = Database.absolute(path)
        let configuration = configuration.forSharedUse
        let database = Database(path: path, absolute: file, configuration: configuration, gate: ThreadGate())
        database.enter()
        defer { database.leave() }
        self.path = path
        self.openFlags = flags
        self.vfsName = vfs
        interrupter = database.interrupter
        changeHub = database.additions.hooks.changes.hub
        let instruments = Instruments(path: file, replicates: configuration.replication != nil)
        let reception = Reception(readers: 0, lends: false, instruments: instruments)
        let writer = Writer(database: database, limits: configuration.writeBatching, reception: reception) {
            db throws(DatabaseError) in
            try db.reopen()
        }
        let shipper = Shipper.of(file, configuration, instruments)
        database.shipper = shipper
        shipper?.takeTurns(of: writer)
        guard database.open(withFlags: flags, vfs: vfs) else {
            shipper?.end()
            throw database.recordedError ?? .notOpen
        }
        (self.reception, self.writer, self.shipper) = (reception, writer, shipper)
    }

    deinit {
        writer.closeWhenIdle()
        shipper?.end()
    }

    @_disfavoredOverload
    @discardableResult
    public func inDatabase<T>(_ block: (Database) throws -> T) throws -> T {
        try writer.inDatabase(block)
    }

    /// Whether the calling thread is inside a block of this queue. Calls of the queue are an error there.
    public var isInsideBlock: Bool { reception.isInside }

    /// How long a call waits for its turn before it fails as busy; `nil`, the default, for no limit.
    public var maximumWait: Duration? {
        get { reception.maximumWait.map { Duration(clampingSeconds: $0) } }
        set { reception.maximumWait = newValue?.seconds }
    }

    // MARK: Changes

    /// Returns the changes to some tables that are committed from now on: see ``Database/changes(in:database:)``. Does
    /// not wait for the queue, and may be called anywhere, also in blocks.
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

    /// Stops the statement that is running in a block. It fails with `SQLITE_INTERRUPT`. May be called on any thread.
    /// https://www.sqlite.org/c3ref/interrupt.html
    public func interrupt() { _ = interrupter.interrupt() }

    /// Like ``Database/checkpoint(_:)``, in a block of its own.
    public func checkpoint(_ checkpointMode: CheckpointMode) throws {
        try inDatabase { db in try db.checkpoint(checkpointMode) }
    }

    /// Like ``Database/checkpoint(_:name:)``, in a block of its own.
    public func checkpoint(_ checkpointMode: CheckpointMode, name: String?) throws {
        try inDatabase { db in try db.checkpoint(checkpointMode, name: name) }
    }

    /// Like ``Database/checkpoint(_:name:logFrameCount:checkpointCount:)``, in a block of its own.
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

    /// Waits for a turn, and closes the connection. If the turn does not come within ``maximumWait``, the
    /// connection is closed when the present turn ends. The next block opens it again. Traps within a block of the
    /// queue.
    ///
    /// With a ``Configuration/replication``, what was committed is shipped, in ``maximumWait`` or 30 seconds. The log stays
    /// beside the store, so that the next opening goes on there.
    public func close() {
        guard !isInsideBlock else { fatalError("DatabaseQueue.close: \(DatabaseError.nestedCall.message)") }
        let patience = maximumWait?.seconds ?? Shipper.patience
        do {
            try writer.closeInTurn { [shipper] close in
                if let shipper { shipper.close(within: patience, close) } else { close() }
            }
        } catch {
            // The turn did not come in time, or the queue was shut down.
            writer.closeWhenIdle()
            shipper?.letGo(ships: true, within: patience)
        }
    }

    public func releaseMemory() { writer.releaseMemory() }

    public func shutDown(interruptingAfter grace: Duration?) async {
        let began = Shipper.now
        let supervision = Supervisions([writer.database])
        await reception.shutDown(interruptingAfter: grace) { supervision.stop() }
        changeHub.finish()
        let close: @Sendable () -> Void = { [writer] in writer.closeWhenIdle() }
        guard let shipper else { return await onOtherThread(close) }
        await shipper.shutDown(since: began, within: grace, close)
    }
}
