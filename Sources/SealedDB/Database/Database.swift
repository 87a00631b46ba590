public import Foundation

/// One connection to a database: FMDB's `FMDatabase`.
///
/// It is not Sendable: use it on one thread at a time, or use ``DatabaseQueue``. If a queue or pool has lent it to a
/// block, using it outside of that block ends the process. Its result sets may be released at any time, on any thread.
/// Calls that return `Bool` or an optional leave their error in ``lastError()``; throwing calls also throw it.
public final class Database {
    /// The path as it was given; `nil` for a database in memory, empty for a temporary file.
    public let databasePath: String?
    /// The same, absolute: each opening is of the same file, also after the process has changed its working directory.
    let filePath: String?
    /// How the connection is opened. ``setKey(_:)`` and ``rotateKey(to:progress:)`` change its key.
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

    /// Whether a ``DatabasePool`` has lent this database to a block.
    public internal(set) var checkedOut = false

    /// The connection. Its getter checks that the calling thread may use it, so calls that begin with it need no check.
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
    /// Decides which thread may use the database, if it belongs to a queue or pool.
    let gate: ThreadGate?
    /// Whether the database belongs to a queue or pool.
    var isShared: Bool { gate != nil }
    /// Keeps blocks within their transactions. For queues and pools, and if statements have a time limit, it also
    /// limits and stops statements.
    let supervision: Supervision
    /// Functions, hooks and the like, which each new connection gets.
    var additions: ConnectionAdditions {
        requireTurn("Database")
        return ownAdditions
    }
    private let ownAdditions = ConnectionAdditions()
    private(set) var recordedError: DatabaseError?
    /// Whether ``recordedError`` is set. Reading this flag is cheaper than reading the error.
    private var hasRecordedError = false
    /// The first failure that a call reported only by its result, and that was not noticed; see
    /// ``takeUnnoticedFailure()``.
    var ignoredError: DatabaseError?
    /// The initial contents of a database in memory, until it is opened.
    var image: Data?
    /// The key that fitted at the last opening.
    var fittingKey: FittingKey?
    /// Whether the database was ever open with a key. It never opens without one again.
    var hadKey = false
    /// The key that a rotation gave the store, while the configuration gets its keys from elsewhere.
    var adoptedKey: Key?
    var openedFlags: Int32?
    /// The settings of a connection that the library closed by itself. The next connection gets them.
    var keptSettings: ConnectionSettings?
    var openedVFS: String?
    /// Whether this is a connection of a pool: the pool moves the log into the file, in place of SQLite, and gives all
    /// its connections one key.
    var belongsToPool = false
    /// Ships the store of the queue or pool that the database belongs to; `nil` if that does not.
    var shipper: Shipper?
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
    /// Called when an opening has come to the configuration's `prepare` closure.
    var willPrepare: (() -> Void)?
    /// Whether the configuration's `prepare` closure is running.
    var isPreparing = false
    /// The first error of a call that is not allowed within that closure.
    var preparationError: DatabaseError?
    var switches = Switches()

    /// Creates a database in memory.
    public convenience init() {
        self.init(path: nil)
    }

    /// Stores the path. Nothing is opened before ``open()``.
    /// - Parameter path: a file, which opening creates if it does not exist; `""` for a temporary file, which closing
    ///   deletes; `nil` for a database in memory. It is never taken for a URI.
    public convenience init(path: String?) {
        self.init(path: path, configuration: .asInFMDB)
    }

    /// Stores the path of a file URL; `nil` for a database in memory. Nothing is opened before ``open()``.
    public convenience init(url: URL?) {
        self.init(path: url?.path)
    }

    /// Stores the path and the configuration. Nothing is opened before ``open()``.
    public convenience init(path: String?, configuration: Configuration) {
        self.init(path: path, configuration: configuration, gate: nil)
    }

    convenience init(path: String?, configuration: Configuration, gate: ThreadGate?) {
        self.init(path: path, absolute: Database.absolute(path), configuration: configuration, gate: gate)
    }

    /// - Parameter filePath: the absolute path of the file.
    init(path: String?, absolute filePath: String?, configuration: Configuration, gate: ThreadGate?) {
        self.databasePath = path
        self.filePath = filePath
        ownConfiguration = configuration
        self.gate = gate
        supervision = Supervision(configuration, isOfSharedUse: gate != nil)
    }

    deinit {
        interrupter.attach(nil)
        ownConnection?.close()
    }

    // MARK: Turns

    /// Lets the calling thread in, on behalf of the owner of the gate. Ends what other threads have released in the
    /// meantime.
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

    /// Ends the process if another thread may be using the database now.
    @inline(__always)
    func requireTurn(_ call: StaticString) { gate?.require(call) }

    // MARK: State

    /// The path as a URL; `nil` for a database in memory.
    public var databaseURL: URL? { databasePath.map { URL(fileURLWithPath: $0) } }

    /// Whether the data outlives the connection.
    var isOfFile: Bool { Database.isFile(databasePath) }

    static func isFile(_ path: String?) -> Bool { path.map { !$0.isEmpty && $0 != ":memory:" } ?? false }

    static func absolute(_ path: String?) -> String? { isFile(path) ? path.map(FileSystem.absolute) : path }

    /// True between a successful opening and ``close()``.
    public var isOpen: Bool { connection?.handle != nil }

    /// The version of the SQLite library in this process, such as `3.46.1`.
    public class func sqliteLibVersion() -> String { Engine.sqliteVersion }

    /// The FMDB version whose API this library has.
    public class func fmdbUserVersion() -> String { "2.7.12" }

    /// Whether SQLite was compiled for use by several threads.
    public class func isSQLiteThreadSafe() -> Bool { Engine.isThreadSafe }

    /// How many seconds to wait for a lock. With 0 or less, a call fails at once. Default 2.
    /// https://www.sqlite.org/c3ref/busy_timeout.html
    public var maxBusyRetryTimeInterval: TimeInterval {
        get { configuration.busyTimeout.seconds }
        set {
            configuration.busyTimeout = Duration(clampingSeconds: newValue)
            connection?.setBusyTimeout(seconds: newValue)
        }
    }

    /// The row id of the last row inserted on this connection; 0 if there was none, or if the database is closed.
    /// https://www.sqlite.org/c3ref/last_insert_rowid.html
    public var lastInsertRowId: Int64 { connection?.lastInsertRowID ?? 0 }

    /// How many rows the last INSERT, UPDATE or DELETE changed. https://www.sqlite.org/c3ref/changes.html
    public var changes: Int32 { connection?.changes ?? 0 }

    /// Stops the running statement, and statements whose rows have not all been read. They end with `SQLITE_INTERRUPT`.
    /// From another thread, use the same call of ``DatabaseQueue``. https://www.sqlite.org/c3ref/interrupt.html
    /// - Returns: false if the database is not open.
    @discardableResult
    public func interrupt() -> Bool { interrupter.interrupt() }

    /// Ends all result sets; their `next()` then returns false.
    public func closeOpenResultSets() {
        connection?.endUses()
    }

    /// Records that a call failed.
    func record(_ error: DatabaseError) {
        recordedError = error
        hasRecordedError = true
    }

    /// Records that a call succeeded.
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
    /// Whether both are the same connection.
    public static func == (first: Database, second: Database) -> Bool { first === second }
}
