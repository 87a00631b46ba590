public import Foundation
import Synchronization

/// Connections to one database that are lent to blocks, several at a time: FMDB's `FMDatabasePool`.
///
/// Blocks run on the thread of the caller. They share nothing: in WAL mode, which files get unless the configuration
/// says otherwise, readers go on while one writes; two writers wait for each other as long as the busy timeout lasts. A
/// ``DatabaseQueue`` is the better choice where most blocks write. Connections are opened when they are needed, outside
/// the pool's lock, and kept. A nested call takes a second connection.
///
/// Result sets end, and a transaction is rolled back, with the block that left them open.
// @unchecked: a connection is used by the one block that it is lent to, the delegate under its lock.
public final class DatabasePool: DatabaseAccess, @unchecked Sendable {
    /// The path as given; `nil` for databases in memory, of which each connection has its own.
    public let path: String?
    /// The `SQLITE_OPEN_…` flags of every opening.
    public let openFlags: Int32
    /// The VFS of every opening; `nil` for the default.
    public let vfsName: String?
    private let configuration: Configuration
    private let lender = Lender()
    let changeHub = ChangeHub()
    private let delegateLock = NSRecursiveLock()
    private weak var delegateUnderLock: (any DatabasePoolDelegate)?
    private let checkpointing = Mutex(())

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
        self.path = path
        self.configuration = configuration.forSharedUse
        self.openFlags = flags
        self.vfsName = vfs
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

    /// Seconds to wait for a connection at the limit before the call fails as busy; `nil`, the default, for ever.
    public var maximumWaitTimeInterval: TimeInterval? {
        get { lender.maximumWait }
        set { lender.maximumWait = newValue }
    }

    /// Connections that wait to be lent.
    public var countOfCheckedInDatabases: UInt { lender.counts.idle }

    /// Connections that are lent to blocks.
    public var countOfCheckedOutDatabases: UInt { lender.counts.lent }

    /// All connections.
    public var countOfOpenDatabases: UInt {
        let counts = lender.counts
        return counts.idle + counts.lent
    }

    /// Closes the connections: idle ones now, lent ones when their blocks end. The counts drop to 0.
    public func releaseAllDatabases() {
        for database in lender.forgetAll() { close(database) }
    }

    // MARK: Blocks

    @_disfavoredOverload
    @discardableResult
    public func inDatabase<T>(_ block: (Database) throws -> T) throws -> T {
        let loan = try lender.borrow()
        let database: Database
        do {
            database = try ready(loan)
        } catch {
            lender.giveUp(loan)
            throw error
        }
        database.checkedOut = true
        defer { finish(loan, database) }
        return try block(database)
    }

    /// The connection of the loan, opened and accepted by the delegate.
    private func ready(_ loan: Lender.Loan) throws -> Database {
        let database = loan.database ?? newDatabase()
        database.connection?.enter()
        do {
            if !database.isOpen {
                guard database.open(withFlags: openFlags, vfs: vfsName) else { throw database.lastError() }
                database.connection?.countWALFrames()
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
            throw error
        }
        database.refreshObservation()
        return database
    }

    private func newDatabase() -> Database {
        let database = Database(path: path, configuration: configuration, threading: .gated)
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
        database.closeOpenResultSets()
        database.connection?.endBlobs()
        if database.isInTransaction { database.rollback() }
        checkpointIfDue(database)
        database.connection?.leave()
        if !lender.takeBack(loan, database) { close(database) }
    }

    private func close(_ database: Database) {
        database.connection?.enter()
        database.close()
    }

    /// SQLite would let each connection checkpoint whenever it has committed; two that do so at once can damage the
    /// file in versions before 3.51.3. https://www.sqlite.org/wal.html#walresetbug
    private func checkpointIfDue(_ database: Database) {
        guard let connection = database.connection, connection.walFrameCount >= 1000 else { return }
        // A full one keeps writers out. What it cannot do now is done after a later commit.
        checkpointing.withLockIfAvailable { _ in
            connection.walFrameCount = 0
            _ = try? connection.checkpoint(.full, schema: "main")
        }
    }
}
