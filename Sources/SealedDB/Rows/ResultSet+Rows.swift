/// The rows of a query as Swift values.
///
/// ```swift
/// let people = try db.executeQuery("SELECT * FROM person").all(Person.self)
/// let oldest = try db.executeQuery("SELECT name, age FROM person ORDER BY age DESC").first((String, Int).self)
/// let count = try db.executeQuery("SELECT count(*) FROM person WHERE age > \(17)").scalar(Int.self)
/// let notes = try db.executeQuery("SELECT id, body FROM note").all { (id: Int64, body: String) in
///     Note(id: id, body: body)
/// }
/// ```
///
/// | what is passed | a row is |
/// |---|---|
/// | `Person.self`, a Decodable type | a value, read by the names of the columns; see ``rows(_:)-(Value.Type)`` |
/// | `(Int, String?).self` | a tuple of the columns, in their order |
/// | `Int.self`, a ``ColumnReadable`` type | the value of the first column |
/// | `[String: SQLValue].self` | a dictionary of the columns by their names |
/// | a closure, or an initializer such as `Note.init` | its result; it gets the columns, in their order |
///
/// Each call reads the remaining rows, and ends the query. A statement from ``Database/prepare(_:)-(SQL)`` can then be
/// bound again. A statement that writes runs to its end, so its changes are committed, or the call throws. All calls
/// throw ``DatabaseError`` if the query fails, or a value cannot be read as ``ColumnReadable`` describes. If a row of a statement that
/// writes cannot be read, its changes are not undone: the error says so, and ``DatabaseError/mayBeStored`` is true if they are
/// committed.
extension ResultSet {
    // MARK: One row at a time

    /// Returns the remaining rows one at a time, as values of a Decodable type, read by the names of the columns.
    ///
    /// - Columns are found by ``Database/columnNaming``. Columns without a property are ignored.
    /// - An optional property is `nil` if its column is NULL or missing. For any other property, both are errors.
    /// - A property is read as ``ColumnReadable`` describes. A type that decodes itself from a single value, such as an
    ///   enum with a raw value, is read from that value, as a `Bool` only from 0 and 1. Every other type (arrays,
    ///   dictionaries, structs) is read from JSON text, as with ``JSON``.
    /// - If `Value` itself is ``ColumnReadable`` or decodes from a single value, it is read from the first column.
    ///
    /// If your own `init(from:)` throws, the error thrown here has yours as its ``DatabaseError/underlyingError``.
    public func rows<Value: Decodable>(_ type: Value.Type) -> Rows<Value> {
        let decoder = RowDecoder(statement: prepared, naming: parentDB?.columnNaming ?? .asIs)
        let owner = RowDecoder.Owner(decoder)
        return Rows(self) { () throws(DatabaseError) in try owner.decoder.nextRow(type) }
    }

    /// Returns the remaining rows one at a time, as the values of their first column.
    @inlinable
    public func rows<Value: ColumnReadable & Decodable>(_ type: Value.Type) -> Rows<Value> {
        tuples(type)
    }

    /// Returns the remaining rows one at a time, as tuples of columns, in their order. Pass `(Int, String?).self`, or one
    /// type for one column. Further columns are ignored.
    @inlinable
    public func rows<each Column: ColumnReadable>(_ type: (repeat each Column).Type) -> Rows<(repeat each Column)> {
        tuples(type)
    }

    /// Returns the remaining rows one at a time, as dictionaries of the columns by their names as they are spelled. Of columns
    /// with the same name, the last one is used.
    ///
    /// ```swift
    /// let rows = try db.executeQuery("SELECT * FROM person").all([String: SQLValue].self)
    /// ```
    public func rows(_ type: [String: SQLValue].Type) -> Rows<[String: SQLValue]> {
        let cursor = RowCursor(self)
        return Rows(self) { () throws(DatabaseError) in try cursor.nextByName() }
    }

    /// Calls `body` with the columns of each remaining row, in their order. If `body` throws, the query ends.
    ///
    /// ```swift
    /// try db.executeQuery("SELECT id, body FROM note").forEach { (id: Int64, body: String) in index.add(id, body) }
    /// ```
    /// - Throws: ``DatabaseError``, or the error of `body`.
    @inlinable
    public func forEach<each Column: ColumnReadable>(_ body: (repeat each Column) throws -> Void) throws {
        var cursor = RowCursor(self)
        for element in repeat (each Column).self { cursor.add(element) }
        defer { finish() }
        while let row = try next((repeat each Column).self, cursor) { try body(repeat each row) }
    }

    // MARK: All rows

    /// Returns the remaining rows as values of a Decodable type.
    /// - Throws: ``DatabaseError`` if the query fails, or a row cannot be read so:
    ///   ``DatabaseError/Reason/typeMismatch``.
    @inlinable
    public func all<Value: Decodable>(_ type: Value.Type) throws(DatabaseError) -> [Value] {
        try rows(type).all()
    }

    /// Returns the remaining rows as dictionaries of the columns by their names as they are spelled. Of columns with the same
    /// name, the last one is used.
    /// - Throws: ``DatabaseError`` if the query fails, or a row cannot be read so:
    ///   ``DatabaseError/Reason/typeMismatch``.
    public func all(_ type: [String: SQLValue].Type) throws(DatabaseError) -> [[String: SQLValue]] {
        try rows(type).all()
    }

    /// Returns the first columns of the remaining rows.
    /// - Throws: ``DatabaseError`` if the query fails, or a row cannot be read so:
    ///   ``DatabaseError/Reason/typeMismatch``.
    @inlinable
    public func all<Value: ColumnReadable & Decodable>(_ type: Value.Type) throws(DatabaseError) -> [Value] {
        try rows(type).all()
    }

    /// Returns the remaining rows as tuples of columns.
    /// - Throws: ``DatabaseError`` if the query fails, or a row cannot be read so:
    ///   ``DatabaseError/Reason/typeMismatch``.
    @inlinable
    public func all<each Column: ColumnReadable>(
        _ type: (repeat each Column).Type
    ) throws(DatabaseError) -> [(repeat each Column)] {
        try rows(type).all()
    }

    /// Returns what `make` makes of each remaining row. It gets the columns, in their order.
    ///
    /// ```swift
    /// struct Note { var id: Int64; var body: String }
    /// let notes = try db.executeQuery("SELECT id, body FROM note").all(Note.init)
    /// ```
    /// - Throws: ``DatabaseError``, or the error of `make`.
    @inlinable
    public func all<each Column: ColumnReadable, Value>(
        _ make: (repeat each Column) throws -> Value
    ) throws -> [Value] {
        var result: [Value] = []
        try forEach { (column: repeat each Column) in result.append(try make(repeat each column)) }
        return result
    }

    // MARK: One row

    /// Returns the next row as a value of a Decodable type; `nil` if there is none. Further rows are not read.
    /// - Throws: ``DatabaseError`` if the query fails, or the row cannot be read so:
    ///   ``DatabaseError/Reason/typeMismatch``.
    @inlinable
    public func first<Value: Decodable>(_ type: Value.Type) throws(DatabaseError) -> Value? {
        try rows(type).first()
    }

    /// Returns the next row as a dictionary of the columns by their names; `nil` if there is none. Further rows are not read.
    /// - Throws: ``DatabaseError`` if the query fails, or the row cannot be read so:
    ///   ``DatabaseError/Reason/typeMismatch``.
    public func first(_ type: [String: SQLValue].Type) throws(DatabaseError) -> [String: SQLValue]? {
        try rows(type).first()
    }

    /// Returns the first column of the next row; `nil` if there is none. Further rows are not read.
    /// - Throws: ``DatabaseError`` if the query fails, or the row cannot be read so:
    ///   ``DatabaseError/Reason/typeMismatch``.
    @inlinable
    public func first<Value: ColumnReadable & Decodable>(_ type: Value.Type) throws(DatabaseError) -> Value? {
        try rows(type).first()
    }

    /// Returns the next row as a tuple of columns; `nil` if there is none. Further rows are not read.
    /// - Throws: ``DatabaseError`` if the query fails, or the row cannot be read so:
    ///   ``DatabaseError/Reason/typeMismatch``.
    @inlinable
    public func first<each Column: ColumnReadable>(
        _ type: (repeat each Column).Type
    ) throws(DatabaseError) -> (repeat each Column)? {
        try rows(type).first()
    }

    /// Returns what `make` makes of the next row; `nil` if there is none. Further rows are not read.
    /// - Throws: ``DatabaseError``, or the error of `make`.
    @inlinable
    public func first<each Column: ColumnReadable, Value>(
        _ make: (repeat each Column) throws -> Value
    ) throws -> Value? {
        guard let row = try first((repeat each Column).self) else { return nil }
        return try make(repeat each row)
    }

    /// Returns the first column of the next row; `nil` if there is no row or the value is NULL. Further rows are not
    /// read.
    /// - Throws: ``DatabaseError`` if the query fails, or the value is of another type:
    ///   ``DatabaseError/Reason/typeMismatch``.
    @inlinable
    public func scalar<Value: ColumnReadable>(_ type: Value.Type) throws(DatabaseError) -> Value? {
        try tuples((Value?).self).first() ?? nil
    }

    // MARK: Dictionaries

    /// Returns the first two columns of the remaining rows as keys and values of a dictionary.
    ///
    /// ```swift
    /// let names = try db.executeQuery("SELECT id, name FROM person").dictionary((Int, String).self)
    /// ```
    /// - Throws: ``DatabaseError`` if the query fails or two rows have the same key.
    @inlinable
    public func dictionary<Key: ColumnReadable & Hashable, Value: ColumnReadable>(
        _ type: (Key, Value).Type
    ) throws(DatabaseError) -> [Key: Value] {
        defer { finish() }
        let elements = rows(type)
        var result: [Key: Value] = [:]
        while let (key, value) = try elements.next() {
            guard result.updateValue(value, forKey: key) == nil else { throw endedByRow(repeatedKey) }
        }
        return result
    }

    /// Returns the remaining rows as values of a Decodable type. The keys of the dictionary are the values of one column.
    ///
    /// ```swift
    /// let people: [Int: Person] = try db.executeQuery("SELECT * FROM person").dictionary(Person.self, keyedBy: "id")
    /// ```
    /// - Throws: ``DatabaseError`` if the query fails or two rows have the same key.
    @inlinable
    public func dictionary<Key: ColumnReadable & Hashable, Value: Decodable>(
        _ type: Value.Type,
        keyedBy column: String
    ) throws(DatabaseError) -> [Key: Value] {
        defer { finish() }
        let elements = rows(type)
        var result: [Key: Value] = [:]
        while let element = try elements.next() {
            let key: Key
            do throws(DatabaseError) {
                key = try value(Key.self, forColumn: column)
            } catch {
                throw endedByRow(error)
            }
            guard result.updateValue(element, forKey: key) == nil else { throw endedByRow(repeatedKey) }
        }
        return result
    }

    // MARK: Shared

    @inlinable
    func tuples<each Value: ColumnReadable>(_ type: (repeat each Value).Type) -> Rows<(repeat each Value)> {
        var cursor = RowCursor(self)
        for element in repeat (each Value).self { cursor.add(element) }
        return Rows(self) { [cursor] () throws(DatabaseError) in try cursor.next(type) }
    }

    /// Returns the next row; its error is an error of the database.
    @inlinable
    @inline(__always)
    func next<each Column: ColumnReadable>(
        _ type: (repeat each Column).Type,
        _ cursor: RowCursor
    ) throws(DatabaseError) -> (repeat each Column)? {
        do throws(DatabaseError) {
            return try cursor.next(type)
        } catch {
            throw endedByRow(error)
        }
    }

    /// Ends the query after the error of a row, and returns what to throw. A statement that writes has made its changes before
    /// its first row, so they are not undone because a row cannot be read.
    @usableFromInline
    func endedByRow(_ error: DatabaseError) -> DatabaseError {
        guard !isReadOnlyStatement, prepared.hasRow, let database = parentDB else { return recorded(error) }
        do throws(DatabaseError) {
            try completeExecution()
            try finishWithError()
        } catch let failure {
            // Nothing is stored then. As with `close()`, a block that writes fails by it.
            database.connection?.noteUnnoticed(failure)
            return database.recorded(error)
        }
        return database.recorded(
            database.isInTransaction
                ? error.adding(context: "What the statement has written is a part of the transaction, but")
                : error.adding(commitState: "What the statement has written is stored, but")
        )
    }

    @usableFromInline var repeatedKey: DatabaseError {
        DatabaseError(
            extendedCode: SQLITE_MISUSE,
            reason: .misuse,
            message: "Two rows have the same key, so that a dictionary cannot hold both.",
            sql: prepared.sql
        )
    }
}
