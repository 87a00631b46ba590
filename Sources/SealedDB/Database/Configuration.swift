public import Logging

/// How connections are opened and reopened.
public struct Configuration: Sendable {
    /// Where keys come from; `nil` for a plaintext database.
    var keyOrigin: KeyOrigin?
    /// The cipher settings of the store. The default settings are those of SQLCipher 4.
    public var cipherSettings = CipherSettings()
    /// How long to wait for a lock. Default 2 s, as in FMDB. https://www.sqlite.org/c3ref/busy_timeout.html
    public var busyTimeout = Duration.seconds(2)
    /// The size of the page cache in KiB. `nil` keeps SQLite's 2 MB for a ``Database``; a ``DatabaseQueue`` then uses
    /// 32 MiB, because each page that is read again must be decrypted again.
    /// https://www.sqlite.org/pragma.html#pragma_cache_size
    public var cacheSize: Int?
    /// The journal mode. `nil` keeps the mode of the file for a ``Database``; a ``DatabaseQueue`` then uses WAL.
    ///
    /// A new file that is opened without a key gets WAL when it is opened next, or by ``Database/setKey(_:)``: to set it
    /// writes the first page, in plaintext. The plain build sets it at once.
    /// https://www.sqlite.org/pragma.html#pragma_journal_mode
    public var journalMode: JournalMode?
    /// When SQLite waits for the disk. `nil` means EXTRA: with FULL, the engine's default, a power failure can undo the
    /// last commits in rollback-journal mode. In WAL mode, both are the same.
    /// https://www.sqlite.org/pragma.html#pragma_synchronous
    public var synchronous: Synchronous?
    /// How many prepared statements a connection keeps for their next use; 0 for none. They are found by their text.
    /// Default 64.
    public var statementCacheCapacity = 64
    /// How long a statement may take. A statement that takes longer is stopped with
    /// ``DatabaseError/Reason/timedOut``. The time counts from the first step, and includes what the reader does
    /// between rows. `nil`, the default, means no limit.
    public var statementTimeout: Duration?
    /// Statements that take longer than this are logged as warnings, without values. The time is measured
    /// in milliseconds. `nil`, the default, means that none are logged.
    public var slowStatementThreshold: Duration?
    /// Whether to open read-only. Default false.
    public var isReadOnly = false
    /// Whether a store is read as it lies there, with its log and without locks, where it is opened read-only in a directory
    /// in which this user may not write, and SQLite would have to. ``Database/requireStill()`` then tells whether somebody
    /// wrote to it meanwhile.
    package var looksIfUnreadable = false
    /// Called with what the ``logger`` is told about the store when it is opened.
    package var warn: (@Sendable (String) -> Void)?

    @Sendable func tell(_ text: String) {
        logger?.error("\(text)")
        warn?(text)
    }

    /// Whether a rotation continues if it cannot be determined whether somebody else has the store open; see
    /// ``KeyRotation``. Default false.
    public var ignoresUnseenUsers = false
    /// Whether key slots are used that are older than those that the store has seen; see ``KeySlots``. Slots may be among
    /// them that were removed since. Default false.
    public var acceptsOlderSlots = false
    /// What the key slots of the store must be at least, as ``KeySlots/pin()`` told it before. A store without slots, with
    /// other ones, or with older ones is not opened: ``DatabaseError/Reason/olderSlots``. `nil`, the default, means that
    /// only the store itself is asked.
    public var slotPin: KeySlots.Pin?
    /// Whether opening creates a missing file, and turns an empty file into a store. Default true.
    public var createsFile = true
    /// Whether SQL may set keys and cipher settings on a connection that has a key. Default false, because SQLCipher
    /// applies a setting even if it comes too late, and the file can then no longer be opened. Besides, a key in SQL
    /// text can be seen. If true, such SQL must come directly after the key, and nothing checks it.
    public var allowsCipherStatements = false
    /// Whether SQLite refuses rows whose foreign keys lead nowhere. Default true. SQLite's own default is false, so that
    /// constraints of the schema count for nothing. https://www.sqlite.org/foreignkeys.html#fk_enable
    ///
    /// This and the next three have the values of SQLite in databases that FMDB's own initializers make, which take no
    /// configuration. SQL can change them while the database is open, as far as pragmas can.
    public var enforcesForeignKeys = true
    /// Whether views, triggers, defaults, indexes and constraints of the schema may call any function. Default false:
    /// only harmless ones, which SQLite calls innocuous; ``FunctionOptions/innocuous`` marks your own ones so. A store
    /// that somebody else has written could otherwise call functions of this program with arguments of its own.
    ///
    /// The default is true with an engine older than SQLite 3.46: there, triggers could not keep full-text tables up to
    /// date. https://www.sqlite.org/pragma.html#pragma_trusted_schema
    public var trustsSchema = Engine.needsTrustInSchema
    /// Whether SQLite takes a name in double quotes that no column has for a text. Default false: a misspelt column is
    /// an error, and not a condition that is always false. https://www.sqlite.org/quirks.html#dblquote
    public var acceptsDoubleQuotedStrings = false
    /// Whether SQL cannot damage the file of an encrypted store: it may not write to the schema by
    /// `PRAGMA writable_schema`, nor to the tables in which full-text search keeps its index, nor turn the journal off.
    /// Default true. Dumps of stores with virtual tables need false.
    /// https://www.sqlite.org/c3ref/c_dbconfig_defensive.html
    public var isDefensive = true
    /// For databases that FMDB's own initializers make: SQLite's defaults instead of the four above.
    private(set) var hasDefaultsOfSQLite = false
    /// How column names are derived from the properties of types that are read from rows or written to them.
    public var columnNaming = ColumnNaming.asIs
    /// Called with each connection once it is open and its key has been verified. If it throws, or tries to close the
    /// database or to change its key, the opening fails.
    public var prepare: (@Sendable (Database) throws -> Void)?
    /// The logger for failures. Statements, values and keys are never logged with them. Default `nil`: failures are not
    /// logged. It is also told when a store is opened whose log has committed transactions behind damaged bytes, which
    /// SQLite leaves out.
    public var logger: Logger?

    /// Whether a transaction of the library is rolled back, and its call throws, if a call in its block failed
    /// unnoticed. Default true, so that a half-executed script is not committed.
    ///
    /// This applies to the blocks of `write` and `read`, and to those blocks of `inTransaction` and `savepoint` that
    /// can throw. FMDB's own block calls, which pass a flag for rolling back, behave as in FMDB.
    ///
    /// A failure is unnoticed if a call returned false or `nil`, such as `executeUpdate(_:withArgumentsIn:)`,
    /// `executeStatements(_:)` and `next()`, and neither ``Database/lastError()`` nor a similar call has shown an error
    /// since. A thrown error counts as noticed, whatever the block did with it. Failures in a savepoint that was rolled
    /// back do not count.
    ///
    /// A migration fails regardless of this setting, because it would otherwise be recorded as done.
    public var failsBlocksAfterIgnoredErrors = true

    /// How `write` of a queue or pool combines commits.
    public var writeBatching = WriteBatching()
    /// Bytes of the write-ahead log beyond which a ``DatabasePool`` keeps new readers waiting for those that are at work,
    /// for some seconds at most, so that the log can be emptied. Default 64 MiB.
    public var maximumLogSize = 64 << 20
    /// How many connections a ``DatabasePool`` opens for `read` at most, if that many blocks read at the same time.
    /// Each connection has its own page cache. `nil`, the default, means twice the number of cores, because some
    /// readers wait for the disk or for their turn, but at least 4 and at most 16.
    public var maximumReaderCount: Int?

    /// Where a ``DatabaseQueue`` or ``DatabasePool`` ships its store while it is open; `nil`, the default, for nowhere. A
    /// ``Database`` that belongs to neither is not opened with it.
    public var replication: Replication?

    /// What FMDB's own initializers use.
    static let asInFMDB: Configuration = {
        var configuration = Configuration()
        configuration.hasDefaultsOfSQLite = true
        return configuration
    }()

    /// Creates a configuration with a key, or for a plaintext database.
    public init(key: Key? = nil) {
        self.key = key
    }

    /// Creates a configuration with a key, for a queue or pool that ships its store to a repository.
    public init(key: Key, replication: Replication) {
        self.key = key
        self.replication = replication
    }

    /// Creates a configuration whose key is read at the first opening. The key is read again if it no longer opens the
    /// store, because somebody else has rotated it. Descriptors and prompts are only read once.
    public init(keySource: KeySource) {
        self.keySource = keySource
    }

    /// Creates a configuration with several keys, any of which may open the store; see ``Database/keyID`` and
    /// ``Database/needsRotation``. A ring from a file is read again at each opening.
    public init(keyRing: KeyRing) {
        self.keyRing = keyRing
    }

    /// The key; `nil` for a plaintext database, or if keys have another origin. Setting it replaces that origin.
    public var key: Key? {
        get { if case .key(let key) = keyOrigin { key } else { nil } }
        set { keyOrigin = newValue.map { .key($0) } }
    }

    /// The source of the key. Setting it replaces ``key`` and ``keyRing``.
    public var keySource: KeySource? {
        get { if case .source(let key) = keyOrigin { key.source } else { nil } }
        set { keyOrigin = newValue.map { .source(SourcedKey($0)) } }
    }

    /// The key ring as it was last read. Setting it replaces ``key`` and ``keySource``.
    public var keyRing: KeyRing? {
        get { if case .ring(let holder) = keyOrigin { holder.ringAsRead } else { nil } }
        set { keyOrigin = newValue.map { .ring(KeyOrigin.RingHolder($0)) } }
    }

    /// Limits of the transaction that concurrent calls of `write` share.
    public struct WriteBatching: Sendable {
        /// How many blocks may share a commit; 1 to share none. Default 128.
        public var maximumCount = 128
        /// How long after the start of the first block further blocks may join. A block that would not end by then, if it
        /// takes as long as others did lately, may not join either. Default 50 ms.
        public var maximumDuration = Duration.milliseconds(50)

        /// The defaults.
        public init() {}
    }

    /// SQLite's journal modes. https://www.sqlite.org/pragma.html#pragma_journal_mode
    ///
    /// With `memory`, a process that ends within a transaction can leave a damaged file. With `off`, in addition,
    /// nothing can be undone: a failing statement leaves what it has done so far, and a rollback leaves everything,
    /// whatever the error of its block says. Use `off` only for a ``Database`` whose file can be created again. Queues
    /// and pools refuse it with `SQLITE_MISUSE` when they open, and refuse `PRAGMA journal_mode = OFF` in their blocks
    /// with ``DatabaseError/Reason/notAllowed``.
    public enum JournalMode: String, Sendable, CaseIterable {
        /// The journal is removed after each transaction. SQLite's own default.
        case delete
        /// The journal is emptied after each transaction.
        case truncate
        /// The journal stays after each transaction, with a header that says that it does not count.
        case persist
        /// The journal is in memory.
        case memory
        /// Changes go to a log beside the store, and others can read meanwhile. The default of queues and pools.
        case wal
        /// There is no journal.
        case off
    }

    /// When SQLite waits for the disk.
    public enum Synchronous: String, Sendable, CaseIterable {
        /// Never: when the machine stops, the store may be damaged.
        case off
        /// At the moments that keep the store whole. In WAL mode, the last transactions may be gone when the machine stops.
        case normal
        /// At each commit, so that it is on disk when the call returns.
        case full
        /// As with ``full``, and the directory, too, when a journal is removed.
        case extra
    }

    /// The configuration with the defaults of queues and pools filled in.
    var forSharedUse: Configuration {
        var result = self
        result.journalMode = journalMode ?? .wal
        result.cacheSize = cacheSize ?? 32 * 1024
        return result
    }

    var flags: Int32 {
        if isReadOnly { return SQLITE_OPEN_READONLY }
        return SQLITE_OPEN_READWRITE | (createsFile ? SQLITE_OPEN_CREATE : 0)
    }
}
