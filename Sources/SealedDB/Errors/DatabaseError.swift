import Foundation

/// Describes what went wrong, what state the data is in, and what to do about it.
///
/// As an `NSError`, its domain is `FMDatabase` and its code is ``code``, as in FMDB. It never contains a bound value or
/// a key. Result codes: <https://www.sqlite.org/rescode.html>.
public struct DatabaseError: Error, Sendable, Hashable {
    /// SQLite's primary result code, such as `SQLITE_BUSY`.
    public let code: Int32
    /// SQLite's extended result code, such as `SQLITE_CONSTRAINT_UNIQUE`; equal to ``code`` if there is no extended
    /// one.
    public let extendedCode: Int32
    /// What SealedDB knows beyond SQLite's code.
    public let reason: Reason
    /// A sentence for people. In messages of SQLite, "…" replaces text that comes from bound values.
    public let message: String
    /// The statement that failed, with its placeholders; `nil` if no statement failed, or if it contains a key. A long
    /// statement is cut off.
    public let sql: String?
    /// The byte offset in ``sql`` of the token that the error refers to, if SQLite names one.
    public let offset: Int?
    /// The error that your closure threw while SQLite or SealedDB called it; `nil` for all other failures. Comparisons
    /// ignore it. ``message`` does not repeat its text, which could contain a value.
    public let underlyingError: (any Error)?
    /// Whether a transaction that could not be committed may be stored all the same, now or after a crash. If false, a
    /// transaction that this error ended was undone. Comparisons ignore it: ``message`` says it, too.
    public private(set) var mayBeStored = false

    /// Whether SQLite or SQLCipher has found that what it read is not as it should be.
    var isOfDamage: Bool { code == SQLITE_CORRUPT || code == SQLITE_NOTADB }

    /// Whether SQLite could not follow the structure. Other errors of damage say what to do.
    var isOfStructure: Bool { isOfDamage && !message.contains("`sealdb ") }

    /// Creates an error; the primary code is the low byte of the extended one.
    public init(
        extendedCode: Int32,
        reason: Reason = .sqlite,
        message: String,
        sql: String? = nil,
        offset: Int? = nil,
        underlyingError: (any Error)? = nil
    ) {
        self.code = extendedCode & 0xff
        self.extendedCode = extendedCode
        self.reason = reason == .sqlite ? Reason(resultCode: extendedCode) : reason
        self.message = message
        self.sql = sql.map { DatabaseError.shortened($0) }
        self.offset = offset.flatMap { $0 < DatabaseError.maximumSQLByteCount ? $0 : nil }
        self.underlyingError = underlyingError
    }

    /// Whether all is the same, but for the underlying errors.
    public static func == (first: DatabaseError, second: DatabaseError) -> Bool {
        first.extendedCode == second.extendedCode && first.reason == second.reason && first.message == second.message
            && first.sql == second.sql && first.offset == second.offset
    }

    /// Hashes some of what `==` compares.
    public func hash(into hasher: inout Hasher) {
        hasher.combine(extendedCode)
        hasher.combine(message)
        hasher.combine(sql)
    }

    /// Cuts off a long statement: it can be as long as the values in it, while errors are logged and sent.
    private static func shortened(_ sql: String) -> String {
        guard sql.utf8.count > maximumSQLByteCount else { return sql }
        return String(decoding: sql.utf8.prefix(maximumSQLByteCount), as: UTF8.self) + "…"
    }

    private static let maximumSQLByteCount = 4096

    /// The error domain of FMDB, kept for code that compares it.
    public static let errorDomain = "FMDatabase"

    /// The same error, with the statement that it belongs to.
    func adding(sql: String?) -> DatabaseError {
        var error = DatabaseError(
            extendedCode: extendedCode,
            reason: reason,
            message: message,
            sql: sql,
            underlyingError: underlyingError
        )
        error.mayBeStored = mayBeStored
        return error
    }

    /// The same error, whose message begins with what was being done.
    func adding(context: String) -> DatabaseError {
        var error = DatabaseError(
            extendedCode: extendedCode,
            reason: reason,
            message: "\(context): \(message)",
            sql: sql,
            offset: offset,
            underlyingError: underlyingError
        )
        error.mayBeStored = mayBeStored
        return error
    }

    /// The same error, of a commit that may have failed after its moment. Adds nothing if it says so already.
    func adding(commitState state: String) -> DatabaseError {
        var error = message.hasPrefix(state) ? self : adding(context: state)
        error.mayBeStored = true
        return error
    }
}

extension DatabaseError {
    /// The name of ``extendedCode``; `nil` for a code that SQLite 3.46 did not have.
    public var resultCode: ResultCode? { ResultCode(rawValue: extendedCode) }
}

extension DatabaseError: CustomNSError {
    /// SQLite's primary result code.
    public var errorCode: Int { Int(code) }
    /// What `NSError` has: the message, and the SQL if there is some.
    public var errorUserInfo: [String: Any] {
        var info: [String: Any] = [NSLocalizedDescriptionKey: message]
        info[NSUnderlyingErrorKey] = underlyingError
        return info
    }
}

extension DatabaseError: CustomStringConvertible {
    /// The message with SQLite's code, and the SQL without its values.
    public var description: String {
        var text = "SQLite error \(extendedCode)"
        if reason != .sqlite { text += " (\(reason))" }
        text += ": \(message)"
        if let sql { text += " - while executing `\(sql)`" }
        return text
    }
}

extension DatabaseError {
    /// Distinguishes failures for which SQLite has one code or none. Later versions may add reasons, so a `switch`
    /// needs a `default`.
    public struct Reason: Hashable, Sendable, CustomStringConvertible {
        /// The name of the reason.
        public let description: String

        private init(_ description: String) {
            self.description = description
        }

        /// Nothing is known beyond SQLite's code.
        public static let sqlite = Reason("sqlite")
        /// The key does not open the store (or its first page is damaged, which looks the same).
        public static let wrongKey = Reason("wrong key")
        /// The key is right, but the store was written by SQLCipher 1, 2 or 3.
        public static let olderFormat = Reason("older format")
        /// The key is right, but the store has other cipher settings.
        public static let otherSettings = Reason("other cipher settings")
        /// The store is encrypted and no key was given.
        public static let keyRequired = Reason("key required")
        /// A key was given, but the file is a plaintext SQLite database.
        public static let plaintext = Reason("plaintext database")
        /// The file cannot be a database of SQLite or SQLCipher.
        public static let notADatabase = Reason("not a database")
        /// Pages fail their authentication, or the structure is broken.
        public static let damaged = Reason("damaged")
        /// The file ends before its last page.
        public static let truncated = Reason("truncated")
        /// The key is empty or malformed.
        public static let malformedKey = Reason("malformed key")
        /// The key ring is malformed, lacks the given id, or already has it.
        public static let malformedKeyRing = Reason("malformed key ring")
        /// The slots beside the store are damaged, or not this store's.
        public static let malformedSlots = Reason("malformed slots")
        /// The slots beside the store are older than those that the store has seen.
        public static let olderSlots = Reason("older slots")
        /// Other users may read or replace the key file.
        public static let unsafeKeyFile = Reason("unsafe key file")
        /// A journal or log beside the store was not made by the store's users. It was not opened.
        public static let unsafeJournal = Reason("unsafe journal")
        /// A key command or closure returned no key, or a source returned another key when it was read again.
        public static let keySourceFailed = Reason("key source failed")
        /// The file does not exist.
        public static let noSuchFile = Reason("no such file")
        /// This user may not open the file.
        public static let notPermitted = Reason("not permitted")
        /// The file exists already and is not overwritten.
        public static let alreadyExists = Reason("already exists")
        /// The file cannot be created.
        public static let cannotCreate = Reason("cannot create")
        /// Another connection or process is in the way. Trying again later may succeed.
        public static let busy = Reason("busy")
        /// Something of this connection itself is in the way, such as an open result set, or a transaction that began
        /// before another connection wrote. Trying again does not help; the message says what must end first.
        public static let locked = Reason("locked")
        /// A statement took longer than the configuration allows.
        public static let timedOut = Reason("timed out")
        /// The operating system reported a failure.
        public static let ioError = Reason("I/O error")
        /// The file system is full.
        public static let noSpace = Reason("no space")
        /// The store has more hard links. Replacing the file would leave them with the old key.
        public static let hardLinked = Reason("hard linked")
        /// The path names a directory, device, socket or pipe.
        public static let notRegularFile = Reason("not a regular file")
        /// The new file could not get the owner, mode or attributes of the old one.
        public static let ownershipNotKept = Reason("ownership not kept")
        /// This build or engine does not support the call.
        public static let unsupported = Reason("unsupported")
        /// The SQLite library in this process is not a SQLCipher that can be trusted with keys.
        public static let wrongEngine = Reason("wrong engine")
        /// The cipher settings are invalid, or the engine did not accept them.
        public static let unusableSettings = Reason("unusable settings")
        /// What was written could not be verified, and was discarded.
        public static let unverified = Reason("unverified")
        /// A closure of the caller threw. ``DatabaseError/underlyingError`` is the thrown error.
        public static let closureFailed = Reason("closure failed")
        /// The caller asked to stop.
        public static let interrupted = Reason("interrupted")
        /// The SQL would let plaintext or a key out, or damage the store.
        public static let notAllowed = Reason("not allowed")
        /// The value of a column cannot be read as the requested type, or a value cannot be stored.
        public static let typeMismatch = Reason("type mismatch")
        /// The store's migrations differ from those of this program.
        public static let unknownMigrations = Reason("unknown migrations")
        /// A column that is NOT NULL would be NULL. ``DatabaseError/constraint`` names it.
        public static let notNullConstraint = Reason("not null constraint")
        /// Two rows would have the same values in a unique index. ``DatabaseError/constraint`` names the columns.
        public static let uniqueConstraint = Reason("unique constraint")
        /// Two rows would have the same primary key or row id. ``DatabaseError/constraint`` names the columns.
        public static let primaryKeyConstraint = Reason("primary key constraint")
        /// A row would refer to one that does not exist. SQLite does not tell which.
        public static let foreignKeyConstraint = Reason("foreign key constraint")
        /// A CHECK is not met. ``DatabaseError/constraint`` names it.
        public static let checkConstraint = Reason("check constraint")
        /// The queue or pool was shut down.
        public static let shutDown = Reason("shut down")
        /// The call is not allowed here: this is a programming error.
        public static let misuse = Reason("misuse")

        init(resultCode: Int32) {
            self =
                switch resultCode & 0xff {
                case SQLITE_BUSY: resultCode == SQLITE_BUSY_SNAPSHOT ? .locked : .busy
                case SQLITE_LOCKED: resultCode == SQLITE_LOCKED_SHAREDCACHE ? .busy : .locked
                case SQLITE_CORRUPT: .damaged
                case SQLITE_FULL: .noSpace
                case SQLITE_IOERR: .ioError
                case SQLITE_INTERRUPT: .interrupted
                case SQLITE_MISUSE: .misuse
                case SQLITE_CONSTRAINT: Reason(constraint: ResultCode(rawValue: resultCode))
                default: .sqlite
                }
        }

        private init(constraint code: ResultCode?) {
            self =
                switch code {
                case .SQLITE_CONSTRAINT_NOTNULL: .notNullConstraint
                case .SQLITE_CONSTRAINT_UNIQUE: .uniqueConstraint
                case .SQLITE_CONSTRAINT_PRIMARYKEY, .SQLITE_CONSTRAINT_ROWID: .primaryKeyConstraint
                case .SQLITE_CONSTRAINT_FOREIGNKEY: .foreignKeyConstraint
                case .SQLITE_CONSTRAINT_CHECK: .checkConstraint
                default: .sqlite
                }
        }
    }
}
