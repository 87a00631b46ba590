import Foundation

extension Database {
    // MARK: Updates

    /// Executes one statement that changes the database, with one value for each `?`.
    ///
    /// Values: the standard integers, `Double`, `Float`, `Bool`, strings, `Data`, `[UInt8]`, `Date`, `Decimal`, `UUID`,
    /// `URL`, `NSNumber`, `NSNull` and optionals of these; any other type is an error. The number of values must be
    /// that of the parameters, and the text one statement. Rows that it returns are passed over.
    /// - Returns: false on failure; see ``lastError()``.
    @discardableResult
    public func executeUpdate(_ sql: String, withArgumentsIn arguments: [Any]) -> Bool {
        succeeds { () throws(DatabaseError) in
            try update(sql) { statement throws(DatabaseError) in
                try statement.bind(all: arguments)
            }
        }
    }

    /// As ``executeUpdate(_:withArgumentsIn:)``, throwing.
    public func executeUpdate(_ sql: String, values: [Any]?) throws(DatabaseError) {
        try recording { () throws(DatabaseError) in
            try update(sql) { statement throws(DatabaseError) in
                try statement.bind(all: values)
            }
        }
    }

    /// Executes with values for parameters of the form `:name`; the keys are without the colon, surplus ones ignored.
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

    /// Prepares a query with one value for each `?`; it runs with the first `next()`.
    /// - Returns: `nil` on failure; see ``lastError()``.
    @discardableResult
    public func executeQuery(_ sql: String, withArgumentsIn arguments: [Any]) -> ResultSet? {
        unlessFailed { () throws(DatabaseError) in try executeQuery(sql, values: arguments) }
    }

    /// As ``executeQuery(_:withArgumentsIn:)``, throwing.
    @discardableResult
    public func executeQuery(_ sql: String, values: [Any]?) throws(DatabaseError) -> ResultSet {
        try query(sql, isPrepared: false) { statement throws(DatabaseError) in
            try statement.bind(all: values)
        }
    }

    /// Prepares a query with values for parameters of the form `:name`; `nil` means that there are none.
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

    /// Prepares a statement to be run many times with `bind(with:)` and `step()` or `next()`.
    @discardableResult
    public func prepare(_ sql: String) throws(DatabaseError) -> ResultSet {
        try query(sql, isPrepared: true) { _ in }
    }

    // MARK: Scripts

    /// Executes all statements of a script, without parameters; stops at the first failure. What succeeded before it
    /// stays, unless the script has a transaction of its own.
    @discardableResult
    public func executeStatements(_ sql: String) -> Bool {
        executeStatements(sql, withResultBlock: nil)
    }

    /// Executes all statements of a script, and calls the block with each row they return.
    /// - Parameter block: gets column names with their values as `String`, or `NSNull` for NULL and for what is not
    ///   UTF-8. It returns 0 to go on; anything else stops the script with `SQLITE_ABORT`.
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

    /// FMDB would silently leave out all statements but the first.
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
    /// The row as names and texts, for `executeStatements`.
    fileprivate var textDictionary: [AnyHashable: Any] {
        var result: [AnyHashable: Any] = [:]
        for index in 0..<columnCount {
            guard let name = columnName(at: index) else { continue }
            result[name] = text(at: index) ?? NSNull()
        }
        return result
    }
}
