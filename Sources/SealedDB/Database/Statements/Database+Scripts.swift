import Foundation

extension Database {
    /// Executes all statements of a script, and stops at the first failure. The changes of earlier statements stay,
    /// unless the script has its own transaction.
    ///
    /// ```swift
    /// try db.execute(
    ///     script: """
    ///         CREATE TABLE person (id INTEGER PRIMARY KEY, name TEXT NOT NULL);
    ///         INSERT INTO person (name) VALUES (\(name));
    ///         """
    /// )
    /// ```
    /// Values that are interpolated in the literal are bound to the statements in which they stand. Rows that the
    /// statements return are ignored.
    /// - Throws: ``DatabaseError``. It shows the statement that failed, not the script. A script with lines that SQLite would take for
    ///   part of a comment (`--`), because they end with a carriage return alone, is not executed:
    ///   ``DatabaseError/Reason/misuse``.
    public func execute(script sql: SQL) throws(DatabaseError) {
        try run(script: sql) { _ in }
    }

    /// Like ``execute(script:)-(SQL)``, with text in a `String`, such as that of a file.
    @_disfavoredOverload
    @inlinable
    public func execute(script sql: some StringProtocol) throws(DatabaseError) {
        try execute(script: SQL(raw: String(sql)))
    }

    /// Like ``execute(script:)-(SQL)``, but reports failures by its result.
    /// - Returns: false on failure; see ``lastError()``.
    @discardableResult
    public func executeStatements(_ sql: SQL) -> Bool {
        executeStatements(sql, withResultBlock: nil)
    }

    /// Executes all statements of a script, and calls the block with each row that they return.
    /// - Parameters:
    ///   - sql: the statements.
    ///   - block: receives the column names with their values as `String`, or `NSNull` for NULL and invalid UTF-8. Return
    ///     0 to continue; any other number stops the script with `SQLITE_ABORT`.
    /// - Returns: false on failure; see ``lastError()``.
    @discardableResult
    public func executeStatements(_ sql: SQL, withResultBlock block: FMDBExecuteStatementsCallbackBlock?) -> Bool {
        unlessFailed { () throws(DatabaseError) in
            try run(script: sql) { statement throws(DatabaseError) in
                guard let block, block(statement.textDictionary) != 0 else { return }
                throw DatabaseError(
                    extendedCode: SQLITE_ABORT,
                    message: "The result block asked to stop. The rest of the script was not executed."
                )
            }
        } != nil
    }

    /// Like ``executeStatements(_:)-(SQL)``, with text in a `String`.
    @_disfavoredOverload
    @inlinable
    @discardableResult
    public func executeStatements(_ sql: some StringProtocol) -> Bool { executeStatements(SQL(raw: String(sql))) }

    /// Like ``executeStatements(_:withResultBlock:)-(SQL,_)``, with text in a `String`.
    @_disfavoredOverload
    @inlinable
    @discardableResult
    public func executeStatements(
        _ sql: some StringProtocol,
        withResultBlock block: FMDBExecuteStatementsCallbackBlock?
    ) -> Bool {
        executeStatements(SQL(raw: String(sql)), withResultBlock: block)
    }

    private func run(script sql: SQL, row: (Statement) throws(DatabaseError) -> Void) throws(DatabaseError) {
        try recording("Database.execute(script:) or executeStatements") { () throws(DatabaseError) in
            let connection = try openConnection()
            let text = Array(sql.text.utf8)
            try sql.requireUsable(asScript: text)
            var values = sql.values[...]
            var position = 0
            while position < text.count {
                let statement: Statement
                do throws(DatabaseError) {
                    (statement, position) = try text.withUnsafeBufferPointer { bytes throws(DatabaseError) in
                        try connection.prepare(bytes, from: position)
                    }
                } catch {
                    throw sql.explained(error)
                }
                defer { statement.close() }
                guard statement.pointer != nil else { continue }
                if !sql.values.isEmpty {
                    let count = Int(statement.parameterCount)
                    try statement.bind(Array(values.prefix(count)))
                    values = values.dropFirst(count)
                } else if statement.parameterCount > 0 {
                    // SQLite would take NULL for each of them.
                    throw DatabaseError(
                        extendedCode: SQLITE_MISUSE,
                        reason: .misuse,
                        message: """
                            A statement of the script has parameters, and no values are given for them. It was not executed; \
                            those before it were.
                            """,
                        sql: statement.sql
                    )
                }
                trace(statement)
                while try statement.step() { try row(statement) }
            }
        }
    }
}

extension SQL {
    /// Throws if the SQL cannot be executed as a script, before any of its statements is.
    fileprivate func requireUsable(asScript text: [UInt8]) throws(DatabaseError) {
        try requireUsable()
        guard !text.withUnsafeBufferPointer(SQLTokenizer.hidesLines) else {
            throw SQL.unusable(
                """
                lines follow a comment (--) after a carriage return alone, and SQLite would pass over them. End lines with a line \
                feed.
                """
            )
        }
        guard !values.isEmpty else { return }
        // The values are given to the statements in order, so there must be no other parameters among theirs. A
        // placeholder in a string or comment is none.
        let isPlain = text.withUnsafeBufferPointer { bytes in
            var tokens = SQLTokenizer(bytes)
            var count = 0
            while let token = tokens.next() {
                guard token.kind == .variable else { continue }
                guard token.range.count == 1 else { return false }
                count += 1
            }
            return count == values.count
        }
        guard isPlain else {
            throw SQL.unusable(
                "a value of the script stands within quotes or a comment, or beside parameters without a value."
            )
        }
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
