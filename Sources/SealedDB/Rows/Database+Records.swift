/// Stores Encodable values as rows of a table, and finds rows by their primary key.
///
/// Each property is a column, named by ``Database/columnNaming``. `nil` is stored as NULL, even if the column has a
/// default. A ``Bindable`` property is stored as such. A property that encodes itself as a single value is stored as
/// that value. Every other property is stored as JSON text, as with ``JSON``. Names are quoted, so any name is allowed.
///
/// A type that may be one of several, such as a number or a truth value, is refused where its column would not tell these
/// apart: SQLite has one integer for `true` and for 1. Make such a property a ``JSON``.
///
/// If your own `encode(to:)` throws, the error thrown here has yours as its ``DatabaseError/underlyingError``.
extension Database {
    /// Inserts a row. If the INTEGER PRIMARY KEY is an optional property and `nil`, SQLite chooses the next row id.
    ///
    /// ```swift
    /// person.id = try db.insert(person, into: "person")
    /// ```
    /// - Returns: the row id; 0 if no row was inserted (the table ignores a conflict), or if the table has no row ids.
    /// - Throws: ``DatabaseError`` if the row violates a constraint, a property has no column, or the value is not
    ///   encoded as one row.
    @discardableResult
    public func insert(_ value: some Encodable, into table: String) throws(DatabaseError) -> Int64 {
        let row = try encode(value)
        let sql =
            row.columns.isEmpty
            ? "INSERT INTO \(Identifier.quoted(table)) DEFAULT VALUES" : insertion(of: row, into: table)
        return try recording { () throws(DatabaseError) in
            try openConnection().insertedRowID { () throws(DatabaseError) in try execute(sql, row.values) }
        }
    }

    /// Updates the row that has the value's primary key. All columns that are properties are set.
    ///
    /// - Returns: false if there is no such row; nothing was changed then.
    /// - Throws: ``DatabaseError`` if the update fails, the table has no primary key, or the value lacks a part of it.
    ///   Also if the row is there, and a trigger or a constraint with ON CONFLICT IGNORE has left it as it was.
    public func update(_ value: some Encodable, in table: String) throws(DatabaseError) -> Bool {
        let row = try encode(value)
        return try recording { () throws(DatabaseError) in
            let key = try primaryKey(of: table)
            var positions: [Int] = []
            for column in key {
                guard let position = row.position(of: column) else {
                    throw unusable("The value has no property for \"\(column)\", a part of the primary key.")
                }
                positions.append(position)
            }
            let others = row.columns.indices.filter { !positions.contains($0) }
            guard !others.isEmpty else { throw unusable("The value has no property beside the primary key.") }
            let changes = others.map { Identifier.quoted(row.columns[$0]) + " = ?" }
            let update = """
                UPDATE \(Identifier.quoted(table)) SET \(changes.joined(separator: ", ")) \
                WHERE \(condition(on: key))
                """
            let search = SQL(raw: Database.search(table, condition(on: key)))
            return try changesRow(of: table) { () throws(DatabaseError) in
                try execute(update, (others + positions).map { row.values[$0] })
            } isThere: { () throws(DatabaseError) in
                try query(search, given: positions.count) { statement throws(DatabaseError) in
                    try statement.bind(positions.map { row.values[$0] })
                }
                .scalar(Bool.self) ?? false
            }
        }
    }

    /// Inserts a row, or updates the row with the same primary key. https://www.sqlite.org/lang_upsert.html
    ///
    /// A constraint that is declared with ON CONFLICT is one with ABORT here.
    /// - Throws: ``DatabaseError`` if this fails, the table has no primary key, or a trigger ignored the row.
    public func upsert(_ value: some Encodable, into table: String) throws(DatabaseError) {
        let row = try encode(value)
        try recording { () throws(DatabaseError) in
            let key = try primaryKey(of: table)
            let others = row.columns.filter { column in !key.contains { ExactText(name: $0) == ExactText(name: column) }
            }
            guard !row.columns.isEmpty else { throw unusable("The value has no properties.") }
            // By their numbers, because the table itself may be called "excluded".
            let changes = others.map { "\(Identifier.quoted($0)) = ?\(row.position(of: $0)! + 1)" }
            // With nothing else to set, a row that is there gets the key that it has, and counts as stored.
            let same = Identifier.quoted(key[0])
            let action = others.isEmpty ? "\(same) = \(same)" : changes.joined(separator: ", ")
            let insertion = insertion(of: row, into: table, "INSERT OR ABORT INTO")
            try execute("\(insertion) ON CONFLICT (\(list(key))) DO UPDATE SET \(action)", row.values)
            guard self.changes > 0 else {
                throw DatabaseError(
                    extendedCode: SQLITE_CONSTRAINT,
                    message: """
                        A trigger of the table "\(table)" ignored the row, which was not stored. What its triggers have written \
                        is, unless the transaction is rolled back.
                        """
                )
            }
        }
    }

    /// Returns the row with this primary key; `nil` if there is none.
    ///
    /// ```swift
    /// let person = try db.find(Person.self, in: "person", key: 7)
    /// ```
    /// - Parameters:
    ///   - type: what the row is read as.
    ///   - table: the name of the table.
    ///   - key: a value for each column of the primary key, in its order. NULL is equal to nothing.
    /// - Throws: ``DatabaseError`` if the query fails, the row cannot be read as the type, the table has no primary key, or
    ///   it has more or fewer columns.
    public func find<Value: Decodable, each Part: Bindable>(
        _ type: Value.Type,
        in table: String,
        key: repeat each Part
    ) throws(DatabaseError) -> Value? {
        let condition = try condition(in: table, count: SQL.count(repeat (each Part).self))
        return try executeQuery("SELECT * FROM \(identifier: table) WHERE \(condition)", repeat each key).first(type)
    }

    /// Returns whether there is a row with this primary key. The parameters are those of ``find(_:in:key:)``.
    /// - Throws: ``DatabaseError`` if the query fails, the table has no primary key, or it has more or fewer columns.
    public func exists<each Part: Bindable>(in table: String, key: repeat each Part) throws(DatabaseError) -> Bool {
        let condition = try condition(in: table, count: SQL.count(repeat (each Part).self))
        let search = SQL(raw: Database.search(table, condition.text))
        return try executeQuery(search, repeat each key).scalar(Bool.self) ?? false
    }

    /// Deletes the row with this primary key. The parameters are those of ``find(_:in:key:)``.
    /// - Returns: false if there is no such row.
    /// - Throws: ``DatabaseError`` if the row cannot be deleted, the table has no primary key, or it has more or fewer
    ///   columns. Also if the row is there, and a trigger has kept it.
    public func delete<each Part: Bindable>(from table: String, key: repeat each Part) throws(DatabaseError) -> Bool {
        let condition = try condition(in: table, count: SQL.count(repeat (each Part).self))
        return try recording { () throws(DatabaseError) in
            try changesRow(of: table) { () throws(DatabaseError) in
                try executeUpdate("DELETE FROM \(identifier: table) WHERE \(condition)", repeat each key)
            } isThere: { () throws(DatabaseError) in
                try exists(in: table, key: repeat each key)
            }
        }
    }

    /// Changes a row that is found by its primary key, and returns whether there is one.
    /// - Throws: ``DatabaseError`` also if the row is there, but was not changed: "no such row" would be wrong.
    private func changesRow(
        of table: String,
        _ change: () throws(DatabaseError) -> Void,
        isThere: () throws(DatabaseError) -> Bool
    ) throws(DatabaseError) -> Bool {
        try change()
        if changes > 0 { return true }
        guard try isThere() else { return false }
        guard isInTransaction else {
            // Somebody else may have inserted the row since. In a transaction nobody can.
            do {
                return try inTransaction { try changesRow(of: table, change, isThere: isThere) }
            } catch {
                throw .thrown(error, message: "The row could not be changed.", code: SQLITE_ABORT)
            }
        }
        throw DatabaseError(
            extendedCode: SQLITE_CONSTRAINT,
            message: """
                The row of the table "\(table)" is there, but was not changed: a trigger ignored the change, or a \
                constraint with ON CONFLICT IGNORE did. What its triggers have written is stored, unless the \
                transaction is rolled back.
                """
        )
    }

    private static func search(_ table: String, _ condition: String) -> String {
        "SELECT EXISTS (SELECT 1 FROM \(Identifier.quoted(table)) WHERE \(condition))"
    }

    /// Returns the condition that selects the row with a primary key of this many columns.
    private func condition(in table: String, count: Int) throws(DatabaseError) -> SQL {
        try recording { () throws(DatabaseError) in
            let key = try primaryKey(of: table)
            guard key.count == count else {
                throw unusable(
                    "\(count) values were given for the primary key of \"\(table)\", which has \(key.count) columns."
                )
            }
            return SQL(raw: condition(on: key))
        }
    }

    private func condition(on key: [String]) -> String {
        key.map { Identifier.quoted($0) + " = ?" }.joined(separator: " AND ")
    }

    private func encode(_ value: some Encodable) throws(DatabaseError) -> RowEncoder {
        try recording { () throws(DatabaseError) in try RowEncoder.encode(value, naming: columnNaming) }
    }

    private func execute(_ sql: String, _ values: [any Bindable]) throws(DatabaseError) {
        try update(SQL(raw: sql), given: values.count) { statement throws(DatabaseError) in try statement.bind(values) }
    }

    private func insertion(of row: RowEncoder, into table: String, _ verb: String = "INSERT INTO") -> String {
        let placeholders = SQL.placeholders(row.columns.count)
        return "\(verb) \(Identifier.quoted(table)) (\(list(row.columns))) VALUES (\(placeholders))"
    }

    private func list(_ columns: [String]) -> String {
        columns.map { Identifier.quoted($0) }.joined(separator: ", ")
    }

    /// Returns the names of the columns of the primary key. https://www.sqlite.org/pragma.html#pragma_table_info
    private func primaryKey(of table: String) throws(DatabaseError) -> [String] {
        let rows = try executeQuery("PRAGMA table_info(\(identifier: table))")
        defer { rows.close() }
        var columns: [(name: String, place: Int32)] = []
        while try rows.nextWithError() {
            columns.append((rows.string(forColumn: "name") ?? "", rows.int(forColumn: "pk")))
        }
        guard !columns.isEmpty else {
            throw DatabaseError(extendedCode: SQLITE_ERROR, message: "no such table: \(table)")
        }
        let key = columns.filter { $0.place > 0 }.sorted { $0.place < $1.place }.map(\.name)
        guard !key.isEmpty else {
            throw unusable("The table \"\(table)\" has no primary key, which would tell its rows apart.")
        }
        return key
    }

    private func unusable(_ problem: String) -> DatabaseError {
        DatabaseError(extendedCode: SQLITE_MISUSE, reason: .misuse, message: problem + " Nothing was executed.")
    }
}
