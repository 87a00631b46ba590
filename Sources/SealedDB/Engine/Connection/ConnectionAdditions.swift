/// The functions, collations, tokenizers and hooks that a database adds to its connection, and to every later one.
final class ConnectionAdditions {
    let hooks = Hooks()
    private var functions: [SQLFunction] = []
    private var collations: [Collation] = []
    private var tokenizers: [FTS5Module] = []

    /// - Parameter mayBeKeyedLater: whether the file may still need a key before it can be read.
    func install(on connection: Connection, mayBeKeyedLater: Bool) throws(DatabaseError) {
        for function in functions { try function.register(on: connection) }
        for collation in collations { try collation.register(on: connection) }
        do throws(DatabaseError) {
            for tokenizer in tokenizers { try tokenizer.register(on: connection) }
        } catch {
            // Reaching FTS5 takes a statement, which may need the key. Once the key is set, everything is installed
            // again.
            if !mayBeKeyedLater { throw error }
        }
        hooks.attach(to: connection)
    }

    func add(_ function: SQLFunction, to connection: Connection) throws(DatabaseError) {
        try connection.requireNoHook()
        try function.register(on: connection)
        functions.removeAll { $0.isSame(as: function.name, function.argumentCount) }
        functions.append(function)
    }

    func removeFunction(
        _ name: String,
        argumentCount: Int32,
        from connection: Connection
    ) throws(DatabaseError) {
        try connection.requireNoHook()
        try SQLFunction.remove(name, argumentCount: argumentCount, from: connection)
        functions.removeAll { $0.isSame(as: name, argumentCount) }
    }

    func add(_ collation: Collation, to connection: Connection) throws(DatabaseError) {
        try connection.requireNoHook()
        try collation.register(on: connection)
        collations.removeAll { $0.name.foldedForSQL == collation.name.foldedForSQL }
        collations.append(collation)
    }

    func removeCollation(_ name: String, from connection: Connection) throws(DatabaseError) {
        try connection.requireNoHook()
        try Collation.remove(name, from: connection)
        collations.removeAll { $0.name.foldedForSQL == name.foldedForSQL }
    }

    /// - Parameter mayBeKeyedLater: whether the file may still need a key before it can be read.
    func add(
        _ tokenizer: FTS5Module,
        to connection: Connection,
        mayBeKeyedLater: () throws(DatabaseError) -> Bool
    ) throws(DatabaseError) {
        do throws(DatabaseError) {
            try connection.trusted { () throws(DatabaseError) in try tokenizer.register(on: connection) }
        } catch {
            // The connection cannot read the file, and so not use the tokenizer either. The one that gets the key will.
            guard error.code == SQLITE_NOTADB, try mayBeKeyedLater() else { throw error }
        }
        tokenizers.removeAll { $0.name.foldedForSQL == tokenizer.name.foldedForSQL }
        tokenizers.append(tokenizer)
    }
}
