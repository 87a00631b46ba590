// SQLite's constants under their C names, because clients cannot see a C module. https://www.sqlite.org/rescode.html

internal import SQLiteEngine

public let SQLITE_OK: Int32 = 0
public let SQLITE_ERROR: Int32 = 1
public let SQLITE_INTERNAL: Int32 = 2
public let SQLITE_PERM: Int32 = 3
public let SQLITE_ABORT: Int32 = 4
public let SQLITE_BUSY: Int32 = 5
public let SQLITE_LOCKED: Int32 = 6
public let SQLITE_NOMEM: Int32 = 7
public let SQLITE_READONLY: Int32 = 8
public let SQLITE_INTERRUPT: Int32 = 9
public let SQLITE_IOERR: Int32 = 10
public let SQLITE_CORRUPT: Int32 = 11
public let SQLITE_NOTFOUND: Int32 = 12
public let SQLITE_FULL: Int32 = 13
public let SQLITE_CANTOPEN: Int32 = 14
public let SQLITE_PROTOCOL: Int32 = 15
public let SQLITE_EMPTY: Int32 = 16
public let SQLITE_SCHEMA: Int32 = 17
public let SQLITE_TOOBIG: Int32 = 18
public let SQLITE_CONSTRAINT: Int32 = 19
public let SQLITE_MISMATCH: Int32 = 20
public let SQLITE_MISUSE: Int32 = 21
public let SQLITE_NOLFS: Int32 = 22
public let SQLITE_AUTH: Int32 = 23
public let SQLITE_FORMAT: Int32 = 24
public let SQLITE_RANGE: Int32 = 25
public let SQLITE_NOTADB: Int32 = 26
public let SQLITE_ROW: Int32 = 100
public let SQLITE_DONE: Int32 = 101

public let SQLITE_BUSY_SNAPSHOT: Int32 = 517
public let SQLITE_LOCKED_SHAREDCACHE: Int32 = 262
public let SQLITE_IOERR_READ: Int32 = 266
public let SQLITE_IOERR_SHORT_READ: Int32 = 522
public let SQLITE_IOERR_FSTAT: Int32 = 1802
public let SQLITE_IOERR_CORRUPTFS: Int32 = 8458
public let SQLITE_READONLY_DBMOVED: Int32 = 1032
public let SQLITE_CONSTRAINT_COMMITHOOK: Int32 = 531
public let SQLITE_CONSTRAINT_FOREIGNKEY: Int32 = 787
public let SQLITE_CONSTRAINT_PRIMARYKEY: Int32 = 1555
public let SQLITE_CONSTRAINT_UNIQUE: Int32 = 2067

// https://www.sqlite.org/c3ref/c_open_autoproxy.html
public let SQLITE_OPEN_READONLY: Int32 = 0x0000_0001
public let SQLITE_OPEN_READWRITE: Int32 = 0x0000_0002
public let SQLITE_OPEN_CREATE: Int32 = 0x0000_0004
public let SQLITE_OPEN_URI: Int32 = 0x0000_0040
public let SQLITE_OPEN_MEMORY: Int32 = 0x0000_0080
public let SQLITE_OPEN_NOMUTEX: Int32 = 0x0000_8000
public let SQLITE_OPEN_FULLMUTEX: Int32 = 0x0001_0000
public let SQLITE_OPEN_SHAREDCACHE: Int32 = 0x0002_0000
public let SQLITE_OPEN_PRIVATECACHE: Int32 = 0x0004_0000
public let SQLITE_OPEN_NOFOLLOW: Int32 = 0x0100_0000

// https://www.sqlite.org/c3ref/c_limit_attached.html
public let SQLITE_LIMIT_LENGTH: Int32 = 0
public let SQLITE_LIMIT_SQL_LENGTH: Int32 = 1
public let SQLITE_LIMIT_COLUMN: Int32 = 2
public let SQLITE_LIMIT_EXPR_DEPTH: Int32 = 3
public let SQLITE_LIMIT_COMPOUND_SELECT: Int32 = 4
public let SQLITE_LIMIT_VDBE_OP: Int32 = 5
public let SQLITE_LIMIT_FUNCTION_ARG: Int32 = 6
public let SQLITE_LIMIT_ATTACHED: Int32 = 7
public let SQLITE_LIMIT_LIKE_PATTERN_LENGTH: Int32 = 8
public let SQLITE_LIMIT_VARIABLE_NUMBER: Int32 = 9
public let SQLITE_LIMIT_TRIGGER_DEPTH: Int32 = 10
public let SQLITE_LIMIT_WORKER_THREADS: Int32 = 11
