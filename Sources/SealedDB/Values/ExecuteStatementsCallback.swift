/// Called with each row of a script. Return 0 to continue. The name is FMDB's.
public typealias FMDBExecuteStatementsCallbackBlock = ([AnyHashable: Any]) -> Int32
