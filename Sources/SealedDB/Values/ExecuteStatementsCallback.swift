/// Called with each row of a script; returns 0 to go on. FMDB's name.
public typealias FMDBExecuteStatementsCallbackBlock = ([AnyHashable: Any]) -> Int32
