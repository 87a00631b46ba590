// SQLite's constants under their C names, because clients cannot see a C module. https://www.sqlite.org/rescode.html

internal import SQLiteEngine

/// Success.
public let SQLITE_OK: Int32 = 0
/// A mistake that no other code names; most often in the SQL.
public let SQLITE_ERROR: Int32 = 1
/// A defect of SQLite, or of an extension.
public let SQLITE_INTERNAL: Int32 = 2
/// The mode that a new file should have could not be given to it.
public let SQLITE_PERM: Int32 = 3
/// A statement was ended early, often because its transaction was rolled back.
public let SQLITE_ABORT: Int32 = 4
/// Another connection has the lock; nothing was changed.
public let SQLITE_BUSY: Int32 = 5
/// A statement of the same connection, or one with a shared cache, has the table.
public let SQLITE_LOCKED: Int32 = 6
/// There is no memory.
public let SQLITE_NOMEM: Int32 = 7
/// The database may only be read.
public let SQLITE_READONLY: Int32 = 8
/// The statement was interrupted.
public let SQLITE_INTERRUPT: Int32 = 9
/// The operating system reported an error.
public let SQLITE_IOERR: Int32 = 10
/// The database is damaged, or, with SQLCipher, a page is not authentic.
public let SQLITE_CORRUPT: Int32 = 11
/// An operation of a file is not known. SQLite uses it mostly inside itself.
public let SQLITE_NOTFOUND: Int32 = 12
/// There is no space on the disk. What was committed before is whole.
public let SQLITE_FULL: Int32 = 13
/// The file cannot be opened.
public let SQLITE_CANTOPEN: Int32 = 14
/// The locks of the log could not be had, after many tries.
public let SQLITE_PROTOCOL: Int32 = 15
/// No longer used by SQLite.
public let SQLITE_EMPTY: Int32 = 16
/// The schema has changed, and preparing the statement again has failed.
public let SQLITE_SCHEMA: Int32 = 17
/// A text, a blob or a row is too large.
public let SQLITE_TOOBIG: Int32 = 18
/// A constraint was violated.
public let SQLITE_CONSTRAINT: Int32 = 19
/// A value has not the type that is needed, such as text for a row id.
public let SQLITE_MISMATCH: Int32 = 20
/// The interface was used in a way that it does not allow.
public let SQLITE_MISUSE: Int32 = 21
/// The file is larger than the system can handle.
public let SQLITE_NOLFS: Int32 = 22
/// An authorizer denied an action of the statement.
public let SQLITE_AUTH: Int32 = 23
/// No longer used by SQLite.
public let SQLITE_FORMAT: Int32 = 24
/// There is no parameter or column of this number.
public let SQLITE_RANGE: Int32 = 25
/// The file is no database, or is one with another key.
public let SQLITE_NOTADB: Int32 = 26
/// The statement has another row.
public let SQLITE_ROW: Int32 = 100
/// The statement has ended.
public let SQLITE_DONE: Int32 = 101

/// A read transaction cannot write, because others have written since it began. Begin anew.
public let SQLITE_BUSY_SNAPSHOT: Int32 = 517
/// Another connection of the same shared cache has the table.
public let SQLITE_LOCKED_SHAREDCACHE: Int32 = 262
/// Reading the file failed.
public let SQLITE_IOERR_READ: Int32 = 266
/// The file ended before what should be read.
public let SQLITE_IOERR_SHORT_READ: Int32 = 522
/// Asking for the state of the file failed.
public let SQLITE_IOERR_FSTAT: Int32 = 1802
/// The file system says that it is damaged.
public let SQLITE_IOERR_CORRUPTFS: Int32 = 8458
/// The file was moved or replaced after it was opened. Nothing was written.
public let SQLITE_READONLY_DBMOVED: Int32 = 1032
/// A commit hook refused the commit, which was rolled back.
public let SQLITE_CONSTRAINT_COMMITHOOK: Int32 = 531
/// A foreign key has no row that it refers to.
public let SQLITE_CONSTRAINT_FOREIGNKEY: Int32 = 787
/// A primary key exists.
public let SQLITE_CONSTRAINT_PRIMARYKEY: Int32 = 1555
/// A value that must be unique exists.
public let SQLITE_CONSTRAINT_UNIQUE: Int32 = 2067

// https://www.sqlite.org/c3ref/c_open_autoproxy.html
/// A flag for opening: only for reading.
public let SQLITE_OPEN_READONLY: Int32 = 0x0000_0001
/// A flag for opening: for reading and writing.
public let SQLITE_OPEN_READWRITE: Int32 = 0x0000_0002
/// A flag for opening: make the file if there is none. Together with `SQLITE_OPEN_READWRITE`.
public let SQLITE_OPEN_CREATE: Int32 = 0x0000_0004
/// A flag for opening. SealedDB refuses it: a path is always a path.
public let SQLITE_OPEN_URI: Int32 = 0x0000_0040
/// A flag for opening: a database in memory.
public let SQLITE_OPEN_MEMORY: Int32 = 0x0000_0080
/// A flag for opening: no mutex of the connection. SealedDB sets or clears it itself.
public let SQLITE_OPEN_NOMUTEX: Int32 = 0x0000_8000
/// A flag for opening: a mutex around every call of the connection. SealedDB sets or clears it itself.
public let SQLITE_OPEN_FULLMUTEX: Int32 = 0x0001_0000
/// A flag for opening: share the page cache with other connections.
public let SQLITE_OPEN_SHAREDCACHE: Int32 = 0x0002_0000
/// A flag for opening: a page cache of its own.
public let SQLITE_OPEN_PRIVATECACHE: Int32 = 0x0004_0000
/// A flag for opening: follow no symbolic links.
public let SQLITE_OPEN_NOFOLLOW: Int32 = 0x0100_0000

// https://www.sqlite.org/c3ref/c_limit_attached.html
/// The largest text, blob or row, in bytes.
public let SQLITE_LIMIT_LENGTH: Int32 = 0
/// The longest statement, in bytes.
public let SQLITE_LIMIT_SQL_LENGTH: Int32 = 1
/// The most columns of a table, an index, a result or a clause.
public let SQLITE_LIMIT_COLUMN: Int32 = 2
/// The deepest expression.
public let SQLITE_LIMIT_EXPR_DEPTH: Int32 = 3
/// The most parts of a compound `SELECT`.
public let SQLITE_LIMIT_COMPOUND_SELECT: Int32 = 4
/// The most instructions of a prepared statement.
public let SQLITE_LIMIT_VDBE_OP: Int32 = 5
/// The most arguments of a function.
public let SQLITE_LIMIT_FUNCTION_ARG: Int32 = 6
/// The most attached databases.
public let SQLITE_LIMIT_ATTACHED: Int32 = 7
/// The longest pattern of `LIKE` and `GLOB`, in bytes.
public let SQLITE_LIMIT_LIKE_PATTERN_LENGTH: Int32 = 8
/// The highest number of a parameter.
public let SQLITE_LIMIT_VARIABLE_NUMBER: Int32 = 9
/// The deepest recursion of triggers.
public let SQLITE_LIMIT_TRIGGER_DEPTH: Int32 = 10
/// The most auxiliary threads of a statement.
public let SQLITE_LIMIT_WORKER_THREADS: Int32 = 11
