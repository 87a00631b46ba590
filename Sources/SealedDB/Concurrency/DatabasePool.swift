public import Foundation

/// Connections to one database that are lent to blocks, several at a time: FMDB's `FMDatabasePool`.
///
/// `read` and `write` divide the work: one connection writes, as many as ``Configuration/maximumReaderCount`` says read.
/// In WAL mode, which files get unless the configuration says otherwise, readers see the last commit while the next
/// transaction is being written, and nobody waits for them. Only the writer moves the log into the file. In a `write`
/// block `read` takes a connection of its own; any other nesting of the two throws.
///
/// FMDB's calls, `inDatabase` and the like, lend any number of further connections to blocks on the thread of the caller.
/// These share nothing: two that write wait for each other, and for `write`, as long as the busy timeout lasts. A nested
/// call takes a second connection.
///
/// Connections are opened when they are needed, outside the pool's lock, and kept. Result sets end, and a transaction is
/// rolled back, with the block that left them open. Databases in memory belong to one connection: there `read` and
/// `write` share one, and each of FMDB's calls may get another.
// @unchecked: a connection is used by the one block that it is lent to, the delegate under its lock.
public final class DatabasePool: DatabaseAccess, @unchecked Sendable {
    /// The path as given; `nil` for databases in memory, of which each connection has its own.
    public let path: String?
    /// The `SQLITE_OPEN_…` flags of every opening.
    public let openFlags: Int32
    /// The VFS of every opening; `nil` for the default.
    public let vfsName: String?
    private let configuration: Configuration
    /// What a rotation changes.
    private let keys: Guarded<Keys>
    let rotation = RotationGate()
    let reception: Reception
    let changeHub = ChangeHub()
    let writer: Writer
    private let readers: Readers?
    private let lent = Guarded(Lent())
    private let snapshots = Guarded([WeakSnapshot]())
    private let opening: Opening
    private let log: LogKeeper
    private let writeLine = WriteLine()
    private let delegateUnderLock = Guarded(WeakDelegate())

    /// The connections of the places that are lent, by number.
    // @unchecked: each is used by whoever has its place.
    private struct Lent: @unchecked Sendable {
        var databases: [Int: Database] = [:]
    }

    // @unchecked: only kept here.
    private struct WeakSnapshot: @unchecked Sendable {
        weak var snapshot: DatabaseSnapshot?
    }

    // @unchecked: only kept here.
    private struct WeakDelegate: @unchecked Sendable {
        weak var delegate: (any DatabasePoolDelegate)?
    }

    private struct Keys {
        let origin: KeyOrigin?
        let adopted: Key?

        func give(to database: Database) {
            database.configuration.keyOrigin = origin
            database.adoptedKey = adopted
        }
    }

    /// Remembers the path; nothing is opened.
    public convenience init(path aPath: String?) {
        self.init(path: aPath, configuration: Configuration())
    }

    /// Remembers the path of a file URL; nothing is opened.
    public convenience init(url: URL?) {
        self.init(path: url?.path)
    }

    /// Remembers the path and `SQLITE_OPEN_…` flags for every opening.
    public convenience init(path aPath: String?, flags openFlags: Int32) {
        self.init(path: aPath, flags: openFlags, vfs: nil)
    }

    /// Remembers the path of a file URL and `SQLITE_OPEN_…` flags for every opening.
    public convenience init(url: URL?, flags openFlags: Int32) {
        self.init(path: url?.path, flags: openFlags, vfs: nil)
    }

    /// Remembers the path, and `SQLITE_OPEN_…` flags and a named VFS for every opening.
    public convenience init(path aPath: String?, flags openFlags: Int32, vfs vfsName: String?) {
        self.init(path: aPath, configuration: Configuration(), flags: openFlags, vfs: vfsName)
    }

    /// Remembers the path of a file URL, and `SQLITE_OPEN_…` flags and a named VFS for every opening.
    public convenience init(url: URL?, flags openFlags: Int32, vfs vfsName: String?) {
        self.init(path: url?.path, flags: openFlags, vfs: vfsName)
    }

    /// Remembers path and configuration; the first block opens, and fails if the key is wrong.
    public convenience init(path: String?, configuration: Configuration) {
        self.init(path: path, configuration: configuration, flags: configuration.flags, vfs: nil)
    }

    private init(path: String?, configuration: Configuration, flags: Int32, vfs: String?) {
        let configuration = configuration.forSharedUse
        self.path = path
        self.configuration = configuration
        self.openFlags = flags
        self.vfsName = vfs
        let opening = Opening(flags: flags, vfs: vfs)
        self.opening = opening
        let (hub, line) = (changeHub, writeLine)
        func database() -> Database {
            let database = Database(path: path, configuration: configuration, gate: ThreadGate())
            database.enter()
            defer { database.leave() }
            database.supervision.writeLine = line
            database.additions.hooks.changes.hub = hub
            database.leavesLogToPool = true
            return database
        }
        let open = { (database: Database) throws(DatabaseError) in try opening.open(database) }
        let isFile = Database.isFile(path)
        let cores = ProcessInfo.processInfo.activeProcessorCount
        let count = isFile ? max(1, configuration.maximumReaderCount ?? min(max(4, 2 * cores), 16)) : 0
        let instruments = Instruments(path: path)
        let log = LogKeeper(maximumSize: configuration.maximumLogSize, instruments: instruments)
        self.log = log
        reception = Reception(readers: count, lends: true, instruments: instruments)
        writer = Writer(
            database: database(),
            limits: configuration.writeBatching,
            reception: reception,
            ready: open,
            afterTurn: { database in log.checkpoint(database) }
        )
        let databases = (0..<count).map { _ in database() }
        let keys = Guarded(Keys(origin: configuration.keyOrigin, adopted: nil))
        self.keys = keys
        let openWithKey = { (database: Database) throws(DatabaseError) in
            // A rotation may have come while this connection was being closed by somebody else.
            keys.withLock { $0 }.give(to: database)
            try opening.open(database)
        }
        readers = isFile ? Readers(databases: databases, reception: reception, open: openWithKey) : nil
        log.empty = { [weak writer] done in
            DispatchQueue.global().async { [writer] in
                // Who is not let in to empty it tries again, as one who finds readers.
                let isEmpty = try? writer?.barrier(limit: LogKeeper.patience) { db in LogKeeper.emptyLog(of: db) }
                done(isEmpty == true)
            }
        }
    }

    deinit {
        releaseAllDatabases()
    }

    /// Asked about connections; not retained.
    public var delegate: (any DatabasePoolDelegate)? {
        get { delegateUnderLock.withLock { $0.delegate } }
        set {
            let new = WeakDelegate(delegate: newValue)
            delegateUnderLock.withLock { $0 = new }
        }
    }

    // MARK: Limits and counts

    /// How many connections may be open; 0, the default, for any number. At the limit callers wait, first come first
    /// served. A call that could only wait for itself throws.
    public var maximumNumberOfDatabasesToCreate: UInt {
        get { reception.look { $0.maximumLent } }
        set { reception.setMaximumLent(newValue) }
    }

    /// Seconds to wait for a connection before the call fails as busy; `nil`, the default, for ever.
    public var maximumWaitTimeInterval: TimeInterval? {
        get { reception.maximumWait }
        set { reception.maximumWait = newValue }
    }

    /// Connections that wait to be lent.
    public var countOfCheckedInDatabases: UInt {
        reception.look { books in books.connectionCount - books.busyCount }
    }

    /// Connections that are lent to blocks.
    public var countOfCheckedOutDatabases: UInt { reception.look { $0.busyCount } }

    /// All connections, those of `read` and `write` included.
    public var countOfOpenDatabases: UInt { reception.look { $0.connectionCount } }

    /// Closes the connections: idle ones now, lent ones when their blocks end. The counts of FMDB's calls drop to 0.
    public func releaseAllDatabases() { close(reception.forget([.lent, .readers, .writer])) }

    public func releaseMemory() {
        for place in reception.setAside([.lent, .readers]) {
            let database = database(of: place)
            database.enter()
            // It stays open: it may be the one by which others are told that the store is in use.
            database.connection?.releaseMemory()
            reception.leave(place, database)
        }
        writer.releaseMemory()
    }

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

    /// The connection of a place that was free.
    private func database(of place: Reception.Place) -> Database {
        if place.desk == .readers { return readers!.databases[place.number] }
        return lent.withLock { Handed(value: $0.databases[place.number]) }.value!
    }

    /// Stops the statements that are running in blocks of `read` and `write`, which then fail with `SQLITE_INTERRUPT`.
    /// From any thread. https://www.sqlite.org/c3ref/interrupt.html
    public func interrupt() {
        _ = writer.database.interrupter.interrupt()
        for database in readers?.databases ?? [] { _ = database.interrupter.interrupt() }
    }

    /// Runs the body while nobody has a connection, with the only one that is open; its key is afterwards that of all. The
    /// others are opened again when they are needed, with what was set on them.
    /// - Throws: ``DatabaseError`` also if one of the others has what would be lost with it.
    func alone<T>(_ cancellation: Cancellation?, _ body: (Database) throws -> T) throws -> T {
        try writer.barrier(limit: nil, cancellation: cancellation) { database in
            // Somebody may release all databases meanwhile: these are held.
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

    /// Has all connections open with the key of this one from now on.
    private func adoptKey(of database: Database, _ others: [Database]) {
        let new = Keys(origin: database.configuration.keyOrigin, adopted: database.adoptedKey)
        keys.withLock { $0 = new }
        for other in others { new.give(to: other) }
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

    public func shutDown(interruptingAfter grace: Duration?) async {
        reception.drain()
        for kept in snapshots.withLock({ $0 }) { kept.snapshot?.close() }
        await reception.shutDown(interruptingAfter: grace) { [self] in
            let lent = lent.withLock { Handed(value: Array($0.databases.values)) }.value
            Supervisions([writer.database] + (readers?.databases ?? []) + lent).stop()
        }
        await onOtherThread { [self] in releaseAllDatabases() }
    }

    // MARK: Changes

    /// The changes to some tables that blocks commit which begin from now on, on whichever connection: see
    /// ``Database/changes(in:database:)``. May be called anywhere.
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

    /// Keeps the last committed state of the store, for as long as the snapshot lives; others go on writing. In one of the
    /// pool's blocks that commits, such as one of ``writeWithoutTransaction(_:)-(_)`` with a transaction of its own, it is
    /// the state after that commit, to be read when the block has ended and others write again.
    ///
    /// It is one of the connections that FMDB's calls count. While it lives the log cannot begin anew, and grows; barriers,
    /// and with them the end of a rotation, wait for it. A shutdown closes it.
    /// - Throws: ``DatabaseError``, also for databases in memory and those that have no write-ahead log.
    public func snapshot() throws -> DatabaseSnapshot {
        guard readers != nil else { throw DatabaseError.snapshotNeedsLog }
        let place = try reception.enter(.lent, call: "snapshot")
        let database = try ready(place)
        do {
            try database.beginSnapshot()
        } catch {
            database.endSnapshot()
            finish(place, database)
            throw error
        }
        database.leave()
        reception.begin(place, thread: 0)
        let snapshot = DatabaseSnapshot(of: self, place, database)
        snapshots.withLock { snapshots in
            snapshots.removeAll { $0.snapshot == nil }
            snapshots.append(WeakSnapshot(snapshot: snapshot))
        }
        // Of a shutdown that came before, nobody else tells it.
        if reception.look({ $0.isRefusing(0) }) { snapshot.close() }
        return snapshot
    }

    /// Enters and opens the connection of a place, or gives it back.
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

    /// Enters the connection of a place; it is a new one if the place has none that is kept.
    private func enter(_ place: Reception.Place) -> (Database, isNew: Bool) {
        if let kept = lent.withLock({ Handed(value: $0.databases[place.number]) }).value {
            kept.enter()
            if kept.isToBeKept { return (kept, false) }
            kept.leave()
        }
        let database = Database(path: path, configuration: configuration, gate: ThreadGate())
        database.enter()
        keys.withLock { $0 }.give(to: database)
        database.additions.hooks.changes.hub = changeHub
        database.supervision.writeLine = writeLine
        database.leavesLogToPool = true
        let new = Handed(value: database)
        lent.withLock { $0.databases[place.number] = new.value }
        return (database, true)
    }

    /// Opens the connection, and asks the delegate.
    private func makeReady(_ database: Database, isNew: Bool) throws {
        // A shutdown that stops everybody may have come before it was among the lent ones.
        if reception.look({ $0.hasEnded }) { throw DatabaseError.shutDown }
        try database.closeIfReplaced()
        try opening.open(database)
        if let delegate {
            guard delegate.databasePool(self, shouldAddDatabaseToPool: database) else {
                throw DatabaseError(
                    extendedCode: SQLITE_ABORT,
                    reason: .misuse,
                    message: "The pool's delegate refused the connection, which was closed. The block was not called."
                )
            }
            if isNew { delegate.databasePool(self, didAdd: database) }
        }
        database.refreshObservation()
    }

    /// Gives the place back, and its connection, which was entered.
    func finish(_ place: Reception.Place, _ database: Database) {
        database.checkedOut = false
        database.endUses()
        writeLine.letGo(database.supervision)
        // The writer does it when it is at work: no two connections may at once.
        if log.isDue(database), let place = reception.takeWriterIfFree(call: "checkpoint") {
            log.checkpoint(database)
            writer.database.enter()
            reception.leave(place, writer.database)
        }
        reception.leave(place, database)
    }
}

/// On its way between its owner and a lock.
// @unchecked: nobody else uses it meanwhile.
private struct Handed<Value>: @unchecked Sendable {
    let value: Value
}

/// Stops the statements of some connections for good.
// @unchecked: the supervisions are only asked to stop, which any thread may do.
struct Supervisions: @unchecked Sendable {
    private let supervisions: [Supervision]

    init(_ databases: [Database]) { supervisions = databases.map(\.supervision) }

    func stop() {
        for supervision in supervisions { supervision.shutdown.set() }
    }
}

/// Closing may take its time, as it moves the log into the file.
func onOtherThread(_ work: @escaping @Sendable () -> Void) async {
    await withCheckedContinuation { continuation in
        DispatchQueue.global().async {
            work()
            continuation.resume()
        }
    }
}
