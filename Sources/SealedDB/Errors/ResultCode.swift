/// SQLite's result codes by name: the primary ones, and the extended ones after those they belong to. Codes of SQLite 3.46
/// are here; later versions may return others. https://www.sqlite.org/rescode.html
///
/// ```swift
/// do {
///     try db.executeUpdate("INSERT INTO person (email) VALUES (\(email))")
/// } catch let error as DatabaseError where error.resultCode == .SQLITE_CONSTRAINT_UNIQUE {
///     throw SignUpError.emailIsTaken
/// }
/// ```
public enum ResultCode: Int32, Hashable, Sendable {
    /// Success.
    case SQLITE_OK = 0
    /// An extension was loaded, and stays when the connection closes.
    case SQLITE_OK_LOAD_PERMANENTLY = 256
    /// A path was followed through a symbolic link. SQLite uses it inside itself.
    case SQLITE_OK_SYMLINK = 512
    /// A mistake that no other code names; most often in the SQL.
    case SQLITE_ERROR = 1
    /// The statement needs a collation that the connection does not have.
    case SQLITE_ERROR_MISSING_COLLSEQ = 257
    /// The statement must be prepared again. SQLite uses it inside itself.
    case SQLITE_ERROR_RETRY = 513
    /// The snapshot that was asked for is gone.
    case SQLITE_ERROR_SNAPSHOT = 769
    /// A defect of SQLite, or of an extension.
    case SQLITE_INTERNAL = 2
    /// The mode that a new file should have could not be given to it.
    case SQLITE_PERM = 3
    /// A statement was ended early, often because its transaction was rolled back.
    case SQLITE_ABORT = 4
    /// A statement was ended because another one of its connection rolled back the transaction.
    case SQLITE_ABORT_ROLLBACK = 516
    /// Another connection has the lock; nothing was changed.
    case SQLITE_BUSY = 5
    /// Another process is recovering the log after a crash.
    case SQLITE_BUSY_RECOVERY = 261
    /// A read transaction cannot write, because others have written since it began. Begin anew.
    case SQLITE_BUSY_SNAPSHOT = 517
    /// A lock that was waited for did not come in time.
    case SQLITE_BUSY_TIMEOUT = 773
    /// A statement of the same connection, or one with a shared cache, has the table.
    case SQLITE_LOCKED = 6
    /// Another connection of the same shared cache has the table.
    case SQLITE_LOCKED_SHAREDCACHE = 262
    /// A virtual table is in use.
    case SQLITE_LOCKED_VTAB = 518
    /// There is no memory.
    case SQLITE_NOMEM = 7
    /// The database may only be read.
    case SQLITE_READONLY = 8
    /// The log needs recovery, and this connection may only read.
    case SQLITE_READONLY_RECOVERY = 264
    /// The shared memory of the log cannot be locked, because it may only be read.
    case SQLITE_READONLY_CANTLOCK = 520
    /// A hot journal must be rolled back, and this connection may only read.
    case SQLITE_READONLY_ROLLBACK = 776
    /// The file was moved or replaced after it was opened. Nothing was written.
    case SQLITE_READONLY_DBMOVED = 1032
    /// The shared memory of the log cannot be made, because it may only be read.
    case SQLITE_READONLY_CANTINIT = 1288
    /// The directory cannot be written to, so there can be no journal.
    case SQLITE_READONLY_DIRECTORY = 1544
    /// The statement was interrupted.
    case SQLITE_INTERRUPT = 9
    /// The operating system reported an error.
    case SQLITE_IOERR = 10
    /// Reading the file failed.
    case SQLITE_IOERR_READ = 266
    /// The file ended before what should be read.
    case SQLITE_IOERR_SHORT_READ = 522
    /// Writing the file failed.
    case SQLITE_IOERR_WRITE = 778
    /// Syncing the file failed.
    case SQLITE_IOERR_FSYNC = 1034
    /// Syncing the directory failed.
    case SQLITE_IOERR_DIR_FSYNC = 1290
    /// Cutting the file to a size failed.
    case SQLITE_IOERR_TRUNCATE = 1546
    /// Asking for the state of the file failed.
    case SQLITE_IOERR_FSTAT = 1802
    /// Giving back a lock failed.
    case SQLITE_IOERR_UNLOCK = 2058
    /// Taking a lock for reading failed.
    case SQLITE_IOERR_RDLOCK = 2314
    /// Removing a file failed.
    case SQLITE_IOERR_DELETE = 2570
    /// No longer used by SQLite.
    case SQLITE_IOERR_BLOCKED = 2826
    /// There was no memory while the file was used.
    case SQLITE_IOERR_NOMEM = 3082
    /// Asking whether a file may be used failed.
    case SQLITE_IOERR_ACCESS = 3338
    /// Asking for a reserved lock failed.
    case SQLITE_IOERR_CHECKRESERVEDLOCK = 3594
    /// Taking a lock failed.
    case SQLITE_IOERR_LOCK = 3850
    /// Closing the file failed.
    case SQLITE_IOERR_CLOSE = 4106
    /// No longer used by SQLite.
    case SQLITE_IOERR_DIR_CLOSE = 4362
    /// Opening the shared memory of the log failed.
    case SQLITE_IOERR_SHMOPEN = 4618
    /// Growing the shared memory of the log failed.
    case SQLITE_IOERR_SHMSIZE = 4874
    /// Locking the shared memory of the log failed.
    case SQLITE_IOERR_SHMLOCK = 5130
    /// Mapping the shared memory of the log failed.
    case SQLITE_IOERR_SHMMAP = 5386
    /// Going to a place of the file failed.
    case SQLITE_IOERR_SEEK = 5642
    /// A file that should be removed is not there.
    case SQLITE_IOERR_DELETE_NOENT = 5898
    /// Mapping the file into memory failed.
    case SQLITE_IOERR_MMAP = 6154
    /// There is no directory for temporary files.
    case SQLITE_IOERR_GETTEMPPATH = 6410
    /// A path could not be converted. Not on Linux.
    case SQLITE_IOERR_CONVPATH = 6666
    /// Reserved for extensions of SQLite.
    case SQLITE_IOERR_VNODE = 6922
    /// Reserved for extensions of SQLite.
    case SQLITE_IOERR_AUTH = 7178
    /// The file system failed to begin an atomic write.
    case SQLITE_IOERR_BEGIN_ATOMIC = 7434
    /// The file system failed to commit an atomic write.
    case SQLITE_IOERR_COMMIT_ATOMIC = 7690
    /// The file system failed to roll back an atomic write.
    case SQLITE_IOERR_ROLLBACK_ATOMIC = 7946
    /// The checksum of a page is wrong, where SQLite keeps checksums.
    case SQLITE_IOERR_DATA = 8202
    /// The file system says that it is damaged.
    case SQLITE_IOERR_CORRUPTFS = 8458
    /// Reading mapped memory failed.
    case SQLITE_IOERR_IN_PAGE = 8714
    /// The database is damaged, or, with SQLCipher, a page is not authentic.
    case SQLITE_CORRUPT = 11
    /// What a virtual table keeps is damaged.
    case SQLITE_CORRUPT_VTAB = 267
    /// The table `sqlite_sequence` is damaged.
    case SQLITE_CORRUPT_SEQUENCE = 523
    /// An index does not fit its table. `REINDEX` can help.
    case SQLITE_CORRUPT_INDEX = 779
    /// An operation of a file is not known. SQLite uses it mostly inside itself.
    case SQLITE_NOTFOUND = 12
    /// There is no space on the disk. What was committed before is whole.
    case SQLITE_FULL = 13
    /// The file cannot be opened.
    case SQLITE_CANTOPEN = 14
    /// No longer used by SQLite.
    case SQLITE_CANTOPEN_NOTEMPDIR = 270
    /// The path is that of a directory.
    case SQLITE_CANTOPEN_ISDIR = 526
    /// The full path of the file could not be found out.
    case SQLITE_CANTOPEN_FULLPATH = 782
    /// A path could not be converted. Not on Linux.
    case SQLITE_CANTOPEN_CONVPATH = 1038
    /// No longer used by SQLite.
    case SQLITE_CANTOPEN_DIRTYWAL = 1294
    /// The path is a symbolic link, and links were not to be followed.
    case SQLITE_CANTOPEN_SYMLINK = 1550
    /// The locks of the log could not be had, after many tries.
    case SQLITE_PROTOCOL = 15
    /// No longer used by SQLite.
    case SQLITE_EMPTY = 16
    /// The schema has changed, and preparing the statement again has failed.
    case SQLITE_SCHEMA = 17
    /// A text, a blob or a row is too large.
    case SQLITE_TOOBIG = 18
    /// A constraint was violated.
    case SQLITE_CONSTRAINT = 19
    /// A `CHECK` constraint was violated.
    case SQLITE_CONSTRAINT_CHECK = 275
    /// A commit hook refused the commit, which was rolled back.
    case SQLITE_CONSTRAINT_COMMITHOOK = 531
    /// A foreign key has no row that it refers to.
    case SQLITE_CONSTRAINT_FOREIGNKEY = 787
    /// Reserved for functions of extensions.
    case SQLITE_CONSTRAINT_FUNCTION = 1043
    /// A column that must have a value was given NULL.
    case SQLITE_CONSTRAINT_NOTNULL = 1299
    /// A primary key exists.
    case SQLITE_CONSTRAINT_PRIMARYKEY = 1555
    /// A trigger raised an error.
    case SQLITE_CONSTRAINT_TRIGGER = 1811
    /// A value that must be unique exists.
    case SQLITE_CONSTRAINT_UNIQUE = 2067
    /// Reserved for virtual tables.
    case SQLITE_CONSTRAINT_VTAB = 2323
    /// A row id exists.
    case SQLITE_CONSTRAINT_ROWID = 2579
    /// A row was changed by a trigger while an update needed it.
    case SQLITE_CONSTRAINT_PINNED = 2835
    /// A value has not the type that a column of a `STRICT` table wants.
    case SQLITE_CONSTRAINT_DATATYPE = 3091
    /// A value has not the type that is needed, such as text for a row id.
    case SQLITE_MISMATCH = 20
    /// The interface was used in a way that it does not allow.
    case SQLITE_MISUSE = 21
    /// The file is larger than the system can handle.
    case SQLITE_NOLFS = 22
    /// An authorizer denied an action of the statement.
    case SQLITE_AUTH = 23
    /// Reserved for extensions of SQLite.
    case SQLITE_AUTH_USER = 279
    /// No longer used by SQLite.
    case SQLITE_FORMAT = 24
    /// There is no parameter or column of this number.
    case SQLITE_RANGE = 25
    /// The file is no database, or is one with another key.
    case SQLITE_NOTADB = 26
    /// A notice in SQLite's log; no error.
    case SQLITE_NOTICE = 27
    /// A log was recovered; no error.
    case SQLITE_NOTICE_RECOVER_WAL = 283
    /// A hot journal was rolled back; no error.
    case SQLITE_NOTICE_RECOVER_ROLLBACK = 539
    /// Used by an extension of SQLite.
    case SQLITE_NOTICE_RBU = 795
    /// A warning in SQLite's log; no error.
    case SQLITE_WARNING = 28
    /// SQLite made an index for one statement; an index of your own may help.
    case SQLITE_WARNING_AUTOINDEX = 284
    /// The statement has another row.
    case SQLITE_ROW = 100
    /// The statement has ended.
    case SQLITE_DONE = 101

    /// The code without its extension, such as `SQLITE_CONSTRAINT` for `SQLITE_CONSTRAINT_UNIQUE`.
    public var primary: ResultCode { ResultCode(rawValue: rawValue & 0xff) ?? self }
}
