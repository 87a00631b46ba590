import SealedDB

enum BoundStatement {
    static func requireOne(_ script: SQLScript) throws(Failure) {
        try script.requireUsable()
        switch script.statements.count {
        case 0: throw Failure(.usage, "The SQL holds no statement.")
        case 1: return
        default: throw Failure(.usage, "The SQL holds several statements, where one is expected.")
        }
    }

    /// Prepares the only statement of the source.
    static func start(_ source: SQLOptions.Source, on database: Database) throws -> ResultSet {
        do {
            return try start(source.script.statements[0].text, of: source, on: database)
        } catch let error as DatabaseError where source.isFile {
            throw source.script.located(error, at: 0)
        }
    }

    /// Prepares the statement, and binds the parameters from the command line to it.
    static func start(_ sql: String, of source: SQLOptions.Source, on database: Database) throws -> ResultSet {
        do {
            if !source.named.isEmpty { return try database.executeQuery(sql, source.named) }
            return try database.executeQuery(sql, values: source.values.map { NumberForm($0.utf8).bindable(text: $0) })
        } catch {
            // These errors mean that the parameters are not those of the statement.
            let isUsage = error.reason == .misuse || error.code == SQLITE_RANGE
            throw isUsage ? Failure(.usage, error.message) : error
        }
    }
}
