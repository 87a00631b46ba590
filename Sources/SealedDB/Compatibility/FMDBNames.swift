// The names under which code that comes from FMDB knows these types.

public typealias FMDatabase = Database
public typealias FMResultSet = ResultSet
public typealias FMDatabaseQueue = DatabaseQueue
public typealias FMDatabasePool = DatabasePool
public typealias FMDatabasePoolDelegate = DatabasePoolDelegate
public typealias FMStatement = Statement
public typealias FMDBCheckpointMode = CheckpointMode
