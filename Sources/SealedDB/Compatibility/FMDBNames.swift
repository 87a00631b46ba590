// FMDB's names of these types, for code that was written for FMDB.

/// FMDB's name of ``Database``.
public typealias FMDatabase = Database
/// FMDB's name of ``ResultSet``.
public typealias FMResultSet = ResultSet
/// FMDB's name of ``DatabaseQueue``.
public typealias FMDatabaseQueue = DatabaseQueue
/// FMDB's name of ``DatabasePool``.
public typealias FMDatabasePool = DatabasePool
/// FMDB's name of ``DatabasePoolDelegate``.
public typealias FMDatabasePoolDelegate = DatabasePoolDelegate
/// FMDB's name of ``Statement``.
public typealias FMStatement = Statement
/// FMDB's name of ``CheckpointMode``.
public typealias FMDBCheckpointMode = CheckpointMode
/// FMDB's name of ``TokenizerDelegate``.
public typealias FMTokenizerDelegate = TokenizerDelegate
/// FMDB's name of ``SimpleTokenizer``.
public typealias FMSimpleTokenizer = SimpleTokenizer
/// FMDB's name of ``StopWordTokenizer``.
public typealias FMStopWordTokenizer = StopWordTokenizer
/// FMDB's name of ``TextOffsets``.
public typealias FMTextOffsets = TextOffsets

// Commands for `issueCommand(_:forTable:)`. The last two are format strings.
/// A command of full-text tables: merges the index into one part.
public let kFTSCommandOptimize = "optimize"
/// A command of full-text tables: makes the index anew from the texts.
public let kFTSCommandRebuild = "rebuild"
/// A command of full-text tables: compares the index with the texts.
public let kFTSCommandIntegrityCheck = "integrity-check"
/// A command of full-text tables: merges some parts of the index. A format string for two numbers.
public let kFTSCommandMerge = "merge=%u,%u"
/// A command of full-text tables: sets how many parts are merged by themselves. A format string for a number.
public let kFTSCommandAutoMerge = "automerge=%u"

// FMDB's enumeration is declared in C, so its cases are constants of the module.
/// FMDB's name of ``CipherLogLevel/none``.
public let CipherLogLevelNone = CipherLogLevel.none
/// FMDB's name of ``CipherLogLevel/error``.
public let CipherLogLevelError = CipherLogLevel.error
/// FMDB's name of ``CipherLogLevel/warn``.
public let CipherLogLevelWarn = CipherLogLevel.warn
/// FMDB's name of ``CipherLogLevel/info``.
public let CipherLogLevelInfo = CipherLogLevel.info
/// FMDB's name of ``CipherLogLevel/debug``.
public let CipherLogLevelDebug = CipherLogLevel.debug
/// FMDB's name of ``CipherLogLevel/trace``.
public let CipherLogLevelTrace = CipherLogLevel.trace
