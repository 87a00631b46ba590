public import Foundation

/// A pool of connections to one database, which blocks can use at the same time: FMDB's `FMDatabasePool`.
///
/// `read` and `write` divide the work: one connection writes, and up to ``Configuration/maximumReaderCount``
/// connections read. In WAL mode, which files get unless the configuration says otherwise, readers see the last commit
/// while the next transaction is being written, and nobody waits for readers. Automatic checkpoints are made by
/// one connection at a time. In a `write` block, `read` takes a connection of its own. Any other nesting of the two
/// throws.
///
/// FMDB's calls, such as `inDatabase`, lend further connections to blocks on the caller's thread. Their number is not
/// limited by default. These calls share no transaction: those that write wait for each other, and for `write`, for up
/// to the busy timeout. A nested call takes a second connection.
///
/// Connections are opened when they are needed, outside the pool's lock, and then kept. When a block ends, the result
/// sets that it has left open end, and a transaction that it has left open is rolled back. A database in memory belongs
/// to one connection: `read` and `write` then share one connection, and each of FMDB's calls may get another one.
// @unchecked: each connection is only used by the block that it is lent to, and the delegate's reference is under a
// lock.
public final class DatabasePool: DatabaseAccess, @unchecked Sendable {
    /// The path as given; `nil` for databases in memory, where each connection has its own database.
    public let path: String?
    private let file: String?
    /// The `SQLITE_OPEN_…` flags for every opening.
    public let openFlags: Int32
    /// The VFS for every opening; `nil` for the default VFS.
    public let vfsName: String?
    private let configuration: Configuration
    /// Where new connections get their keys. A rotation changes this.
    private let keys: Guarded<Keys>
    let rotation = RotationGate()
    let reception: Reception
    let changeHub = ChangeHub()
    let writer: Writer
    private let readers: Readers?
    private let lent = Guarded(Lent())
    private let snapshots = Guarded([WeakSnapshot]())
    /// Opens a connection other than the writer's, with the key that the pool has now. A rotation may have come since the
    /// connection was made or closed.
    private let open: (Database) throws(DatabaseError) -> Void
    let log: LogKeeper
    private let writeLine = WriteLine()
    /// `nil` without a ``Configuration/replication``.
    let shipper: Shipper?
    private let delegateUnderLock = Guarded(WeakDelegate())

    /// The lent connections, by the numbers of their places.
    // @unchecked: only the holder of a place uses the database of that place.
    private struct Lent: @unchecked Sendable {
        var databases: [Int: Database] = [:]
    }

    // @unchecked: the reference is set once, and any thread may read a weak reference.
    private struct WeakSnapshot: @unchecked Sendable {
        weak var snapshot: DatabaseSnapshot?
    }

    // @unchecked: the reference is only read and written under a lock.
    private struct WeakDelegate: @unchecked Sendable {
        weak var delegate: (any DatabasePoolDelegate)?
    }

    private struct Keys {
        let origin: KeyOrigin?
        let adopted: Key?

        /// If the pool has no key, a key that the connection's user has set stays.
        func give(to database: Database) {
            guard origin != nil || adopted != nil else { return }
            database.configuration.keyOrigin = origin
            database.adoptedKey = adopted
        }
    }

    /// Stores the path. Nothing is opened yet.
    public convenience init(path aPath: String?) {
        self.init(path: aPath, configuration: .asInFMDB)
    }

    /// Stores the path of a file URL. Nothing is opened yet.
    public convenience init(url: URL?) {
        self.init(path: url?.path)
    }

    /// Stores the path, and the `SQLITE_OPEN_…` flags for every opening. Nothing is opened yet.
    public convenience init(path aPath: String?, flags openFlags: Int32) {
        self.init(path: aPath, flags: openFlags, vfs: nil)
    }

    /// Stores the path of a file URL, and the `SQLITE_OPEN_…` flags for every opening. Nothing is opened yet.
    public convenience init(url: URL?, flags openFlags: Int32) {
        self.init(path: url?.path, flags: openFlags, vfs: nil)
    }

    /// Stores the path, and the `SQLITE_OPEN_…` flags and the name of a VFS for every opening. Nothing is opened yet.
    public convenience init(path aPath: String?, flags openFlags: Int32, vfs vfsName: String?) {
        self.init(path: aPath, configuration: .asInFMDB, flags: openFlags, vfs: vfsName)
    }

    /// Stores the path of a file URL, and the `SQLITE_OPEN_…` flags and the name of a VFS for every opening. Nothing is
    /// opened yet.
    public convenience init(url: URL?, flags openFlags: Int32, vfs vfsName: String?) {
        self.init(path: url?.path, flags: openFlags, vfs: vfsName)
    }

    /// Stores the path and the configuration. The first block opens a connection, and fails if the key is wrong.
    public convenience init(path: String?, configuration: Configuration) {
        self.init(path: path, configuration: configuration, flags: configuration.flags, vfs: nil)
    }

    private init(path: String?, configuration: Configuration, flags: Int32, vfs: String?) {
        let configuration = configuration.forSharedUse
        let file = Database.absolute(path)
        (self.path, self.file) = (path, file)
        self.configuration = configuration
        self.openFlags = flags
        self.vfsName = vfs
        let (hub, line) = (changeHub, writeLine)
        let instruments = Instruments(path: file, replicates: configuration.replication != nil)
        let shipper = Shipper.of(file, configuration, instruments)
        self.shipper = shipper
        func database() -> Database {
            let database = Database(path: path, absolute: file, configuration: configuration, gate: ThreadGate())
            database.enter()
            defer { database.leave() }
            database.supervision.writeLine = line
            database.additions.hooks.changes.hub = hub
            database.belongsToPool = true
            database.shipper = shipper
            return database
        }
        let isFile = Database.isFile(path)
        let cores = ProcessInfo.processInfo.activeProcessorCount
        // Each reader is a connection, with memory and file descriptors of its own.
        let limit = configuration.maximumReaderCount.map { min($0, 1024) }
        let count = isFile ? max(1, limit ?? min(max(4, 2 * cores), 16)) : 0
        let log = LogKeeper(maximumSize: configuration.maximumLogSize, instruments: instruments)
        self.log = log
        let reception = Reception(readers: count, lends: true, instruments: instruments)
        self.reception = reception
        let opening = Opening(flags: flags, vfs: vfs) { reception.maximumWait }
        writer = Writer(
            database: database(),
            limits: configuration.writeBatching,
            reception: reception,
            ready: { database throws(DatabaseError) in try opening.open(database) },
            afterTurn: { database in log.checkpoint(database) }
        )
        let databases = (0..<count).map { _ in database() }
        let keys = Guarded(Keys(origin: configuration.keyOrigin, adopted: nil))
        self.keys = keys
        let open = { (database: Database) throws(DatabaseError) in
            guard !database.isOpen else { return }
            keys.withLock { $0 }.give(to: database)
            try opening.open(database)
        }
        self.open = open
        readers = isFile ? Readers(databases: databases, reception: reception, open: open) : nil
        shipper?.takeTurns(of: writer)
        for database in databases + [writer.database] {
            database.supervision.whenReplaced = { [weak self] in self?.closeReplaced() }
        }
        log.empty = { [weak self, weak writer] done in
            DispatchQueue.global().async { [weak self, writer] in
                // If the barrier fails, the log counts as not emptied, as if readers needed it, and a later commit
                // tries again. So it does if it cannot be shipped: then nobody has to wait for it.
                let isEmpty: Bool? = try? {
                    // One that has given up does not read it.
                    let shipper = shipper?.isShipping == true ? shipper : nil
                    try shipper?.ship(within: LogKeeper.patience)
                    return try writer?.barrier(limit: LogKeeper.patience) { db in
                        try shipper?.letLogGo(within: LogKeeper.patience)
                        return LogKeeper.emptyLog(of: db)
                    }
                }()
                self?.closeForgotten()
                done(isEmpty == true)
            }
        }
    }

    deinit {
        closeAll()
        shipper?.end()
    }

    /// Decides about the connections of FMDB's calls and of snapshots. The pool does not retain it.
    public var delegate: (any DatabasePoolDelegate)? {
        get { delegateUnderLock.withLock { $0.delegate } }
        set {
            let new = WeakDelegate(delegate: newValue)
            delegateUnderLock.withLock { $0 = new }
        }
    }

    // MARK: Limits and counts

    /// How many connections FMDB's calls may have open; 0, the default, for no limit. The connections of `read` and
    /// `write`, and those of snapshots, do not count. At the limit, callers wait in the order of their arrival. A call
    /// that could only wait for itself throws.
    public var maximumNumberOfDatabasesToCreate: UInt {
        get { reception.look { $0.maximumLent } }
        set { reception.setMaximumLent(newValue) }
    }

    /// How long a call waits for a connection before it fails as busy; `nil`, the default, for no limit.
    public var maximumWait: Duration? {
        get { reception.maximumWait.map { Duration(clampingSeconds: $0) } }
        set { reception.maximumWait = newValue?.seconds }
    }

    /// The number of open connections that no block uses.
    public var countOfCheckedInDatabases: UInt {
        reception.look { books in books.connectionCount - books.busyCount }
    }

    /// The number of connections that are lent to blocks.
    public var countOfCheckedOutDatabases: UInt { reception.look { $0.busyCount } }

    /// The number of all connections, including those of `read` and `write`.
    public var countOfOpenDatabases: UInt { reception.look { $0.connectionCount } }

    /// Closes the connections: idle ones now, and lent ones when their blocks end. Connections of FMDB's calls are no
    /// longer counted from now on.
    ///
    /// With a ``Configuration/replication``, what was committed is shipped, in ``maximumWait`` or 30 seconds, unless it is
    /// called in a block. The log stays beside the store, so that the next block, which goes on shipping, goes on there.
    public func releaseAllDatabases() {
        guard let shipper else { return closeAll() }
        guard reception.isInside else {
            return shipper.close(within: maximumWait?.seconds ?? Shipper.patience) { closeAll() }
        }
        // Others may wait for this block, so it ships nothing. The next block goes on.
        closeAll()
        shipper.letGo(ships: false, within: 0)
    }

    private func closeAll() { close(reception.forget([.lent, .readers, .writer])) }

    public func releaseMemory() {
        for place in reception.setAside([.lent, .readers]) {
            let database = database(of: place)
            database.enter()
            // The connection stays open, because it may be the one that tells other processes that the store is in use.
            database.connection?.releaseMemory()
            reception.leave(place, database)
        }
        writer.releaseMemory()
    }

    /// Closes the connections that somebody has released while there was a barrier.
    private func closeForgotten() { close(reception.takeForgotten()) }

    private func close(_ places: [Reception.Place]) {
        for place in places {
            guard place.desk != .writer else {
                writer.close(place)
                continue
            }
            let database = database(of: place)
            if place.desk == .lent { lent.withLock { $0.databases[place.number] = nil } }
            database.enter()
            database.close()
            reception.leave(place, database)
        }
    }

    /// Closes the idle connections of a file that was replaced: as long as one is open, SQLite's files beside the path are those
    /// of the former file. One that would lose something by that is closed before its next block, which is told.
    private func closeReplaced() {
        var places = reception.setAside([.lent, .readers])
        if let place = reception.takeWriterIfFree(call: "closing") { places.append(place) }
        for place in places {
            let database = place.desk == .writer ? writer.database : self.database(of: place)
            database.enter()
            if let connection = database.connection, !connection.mayHaveTemporaries {
                // What is left open is in the way of the next opening, which says so.
                try? database.closeIfReplaced()
            }
            reception.leave(place, database)
        }
    }

    /// Returns the connection of a place that was free.
    private func database(of place: Reception.Place) -> Database {
        if place.desk == .readers { return readers!.databases[place.number] }
        return lent.withLock { Handed(value: $0.databases[place.number]) }.value!
    }

    /// Stops the statements that are running on the connections of `read` and `write`. They fail with
    /// `SQLITE_INTERRUPT`. May be called on any thread. https://www.sqlite.org/c3ref/interrupt.html
    public func interrupt() {
        _ = writer.database.interrupter.interrupt()
        for database in readers?.databases ?? [] { _ = database.interrupter.interrupt() }
    }

    /// Runs the body on the only open connection, while nobody else has one. The others are opened again when they are
    /// needed, with the settings that they had, and with the key that this connection has at the end.
    /// - Throws: the body's error; ``DatabaseError`` if closing another connection would lose something.
    func alone<T>(_ cancellation: Cancellation?, _ body: (Database) throws -> T) throws -> T {
        defer { closeForgotten() }
        return try writer.barrier(limit: nil, cancellation: cancellation) { database in
            // `releaseAllDatabases()` may be called meanwhile. It cannot take these places, because they are held.
            let places = reception.setAside([.lent, .readers])
            let others = places.map(self.database(of:))
            for other in others { other.enter() }
            defer { for (place, other) in zip(places, others) { reception.leave(place, other) } }
            try closeForReopening(others)
            defer { adoptKey(of: database, others) }
            return try body(database)
        }
    }

    private func closeForReopening(_ databases: [Database]) throws(DatabaseError) {
        do throws(DatabaseError) {
            for database in databases { try database.connection?.requireNothingTemporary() }
        } catch {
            throw error.adding(
                context:
                    "An idle connection of the pool cannot be closed, as it would have to be (releaseAllDatabases() does)"
            )
        }
        for database in databases { try database.closeForReopening() }
    }

    /// Makes all connections open with the key of this one from now on. The others do not keep the old key in memory until
    /// then.
    private func adoptKey(of database: Database, _ others: [Database]) {
        let new = Keys(origin: database.configuration.keyOrigin, adopted: database.adoptedKey)
        keys.withLock { $0 = new }
        for other in others { new.give(to: other) }
    }

    @discardableResult
    public func barrier<T>(waitingAtMost limit: Duration?, _ block: (Database) throws -> T) throws -> T {
        defer { closeForgotten() }
        return try writer.barrier(limit: limit?.seconds, block)
    }

    @discardableResult
    public func barrier<T: Sendable>(
        waitingAtMost limit: Duration?,
        _ block: @Sendable (Database) throws -> T
    ) async throws -> T {
        defer { closeForgotten() }
        return try await writer.barrier(limit: limit?.seconds, block)
    }

    public func shutDown(interruptingAfter grace: Duration?) async {
        let began = Shipper.now
        reception.drain()
        for kept in snapshots.withLock({ $0 }) { kept.snapshot?.close() }
        await reception.shutDown(interruptingAfter: grace) { [self] in
            let lent = lent.withLock { Handed(value: Array($0.databases.values)) }.value
            Supervisions([writer.database] + (readers?.databases ?? []) + lent).stop()
        }
        changeHub.finish()
        let close: @Sendable () -> Void = { [self] in closeAll() }
        guard let shipper else { return await onOtherThread(close) }
        await shipper.shutDown(since: began, within: grace, close)
    }

    // MARK: Changes

    /// Returns the changes to some tables that are committed from now on, on any connection of the pool: see
    /// ``Database/changes(in:database:)``. May be called anywhere, also in blocks.
    public func changes(in tables: Set<String>, database: String = "main") -> DatabaseChangeSequence {
        DatabaseChangeSequence(tables: tables, database: database, hub: changeHub)
    }

    // MARK: Reading and writing

    @discardableResult
    public func read<T>(_ block: (Database) throws -> T) throws -> T {
        guard let readers else { return try writer.read(block) }
        return try readers.read(block)
    }

    @discardableResult
    public func read<T: Sendable>(_ block: @Sendable (Database) throws -> T) async throws -> T {
        if let readers { return try await readers.read(block) }
        return try await writer.read(block)
    }

    @discardableResult
    public func write<T>(alone: Bool, _ block: (Database) throws -> T) throws -> T {
        return try writer.write(alone: alone, block)
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
        return try writer.inDatabase(block)
    }

    @discardableResult
    public func writeWithoutTransaction<T: Sendable>(
        _ block: @Sendable (Database) throws -> T
    ) async throws -> T {
        try await writer.inDatabase(block)
    }

    // MARK: Blocks

    @_disfavoredOverload
    @discardableResult
    public func inDatabase<T>(_ block: (Database) throws -> T) throws -> T {
        let place = try reception.enter(.lent, call: "inDatabase")
        let database = try ready(place)
        defer { finish(place, database) }
        do {
            return try database.supervised(.block, stop: nil) { try database.endingTransaction { try block(database) } }
        } catch {
            database.closeIfUnusable(after: error)
            throw error
        }
    }

    /// Keeps the last committed state of the store for as long as the snapshot lives, while others continue to write.
    /// If it is called in a block of the pool that has committed, such as a block of
    /// `writeWithoutTransaction` with a transaction of its own, it keeps the state after that commit. That state can still
    /// be read when the block has ended and others write again.
    ///
    /// A snapshot has a connection of its own, which the counts of FMDB's calls show, but
    /// ``maximumNumberOfDatabasesToCreate`` does not limit. While it lives, the log cannot begin anew, and grows.
    /// Barriers, and with them the end of a rotation, wait for it. A shutdown closes it.
    /// - Throws: ``DatabaseError``, also for databases in memory and for databases without a write-ahead log.
    public func snapshot() throws -> DatabaseSnapshot {
        guard readers != nil else { throw DatabaseError.snapshotNeedsLog }
        let place = try reception.enter(.lent, call: "snapshot", isForSnapshot: true)
        let database = try ready(place)
        do {
            try database.beginSnapshot()
        } catch {
            database.rollBackWhatIsOpen()
            finish(place, database)
            throw error
        }
        database.leave()
        reception.keep(place)
        let snapshot = DatabaseSnapshot(of: self, place, database)
        // A snapshot that ends at this moment ends outside the lock.
        let others = snapshots.withLock { snapshots in
            let others = snapshots.compactMap(\.snapshot)
            snapshots = (others + [snapshot]).map(WeakSnapshot.init)
            return others
        }
        withExtendedLifetime(others) {}
        // A shutdown that began earlier did not find this snapshot in the list, so close it here.
        if reception.look({ $0.isRefusing(0) }) { snapshot.close() }
        return snapshot
    }

    /// Enters and opens the connection of a place. If that fails, gives the place back.
    private func ready(_ place: Reception.Place) throws -> Database {
        let (database, isNew) = enter(place)
        do {
            try makeReady(database, isNew: isNew)
        } catch {
            database.close()
            finish(place, database)
            throw error
        }
        database.checkedOut = true
        return database
    }

    /// Enters the connection that the place has kept, or a new one if it has kept none.
    private func enter(_ place: Reception.Place) -> (Database, isNew: Bool) {
        if let kept = lent.withLock({ Handed(value: $0.databases[place.number]) }).value {
            kept.enter()
            if kept.isToBeKept { return (kept, false) }
            kept.leave()
        }
        let database = Database(path: path, absolute: file, configuration: configuration, gate: ThreadGate())
        database.enter()
        database.supervision.whenReplaced = { [weak self] in self?.closeReplaced() }
        database.additions.hooks.changes.hub = changeHub
        database.supervision.writeLine = writeLine
        database.belongsToPool = true
        database.shipper = shipper
        let new = Handed(value: database)
        lent.withLock { $0.databases[place.number] = new.value }
        return (database, true)
    }

    /// Opens the connection, and asks the delegate whether it may be lent.
    private func makeReady(_ database: Database, isNew: Bool) throws {
        // A shutdown may have stopped all lent connections before this one was one of them.
        if reception.look({ $0.hasEnded }) { throw DatabaseError.shutDown }
        try database.closeIfReplaced()
        try open(database)
        try database.resumeShipping()
        if let delegate {
            // A shutdown stops its statements, as those of blocks.
            let accepts = try database.supervised(.block, stop: nil) {
                try database.endingTransaction { delegate.databasePool(self, shouldAddDatabaseToPool: database) }
            }
            guard accepts else {
                throw DatabaseError(
                    extendedCode: SQLITE_ABORT,
                    reason: .misuse,
                    message: "The pool's delegate refused the connection, which was closed. The block was not called."
                )
            }
            if isNew {
                try database.supervised(.block, stop: nil) {
                    try database.endingTransaction { delegate.databasePool(self, didAdd: database) }
                }
            }
        }
        database.refreshObservation()
    }

    /// Gives back the place and its connection, which the caller has entered.
    func finish(_ place: Reception.Place, _ database: Database) {
        database.checkedOut = false
        database.endUses()
        // As at the end of a writer's turn.
        database.refreshObservation()
        writeLine.letGo(database.supervision)
        // Two connections must not make checkpoints at once. If the writer is in use, its next commit makes the
        // checkpoint.
        if log.isDue(database), let place = reception.takeWriterIfFree(call: "checkpoint") {
            log.checkpoint(database)
            writer.database.enter()
            reception.leave(place, writer.database)
        }
        reception.leave(place, database)
    }
}

/// A value that is passed into or out of a lock.
// @unchecked: nobody else uses the value meanwhile.
private struct Handed<Value>: @unchecked Sendable {
    let value: Value
}

/// Stops the statements of several connections for good.
// @unchecked: this only sets the stop flags of the supervisions, which any thread may do.
struct Supervisions: @unchecked Sendable {
    private let supervisions: [Supervision]

    init(_ databases: [Database]) { supervisions = databases.map(\.supervision) }

    func stop() {
        for supervision in supervisions { supervision.shutdown.set() }
    }
}

/// Runs the work on another thread. Closing a connection may take long, because it moves the log into the file.
func onOtherThread(_ work: @escaping @Sendable () -> Void) async {
    await withCheckedContinuation { continuation in
        DispatchQueue.global().async {
            work()
            continuation.resume()
        }
    }
}
