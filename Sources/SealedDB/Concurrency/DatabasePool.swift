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
    let lender = Lender()
    let changeHub = ChangeHub()
    let writer: Writer
    private let readers: Readers?
    private let opening: Opening
    private let delegateLock = NSRecursiveLock()
    private weak var delegateUnderLock: (any DatabasePoolDelegate)?

    private struct Keys {
        let origin: KeyOrigin?
        let adopted: Key?
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
        keys = Guarded(Keys(origin: configuration.keyOrigin, adopted: nil))
        self.openFlags = flags
        self.vfsName = vfs
        let opening = Opening(flags: flags, vfs: vfs)
        self.opening = opening
        let hub = changeHub
        func database() -> Database {
            let database = Database(path: path, configuration: configuration, gate: ThreadGate())
            database.enter()
            defer { database.leave() }
            database.additions.hooks.changes.hub = hub
            return database
        }
        let open = { (database: Database) throws(DatabaseError) in try opening.open(database) }
        let log = LogKeeper()
        let instruments = Instruments(path: path)
        writer = Writer(
            database: database(),
            limits: configuration.writeBatching,
            lane: Lane(places: 1, name: "pool", instruments: instruments),
            ready: open,
            afterCommit: { database in log.checkpointIfDue(database) }
        )
        let isFile = Database.isFile(path)
        let cores = ProcessInfo.processInfo.activeProcessorCount
        let count = configuration.maximumReaderCount ?? min(max(4, 2 * cores), 16)
        let databases = (0..<(isFile ? max(1, count) : 0)).map { _ in database() }
        readers = isFile ? Readers(databases: databases, instruments: instruments, open: open) : nil
    }

    deinit {
        releaseAllDatabases()
    }

    /// Asked about connections; not retained.
    public var delegate: (any DatabasePoolDelegate)? {
        get { delegateLock.withLock { delegateUnderLock } }
        set { delegateLock.withLock { delegateUnderLock = newValue } }
    }

    // MARK: Limits and counts

    /// How many connections may be open; 0, the default, for any number. At the limit callers wait, first come first
    /// served. A call that could only wait for itself throws.
    public var maximumNumberOfDatabasesToCreate: UInt {
        get { lender.maximum }
        set { lender.maximum = newValue }
    }

    /// Seconds to wait for a connection before the call fails as busy; `nil`, the default, for ever.
    public var maximumWaitTimeInterval: TimeInterval? {
        get { lender.maximumWait }
        set {
            lender.maximumWait = newValue
            writer.lane.maximumWait = newValue
            readers?.lane.maximumWait = newValue
        }
    }

    /// Connections that wait to be lent.
    public var countOfCheckedInDatabases: UInt {
        let lent = lender.counts.lent
        return countOfOpenDatabases - min(countOfOpenDatabases, lent + ownBusyCount)
    }

    /// Connections that are lent to blocks.
    public var countOfCheckedOutDatabases: UInt { lender.counts.lent + ownBusyCount }

    /// All connections, those of `read` and `write` included.
    public var countOfOpenDatabases: UInt {
        let counts = lender.counts
        let readerCount = max(readers?.openCount ?? 0, readers?.lane.busyCount ?? 0)
        return counts.idle + counts.lent + UInt(readerCount + max(writer.isOpen ? 1 : 0, writer.lane.busyCount))
    }

    private var ownBusyCount: UInt { UInt(writer.lane.busyCount + (readers?.lane.busyCount ?? 0)) }

    /// Closes the connections: idle ones now, lent ones when their blocks end. The counts of FMDB's calls drop to 0.
    public func releaseAllDatabases() {
        for database in lender.forgetAll() { close(database) }
        readers?.closeAll()
        writer.closeWhenIdle()
    }

    /// Stops the statements that are running in blocks of `read` and `write`, which then fail with `SQLITE_INTERRUPT`.
    /// From any thread. https://www.sqlite.org/c3ref/interrupt.html
    public func interrupt() {
        _ = writer.interrupter.interrupt()
        for database in readers?.databases ?? [] { _ = database.interrupter.interrupt() }
    }

    private var isInsideBlock: Bool { lender.isInside || writer.lane.isInside || readers?.lane.isInside == true }

    /// Waits for all blocks, keeps others waiting, and runs the body with the only connection that may be open; its key is
    /// afterwards that of all. For one thread at a time. The others are opened again when they are needed, with what was set on them.
    /// - Throws: ``DatabaseError`` also if one of the others has what would be lost with it.
    func alone<T>(_ body: (Database) throws -> T) throws -> T {
        guard !isInsideBlock else { throw DatabaseError.nestedCall }
        lender.pause()
        defer { lender.resume() }
        lender.waitUntilIdle()
        return try writer.inDatabase { database in
            try readers?.lane.enterAll()
            defer { readers?.lane.leaveAll() }
            // Blocks of read and write may have borrowed further ones.
            lender.waitUntilIdle()
            // Somebody may release all databases meanwhile.
            let aside = lender.setAside()
            let others = aside.databases + (readers?.databases ?? [])
            var areClosed = false
            defer {
                if !lender.takeBack(aside, areClosed: areClosed) { for idle in aside.databases { close(idle) } }
            }
            try closeForReopening(others)
            areClosed = true
            defer { adoptKey(of: database, others) }
            return try body(database)
        }
    }

    private func closeForReopening(_ databases: [Database]) throws(DatabaseError) {
        func each(_ body: (Database) throws(DatabaseError) -> Void) throws(DatabaseError) {
            for database in databases {
                database.enter()
                defer { database.leave() }
                try body(database)
            }
        }
        do throws(DatabaseError) {
            try each { database throws(DatabaseError) in try database.connection?.requireNothingTemporary() }
        } catch {
            throw error.adding(
                context:
                    "An idle connection of the pool cannot be closed, as it would have to be (releaseAllDatabases() does)"
            )
        }
        try each { database throws(DatabaseError) in try database.closeForReopening() }
        readers?.areClosed()
    }

    /// Has all connections open with the key of this one from now on.
    private func adoptKey(of database: Database, _ others: [Database]) {
        let (origin, adopted) = (database.configuration.keyOrigin, database.adoptedKey)
        keys.withLock { $0 = Keys(origin: origin, adopted: adopted) }
        for other in others {
            other.enter()
            defer { other.leave() }
            other.configuration.keyOrigin = origin
            other.adoptedKey = adopted
        }
    }

    public func shutDown(interruptingAfter grace: Duration?) async {
        lender.refuse(because: .shutDown)
        let readerLanes = readers.map { [$0.lane] } ?? []
        let databases = [writer.database] + (readers?.databases ?? [])
        await Shutdown(lanes: readerLanes + [writer.lane], databases: databases).run(interruptingAfter: grace)
        await withCheckedContinuation { lender.whenIdle($0.resume) }
        await readers?.closeForGood()
        await writer.closeForGood()
        releaseAllDatabases()
    }

    // MARK: Reading and writing

    @discardableResult
    public func read<T>(_ block: (Database) throws -> T) throws -> T {
        guard let readers else { return try writer.read(block) }
        return try readers.read(block)
    }

    @discardableResult
    public func read<T: Sendable>(_ block: @escaping @Sendable (Database) throws -> T) async throws -> T {
        if let readers { return try await readers.read(block) }
        return try await writer.read(block)
    }

    @discardableResult
    public func write<T>(alone: Bool, _ block: (Database) throws -> T) throws -> T {
        guard readers?.lane.isInside != true else { throw DatabaseError.nestedCall }
        return try writer.write(alone: alone, block)
    }

    @discardableResult
    public func write<T: Sendable>(
        alone: Bool,
        _ block: @escaping @Sendable (Database) throws -> T
    ) async throws -> T {
        try await writer.write(alone: alone, block)
    }

    @discardableResult
    public func writeWithoutTransaction<T>(_ block: (Database) throws -> T) throws -> T {
        guard readers?.lane.isInside != true else { throw DatabaseError.nestedCall }
        return try writer.inDatabase(block)
    }

    @discardableResult
    public func writeWithoutTransaction<T: Sendable>(
        _ block: @escaping @Sendable (Database) throws -> T
    ) async throws -> T {
        try await writer.inDatabase(block)
    }

    // MARK: Blocks

    @_disfavoredOverload
    @discardableResult
    public func inDatabase<T>(_ block: (Database) throws -> T) throws -> T {
        let loan = try lender.borrow(isNested: writer.lane.isInside || readers?.lane.isInside == true)
        let database: Database
        do {
            database = try ready(loan)
        } catch {
            lender.giveUp(loan)
            throw error
        }
        database.checkedOut = true
        defer { finish(loan, database) }
        do {
            return try database.endingTransaction { try block(database) }
        } catch {
            database.closeIfUnusable(after: error)
            throw error
        }
    }

    /// The connection of the loan, opened and accepted by the delegate.
    private func ready(_ loan: Lender.Loan) throws -> Database {
        let database = loan.database ?? newDatabase()
        database.enter()
        do {
            try database.closeIfReplaced()
            if !database.isOpen {
                try opening.open(database)
            }
            if try !ask(about: database, isNew: loan.database == nil) {
                throw DatabaseError(
                    extendedCode: SQLITE_ABORT,
                    reason: .misuse,
                    message: "The pool's delegate refused the connection, which was closed. The block was not called."
                )
            }
        } catch {
            database.close()
            database.leave()
            throw error
        }
        database.refreshObservation()
        return database
    }

    private func newDatabase() -> Database {
        let database = Database(path: path, configuration: configuration, gate: ThreadGate())
        let keys = keys.withLock { $0 }
        database.enter()
        defer { database.leave() }
        database.configuration.keyOrigin = keys.origin
        database.adoptedKey = keys.adopted
        database.additions.hooks.changes.hub = changeHub
        return database
    }

    private func ask(about database: Database, isNew: Bool) throws -> Bool {
        delegateLock.withLock {
            guard let delegate = delegateUnderLock else { return true }
            guard delegate.databasePool(self, shouldAddDatabaseToPool: database) else { return false }
            if isNew { delegate.databasePool(self, didAdd: database) }
            return true
        }
    }

    private func finish(_ loan: Lender.Loan, _ database: Database) {
        database.checkedOut = false
        database.endUses()
        checkpointIfDue(database)
        let isOpen = database.isOpen
        database.leave()
        if isOpen, lender.takeBack(loan, database) { return }
        if isOpen { close(database) }
        lender.giveUp(loan)
    }

    private func close(_ database: Database) {
        database.enter()
        database.close()
        database.leave()
    }

    /// The writer does it when it is at work: no two connections may at once.
    private func checkpointIfDue(_ database: Database) {
        guard let connection = database.connection, connection.walFrameCount >= LogKeeper.threshold else { return }
        guard let place = writer.lane.takeFree().first else { return }
        defer { writer.leave(place) }
        // A full one keeps writers out. What it cannot do now is done after a later commit.
        connection.walFrameCount = 0
        // Nothing is lost by one that fails: the log has it.
        _ = try? connection.checkpoint(.full, schema: "main")
    }
}
