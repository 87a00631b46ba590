public import Logging

/// How connections are opened, and opened again.
public struct Configuration: Sendable {
    /// Where keys come from; `nil` for a database in the clear.
    var keyOrigin: KeyOrigin?
    /// How the store is encrypted, if not by SQLCipher 4's defaults.
    public var cipherSettings = CipherSettings()
    /// Seconds to wait for a lock. Default 2, as in FMDB. https://www.sqlite.org/c3ref/busy_timeout.html
    public var busyTimeout: Double = 2
    /// Size of the page cache in KiB. `nil` keeps SQLite's 2 MB; a ``DatabaseQueue`` then takes 32 MiB, because a page
    /// read again is a page decrypted again. https://www.sqlite.org/pragma.html#pragma_cache_size
    public var cacheSize: Int?
    /// `nil` leaves the file's mode; a ``DatabaseQueue`` then takes WAL. https://www.sqlite.org/pragma.html#pragma_journal_mode
    public var journalMode: JournalMode?
    /// `nil` takes EXTRA: with FULL, the engine's default, a power failure can undo the last commits of a rollback
    /// journal. In WAL mode the two are the same. https://www.sqlite.org/pragma.html#pragma_synchronous
    public var synchronous: Synchronous?
    /// How many prepared statements a connection keeps for their next use, by their text; 0 for none. Default 64.
    public var statementCacheCapacity = 64
    /// Seconds that a statement may take before it is stopped, with ``DatabaseError/Reason/timedOut``; `nil`, the
    /// default, for any time. Counted from its first step, whatever its reader does between rows included.
    public var statementTimeout: Double?
    /// Statements that take longer are logged as warnings, without values; in seconds, counted by milliseconds. `nil`,
    /// the default, for none.
    public var slowStatementThreshold: Double?
    /// Opens without the right to write. Default false.
    public var isReadOnly = false
    /// Whether a rotation goes on although it cannot be told whether somebody else has the store open; see
    /// ``KeyRotation``. Default false.
    public var ignoresUnseenUsers = false
    /// Creates a file that does not exist, or makes a store of an empty one. Default true.
    public var createsFile = true
    /// Whether SQL may set keys and cipher settings on a connection that has a key. Default false: SQLCipher obeys a
    /// setting that comes too late, and nothing opens the file afterwards; and SQL is text, in which a key can be seen.
    /// With true, what is needed must come right after the key, and nothing checks it.
    public var allowsCipherStatements = false
    /// How columns are named after the properties of types that are read from rows or written to them.
    public var columnNaming = ColumnNaming.asIs
    /// Called with each connection once it is open and its key has been proved right; throwing fails the opening.
    public var prepare: (@Sendable (Database) throws -> Void)?
    /// Where failures are logged, without statements, values or keys. Default `nil`: nowhere.
    public var logger: Logger?

    /// Whether a transaction of the library is rolled back, and its call throws, if a call in its block failed and nobody
    /// noticed. Default true: a script of which a half was executed is not committed.
    ///
    /// It concerns the blocks of `write` and `read`, and those of `inTransaction` and `savepoint` that can
    /// throw; FMDB's own block calls, which give a flag to roll back, are as FMDB has them. Unnoticed is the failure of a
    /// call that returns false or `nil`, such as `executeUpdate(_:withArgumentsIn:)`, `executeStatements(_:)` and `next()`,
    /// unless ``Database/lastError()`` or one of its kin has shown an error since. What was thrown was noticed, whatever
    /// the block did with it; what a savepoint has taken back does not count. A migration fails whatever is set here: it
    /// would be recorded as done.
    public var failsBlocksAfterIgnoredErrors = true

    /// How `write` of a queue or pool shares commits.
    public var writeBatching = WriteBatching()
    /// How many connections a ``DatabasePool`` opens for `read`, when so many blocks read at once; each has a page cache
    /// of its own. `nil`, the default: twice as many as the machine has cores, since some will wait for the disk or for
    /// their turn; at least 4 and at most 16.
    public var maximumReaderCount: Int?

    /// With a key, or in the clear.
    public init(key: Key? = nil) {
        self.key = key
    }

    /// With a key that is read at the first opening, and read again when it no longer opens the store, because somebody
    /// else has rotated it. Descriptors and prompts are read once.
    public init(keySource: KeySource) {
        self.keySource = keySource
    }

    /// With several keys, of which any may open the store; see ``Database/keyID`` and ``Database/needsRotation``. A ring
    /// from a file is read anew at each opening.
    public init(keyRing: KeyRing) {
        self.keyRing = keyRing
    }

    /// The key; `nil` for a database in the clear, or with another origin of keys. Setting it displaces that.
    public var key: Key? {
        get { if case .key(let key) = keyOrigin { key } else { nil } }
        set { keyOrigin = newValue.map { .key($0) } }
    }

    /// The source of the key; setting it displaces ``key`` and ``keyRing``.
    public var keySource: KeySource? {
        get { if case .source(let key) = keyOrigin { key.source } else { nil } }
        set { keyOrigin = newValue.map { .source(SourcedKey($0)) } }
    }

    /// The key ring, as last read; setting it displaces ``key`` and ``keySource``.
    public var keyRing: KeyRing? {
        get { if case .ring(let holder) = keyOrigin { holder.ringAsRead } else { nil } }
        set { keyOrigin = newValue.map { .ring(KeyOrigin.RingHolder($0)) } }
    }

    /// Limits of the transaction that concurrent calls of `write` share.
    public struct WriteBatching: Sendable {
        /// How many blocks share a commit at most; 1 for none. Default 128.
        public var maximumCount = 128
        /// Seconds after the first block's begin when no further one is let in. Default 0.05.
        public var maximumDuration = 0.05

        public init() {}
    }

    /// Names of SQLite's journal modes. https://www.sqlite.org/pragma.html#pragma_journal_mode
    ///
    /// With `memory` a process that ends within a transaction can leave a damaged file. With `off` nothing can be undone
    /// either: a statement that fails leaves what it has done so far, a rollback leaves all, whatever the error of its
    /// block says. It is for a ``Database`` whose file can be made anew. Queues and pools refuse it with `SQLITE_MISUSE`
    /// when they open, and `PRAGMA journal_mode = OFF` in their blocks with ``DatabaseError/Reason/notAllowed``.
    public enum JournalMode: String, Sendable, CaseIterable {
        case delete, truncate, persist, memory, wal, off
    }

    /// When SQLite waits for the disk.
    public enum Synchronous: String, Sendable, CaseIterable {
        case off, normal, full, extra
    }

    /// With the defaults of queues and pools filled in.
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
