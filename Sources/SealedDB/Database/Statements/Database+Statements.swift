import Foundation

extension Database {
    // MARK: Updates

    /// Executes one statement that changes the database, with one value for each `?`.
    ///
    /// Values may be the standard integers, `Double`, `Float`, `Bool`, strings, `Data`, `[UInt8]`, `Date`, `Decimal`,
    /// `UUID`, `URL`, `NSNumber`, `NSNull`, ``Bindable`` types, and optionals of these; any other type is an error.
    /// There must be one value for each parameter, and the text must be one statement. Rows that the statement returns
    /// are ignored.
    /// - Returns: false on failure; see ``lastError()``.
    @discardableResult
    public func executeUpdate(_ sql: String, withArgumentsIn arguments: [Any]) -> Bool {
        succeeds { () throws(DatabaseError) in
            try update(sql) { statement throws(DatabaseError) in
                try statement.bind(all: arguments)
            }
        }
    }

    /// Like ``executeUpdate(_:withArgumentsIn:)``, but throws.
    public func executeUpdate(_ sql: String, values: [Any]?) throws(DatabaseError) {
        try recording { () throws(DatabaseError) in
            try update(sql) { statement throws(DatabaseError) in
                try statement.bind(all: values)
            }
        }
    }

    /// Executes one statement with values for parameters of the form `:name`. The keys have no colon. Keys without a
    /// parameter are ignored.
    /// - Returns: false on failure; see ``lastError()``.
    @discardableResult
    public func executeUpdate(_ sql: String, withParameterDictionary arguments: [AnyHashable: Any]) -> Bool {
        succeeds { () throws(DatabaseError) in
            try update(sql) { statement throws(DatabaseError) in
                try statement.bind(named: arguments)
            }
        }
    }

    // MARK: Queries

    /// Prepares a query with one value for each `?`. It runs when `next()` is first called.
    /// - Returns: `nil` on failure; see ``lastError()``.
    @discardableResult
    public func executeQuery(_ sql: String, withArgumentsIn arguments: [Any]) -> ResultSet? {
        unlessFailed { () throws(DatabaseError) in try executeQuery(sql, values: arguments) }
    }

    /// Like ``executeQuery(_:withArgumentsIn:)``, but throws.
    @discardableResult
    public func executeQuery(_ sql: String, values: [Any]?) throws(DatabaseError) -> ResultSet {
        try query(sql, isPrepared: false) { statement throws(DatabaseError) in
            try statement.bind(all: values)
        }
    }

    /// Prepares a query with values for parameters of the form `:name`. Pass `nil` if there are no parameters.
    /// - Returns: `nil` on failure; see ``lastError()``.
    @discardableResult
    public func executeQuery(_ sql: String, withParameterDictionary arguments: [AnyHashable: Any]?) -> ResultSet? {
        unlessFailed { () throws(DatabaseError) in
            try query(sql, isPrepared: false) { statement throws(DatabaseError) in
                if let arguments {
                    try statement.bind(named: arguments)
                } else {
                    try statement.bind(all: nil)
                }
            }
        }
    }

    /// Prepares a statement that runs many times, with `bind(with:)` and `step()` or `next()`.
    @discardableResult
    public func prepare(_ sql: String) throws(DatabaseError) -> ResultSet {
        try query(sql, isPrepared: true) { _ in }
    }

    // MARK: Scripts

    /// Executes all statements of a script without parameters, and stops at the first failure. The changes of earlier
    /// statements stay, unless the script has its own transaction.
    @discardableResult
    public func executeStatements(_ sql: String) -> Bool {
        executeStatements(sql, withResultBlock: nil)
    }

    /// Executes all statements of a script, and calls the block with each row that they return.
    /// - Parameter block: receives the column names with their values as `String`, or `NSNull` for NULL and invalid
    ///   UTF-8. Return 0 to continue; any other number stops the script with `SQLITE_ABORT`.
    @discardableResult
    public func executeStatements(_ sql: String, withResultBlock block: FMDBExecuteStatementsCallbackBlock?) -> Bool {
        succeeds { () throws(DatabaseError) in
            let connection = try openConnection()
            let text = Array(sql.utf8)
            var position = 0
            while position < text.count {
                let (statement, end) = try text.withUnsafeBufferPointer { bytes throws(DatabaseError) in
                    try connection.prepare(bytes, from: position)
                }
                position = end
                defer { statement.close() }
                guard statement.pointer != nil else { continue }
                trace(statement)
                while try statement.step() {
                    guard let block, block(statement.textDictionary) != 0 else { continue }
                    throw DatabaseError(
                        extendedCode: SQLITE_ABORT,
                        message: "The result block asked to stop. The rest of the script was not executed."
                    )
                }
            }
        }
    }

    // MARK: Shared

    func update(
        _ sql: String,
        bind: (Statement) throws(DatabaseError) -> Void
    ) throws(DatabaseError) {
        let statement = try prepareOne(sql)
        defer { statement.close() }
        try bind(statement)
        trace(statement)
        while try statement.step() {}
    }

    func query(
        _ sql: String,
        isPrepared: Bool,
        bind: (Statement) throws(DatabaseError) -> Void
    ) throws(DatabaseError) -> ResultSet {
        try recording { () throws(DatabaseError) in
            let statement = try prepareOne(sql)
            do throws(DatabaseError) {
                try bind(statement)
            } catch {
                statement.close()
                throw error
            }
            trace(statement)
            return ResultSet(statement: statement, database: self, sql: sql, isPrepared: isPrepared)
        }
    }

    /// Prepares one statement. Throws if the text contains several; FMDB would silently ignore all but the first.
    func prepareOne(_ sql: String) throws(DatabaseError) -> Statement {
        let connection = try openConnection()
        let statement = try connection.prepare(sql)
        guard statement.pointer != nil else {
            throw DatabaseError(
                extendedCode: SQLITE_MISUSE,
                reason: .misuse,
                message: "The text holds no statement."
            )
        }
        guard !statement.hasTail else {
            defer { statement.close() }
            throw DatabaseError(
                extendedCode: SQLITE_MISUSE,
                reason: .misuse,
                message: "The text holds more than one statement. Nothing was executed; use executeStatements.",
                sql: statement.sql
            )
        }
        return statement
    }
}

extension Statement {
    /// The row as column names and texts, for `executeStatements`.
    fileprivate var textDictionary: [AnyHashable: Any] {
        var result: [AnyHashable: Any] = [:]
        for index in 0..<columnCount {
            guard let name = columnName(at: index) else { continue }
            result[name] = text(at: index) ?? NSNull()
        }
        return result
    }
}
