public import Foundation

/// One connection to a database: FMDB's `FMDatabase`.
///
/// Not Sendable: use it on one thread at a time, or use ``DatabaseQueue``. One that a queue or pool has lent to a block ends
/// the process if it is used outside of that block. Its result sets may be dropped at any time on any thread. The calls
/// that return `Bool` or an optional leave their error in ``lastError()``; the throwing ones throw it as well.
public final class Database {
    /// The path as given; `nil` in memory, empty for a temporary file.
    public let databasePath: String?
    /// How the connection is opened; ``setKey(_:)`` and ``rotateKey(to:progress:)`` change the key in it.
    public internal(set) var configuration: Configuration {
        get {
            requireTurn("Database.configuration")
            return ownConfiguration
        }
        set {
            requireTurn("Database.configuration")
            ownConfiguration = newValue
        }
    }
    private var ownConfiguration: Configuration

    /// Whether a ``DatabasePool`` has lent it to a block.
    public internal(set) var checkedOut = false

    /// Asks whether the calling thread may use it, so that whatever begins with it need not.
    var connection: Connection? {
        @inline(__always) get {
            requireTurn("Database")
            return ownConnection
        }
        set {
            requireTurn("Database")
            newValue?.dateFormat = dateFormat
            interrupter.attach(newValue)
            ownConnection = newValue
        }
    }
    private var ownConnection: Connection?
    let interrupter = Interrupter()
    /// Which thread may use it, if it belongs to a queue or pool.
    let gate: ThreadGate?
    /// Whether it belongs to a queue or pool.
    var isShared: Bool { gate != nil }
    /// Keeps blocks within their transactions; also bounds and stops statements for queues and pools, and where a
    /// statement's time is limited.
    let supervision: Supervision
    /// Functions, hooks and the like, which come back with every reopening.
    var additions: ConnectionAdditions {
        requireTurn("Database")
        return ownAdditions
    }
    private let ownAdditions = ConnectionAdditions()
    private(set) var recordedError: DatabaseError?
    /// Whether there is one: told sooner than by looking at it.
    private var hasRecordedError = false
    /// The first failure that a call told by its result alone, and that was not looked at; see ``takeUnnoticedFailure()``.
    var ignoredError: DatabaseError?
    /// What a database in memory begins with, until it is opened.
    var image: Data?
    /// Of the last opening.
    var fittingKey: FittingKey?
    /// The key that a rotation gave the store, while the configuration has keys from elsewhere.
    var adoptedKey: Key?
    var openedFlags: Int32?
    /// Of a connection that was closed without the caller's doing; the next one gets them.
    var keptSettings: ConnectionSettings?
    var openedVFS: String?
    var dateFormat: DateFormatter? {
        get {
            requireTurn("Database")
            return ownDateFormat
        }
        set {
            connection?.dateFormat = newValue
            ownDateFormat = newValue
        }
    }
    private var ownDateFormat: DateFormatter?
    var savepointCount = 0
    var switches = Switches()

    /// A database in memory.
    public convenience init() {
        self.init(path: nil)
    }

    /// Remembers the path; nothing is opened before ``open()``.
    /// - Parameter path: a file, created at opening if it does not exist; `""` for a temporary file that is deleted at
    ///   closing; `nil` for a database in memory. Never a URI.
    public convenience init(path: String?) {
        self.init(path: path, configuration: Configuration())
    }

    /// Remembers the path of a file URL; `nil` means in memory.
    public convenience init(url: URL?) {
        self.init(path: url?.path)
    }

    /// Remembers path and configuration; nothing is opened before ``open()``.
    public convenience init(path: String?, configuration: Configuration) {
        self.init(path: path, configuration: configuration, gate: nil)
    }

    init(path: String?, configuration: Configuration, gate: ThreadGate?) {
        self.databasePath = path
        ownConfiguration = configuration
        self.gate = gate
        supervision = Supervision(configuration, isOfSharedUse: gate != nil)
    }

    deinit {
        interrupter.attach(nil)
        ownConnection?.close()
    }

    // MARK: Turns

    /// Lets the calling thread in, for the owner of the gate; what was dropped elsewhere meanwhile is ended.
    func enter() {
        gate?.enter()
        ownConnection?.endOrphans()
    }

    /// Ends the turn that ``enter()`` began.
    func leave() {
        ownConnection?.endOrphans()
        ownConnection?.settleChanges()
        gate?.leave()
    }

    /// Ends the process if another thread could be using the database now.
    @inline(__always)
    func requireTurn(_ call: StaticString) { gate?.require(call) }

    // MARK: State

    /// The path as a URL; `nil` in memory.
    public var databaseURL: URL? { databasePath.map { URL(fileURLWithPath: $0) } }

    /// Whether its data outlives its connection.
    var isOfFile: Bool { Database.isFile(databasePath) }

    static func isFile(_ path: String?) -> Bool { path.map { !$0.isEmpty && $0 != ":memory:" } ?? false }

    /// True between a successful opening and ``close()``.
    public var isOpen: Bool { connection?.handle != nil }

    /// Version of the SQLite in this process, such as `3.46.1`.
    public class func sqliteLibVersion() -> String { Engine.sqliteVersion }

    /// The FMDB version whose API this is.
    public class func fmdbUserVersion() -> String { "2.7.12" }

    /// Whether SQLite was compiled to be used by several threads.
    public class func isSQLiteThreadSafe() -> Bool { Engine.isThreadSafe }

    /// Seconds to wait for a lock; 0 or less fails at once. Default 2.
    /// https://www.sqlite.org/c3ref/busy_timeout.html
    public var maxBusyRetryTimeInterval: TimeInterval {
        get { configuration.busyTimeout }
        set {
            configuration.busyTimeout = newValue
            connection?.setBusyTimeout(seconds: newValue)
        }
    }

    /// Row id of the last row inserted on this connection; 0 if there was none or the database is closed.
    /// https://www.sqlite.org/c3ref/last_insert_rowid.html
    public var lastInsertRowId: Int64 { connection?.lastInsertRowID ?? 0 }

    /// Rows changed by the last INSERT, UPDATE or DELETE. https://www.sqlite.org/c3ref/changes.html
    public var changes: Int32 { connection?.changes ?? 0 }

    /// Stops the running statement, and those whose rows are not all read: they end with `SQLITE_INTERRUPT`. A ``DatabaseQueue`` has the same call for other
    /// threads. https://www.sqlite.org/c3ref/interrupt.html
    /// - Returns: false if the database is not open.
    @discardableResult
    public func interrupt() -> Bool { interrupter.interrupt() }

    /// Ends all result sets; their `next()` then returns false.
    public func closeOpenResultSets() {
        connection?.endUses()
    }

    /// Remembers that a call failed.
    func record(_ error: DatabaseError) {
        recordedError = error
        hasRecordedError = true
    }

    /// Remembers that a call succeeded.
    @inline(__always)
    func recordSuccess() {
        if hasRecordedError { forgetError() }
    }

    @inline(never)
    private func forgetError() {
        recordedError = nil
        hasRecordedError = false
    }

    /// Whether a result set of this database is in use.
    public var hasOpenResultSets: Bool { connection?.isInUse ?? false }
}

@available(*, unavailable, message: "A Database is used by one thread at a time. Share a DatabaseQueue instead.")
extension Database: Sendable {}

extension Database: Equatable {
    public static func == (first: Database, second: Database) -> Bool { first === second }
}
