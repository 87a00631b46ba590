// FMDB's names of these types, for code that was written for FMDB.

public typealias FMDatabase = Database
public typealias FMResultSet = ResultSet
public typealias FMDatabaseQueue = DatabaseQueue
public typealias FMDatabasePool = DatabasePool
public typealias FMDatabasePoolDelegate = DatabasePoolDelegate
public typealias FMStatement = Statement
public typealias FMDBCheckpointMode = CheckpointMode
public typealias FMTokenizerDelegate = TokenizerDelegate
public typealias FMSimpleTokenizer = SimpleTokenizer
public typealias FMStopWordTokenizer = StopWordTokenizer
public typealias FMTextOffsets = TextOffsets

// Commands for `issueCommand(_:forTable:)`. The last two are format strings.
public let kFTSCommandOptimize = "optimize"
public let kFTSCommandRebuild = "rebuild"
public let kFTSCommandIntegrityCheck = "integrity-check"
public let kFTSCommandMerge = "merge=%u,%u"
public let kFTSCommandAutoMerge = "automerge=%u"

// FMDB's enumeration is declared in C, so its cases are constants of the module.
public let CipherLogLevelNone = CipherLogLevel.none
public let CipherLogLevelError = CipherLogLevel.error
public let CipherLogLevelWarn = CipherLogLevel.warn
public let CipherLogLevelInfo = CipherLogLevel.info
public let CipherLogLevelDebug = CipherLogLevel.debug
public let CipherLogLevelTrace = CipherLogLevel.trace
