/// FMDB's questions about the schema. Their failures can be read from ``lastError()``.
extension Database {
    /// Whether "main" has a table of this name, without regard to the case of ASCII letters. False for a view.
    public func tableExists(_ tableName: String) -> Bool {
        let rows = executeQuery(
            "SELECT 1 FROM main.sqlite_schema WHERE type = 'table' AND name = ? COLLATE NOCASE",
            withArgumentsIn: [tableName]
        )
        guard let rows else { return false }
        defer { rows.close() }
        return rows.next()
    }

    /// Returns `type`, `name`, `tbl_name`, `rootpage` and `sql` of everything in the schema, including temporary
    /// tables, but without SQLite's own tables. `nil` on failure.
    @discardableResult
    public func getSchema() -> ResultSet? {
        executeQuery(
            """
            SELECT type, name, tbl_name, rootpage, sql
            FROM (SELECT * FROM sqlite_schema UNION ALL SELECT * FROM sqlite_temp_schema)
            WHERE name NOT LIKE 'sqlite\\_%' ESCAPE '\\'
            ORDER BY tbl_name, type DESC, name
            """,
            withArgumentsIn: []
        )
    }

    /// Returns `cid`, `name`, `type`, `notnull`, `dflt_value` and `pk` of a table's columns. There are no rows for an
    /// unknown table. `nil` on failure. https://www.sqlite.org/pragma.html#pragma_table_info
    @discardableResult
    public func getTableSchema(_ tableName: String) -> ResultSet? {
        executeQuery("PRAGMA table_info(\(identifier: tableName))", withArgumentsIn: [])
    }

    /// Whether a table has a column of this name, without regard to the case of ASCII letters.
    public func columnExists(_ columnName: String, inTableWithName tableName: String) -> Bool {
        guard let rows = getTableSchema(tableName) else { return false }
        defer { rows.close() }
        let wanted = columnName.foldedForSQL
        while rows.next() {
            if let name = rows.string(forColumn: "name"), name.foldedForSQL.isSame(as: wanted) { return true }
        }
        return false
    }

    /// The same as ``columnExists(_:inTableWithName:)``, with the table first.
    @available(*, deprecated, message: "Use columnExists(_:inTableWithName:), which takes the column first.")
    public func columnExists(_ tableName: String, columnName: String) -> Bool {
        columnExists(columnName, inTableWithName: tableName)
    }

    /// Compiles one statement without executing it.
    ///
    /// A pragma is not compiled, because some pragmas take effect when they are.
    /// - Throws: ``DatabaseError`` with SQLite's message, or if the text has several statements or none, or the
    ///   database is closed.
    public func validateSQL(_ sql: SQL) throws(DatabaseError) {
        try recording { () throws(DatabaseError) in
            _ = try openConnection()
            if SQLStatementText.verb(of: sql.text) != "pragma" { try prepareOne(sql).close() }
        }
    }

    /// Like ``validateSQL(_:)-(SQL)``, with text in a `String`.
    @_disfavoredOverload
    @inlinable
    public func validateSQL(_ sql: some StringProtocol) throws(DatabaseError) { try validateSQL(SQL(raw: String(sql))) }

    /// Whether a statement compiles if SQLite finds no virtual table. FTS5 takes the text of another table with such
    /// statements. https://www.sqlite.org/c3ref/c_prepare_dont_log.html
    /// - Throws: ``DatabaseError`` if the schema cannot be read. Any error in the statement itself counts as an answer.
    package func compilesWithoutVirtualTables(_ sql: SQL) throws(DatabaseError) -> Bool {
        try recording { () throws(DatabaseError) in try openConnection().compilesWithoutVirtualTables(sql.text) }
    }

    // MARK: Numbers in the header

    /// The number in the file's header that says which application it belongs to; 0 if none was set, and on failure.
    /// https://www.sqlite.org/pragma.html#pragma_application_id
    public var applicationID: UInt32 {
        get { headerNumber("application_id") }
        set { setHeaderNumber("application_id", to: newValue) }
    }

    /// The ``applicationID`` as four ASCII characters; empty if it cannot be written so. Setting any other text is an
    /// error.
    public var applicationIDString: String {
        get {
            let bytes = withUnsafeBytes(of: applicationID.bigEndian) { [UInt8]($0) }
            return bytes.allSatisfy { (0x20..<0x7f).contains($0) } ? String(decoding: bytes, as: UTF8.self) : ""
        }
        set {
            let bytes = [UInt8](newValue.utf8)
            let isValid = succeeds { () throws(DatabaseError) in
                guard bytes.count == 4, bytes.allSatisfy({ (0x20..<0x7f).contains($0) }) else {
                    throw DatabaseError(
                        extendedCode: SQLITE_MISUSE,
                        reason: .misuse,
                        message: "An application ID is written as four ASCII characters. It was not changed."
                    )
                }
            }
            if isValid { applicationID = bytes.reduce(0) { $0 << 8 | UInt32($1) } }
        }
    }

    /// A number for the application's own use, usually the version of its schema; 0 if none was set, and on failure.
    /// https://www.sqlite.org/pragma.html#pragma_user_version
    public var userVersion: UInt32 {
        get { headerNumber("user_version") }
        set { setHeaderNumber("user_version", to: newValue) }
    }

    private func headerNumber(_ pragma: String) -> UInt32 {
        let value = unlessFailed { () throws(DatabaseError) in
            try recording { () throws(DatabaseError) in try openConnection().integer("PRAGMA \(pragma)") }
        }
        return UInt32(truncatingIfNeeded: (value ?? 0) ?? 0)
    }

    private func setHeaderNumber(_ pragma: String, to value: UInt32) {
        // A pragma cannot have bound values, and the header stores signed numbers.
        _ = succeeds { () throws(DatabaseError) in
            try openConnection().run("PRAGMA \(pragma) = \(Int32(bitPattern: value))")
        }
    }
}
