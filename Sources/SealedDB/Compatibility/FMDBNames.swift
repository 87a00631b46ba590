// The names under which code that comes from FMDB knows these types.

public typealias FMDatabase = Database
public typealias FMResultSet = ResultSet
public typealias FMDatabaseQueue = DatabaseQueue
