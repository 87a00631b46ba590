import Foundation

/// The rows of a query, returned one at a time, each as a Swift value.
///
/// ```swift
/// let people = try db.executeQuery("SELECT * FROM person").rows(Person.self)
/// while let person = try people.next() { … }
/// ```
/// This is not a `Sequence`, because a `for` loop cannot throw: a query that fails at its third row would look like one
/// with two rows. ``next()`` and ``forEach(_:)`` throw instead.
///
/// The first error ends the rows, and every later call throws it again. The rows keep their ``Database`` alive. They
/// are not Sendable.
public final class Rows<Element> {
    @usableFromInline let resultSet: ResultSet
    /// Advances to the next row and reads it.
    @usableFromInline let advance: () throws(DatabaseError) -> Element?
    @usableFromInline var isActive = true
    @usableFromInline var failure: DatabaseError?

    @inlinable
    init(_ resultSet: ResultSet, advance: @escaping () throws(DatabaseError) -> Element?) {
        self.resultSet = resultSet
        self.advance = advance
    }

    /// Returns the next row; `nil` at the end.
    /// - Throws: ``DatabaseError`` if the query fails, or the row cannot be read as an `Element`.
    @inlinable
    public func next() throws(DatabaseError) -> Element? {
        guard isActive else { return try ended() }
        do throws(DatabaseError) {
            if let element = try advance() { return element }
        } catch {
            fail(error)
        }
        close()
        return try ended()
    }

    /// Returns all remaining rows.
    /// - Throws: ``DatabaseError`` if the query fails, or a row cannot be read as an `Element`.
    @inlinable
    public func all() throws(DatabaseError) -> [Element] {
        var result: [Element] = []
        if isActive {
            do throws(DatabaseError) {
                while let element = try advance() { result.append(element) }
            } catch {
                fail(error)
            }
            close()
        }
        _ = try ended()
        return result
    }

    /// Returns the next row, and ends the query; `nil` if there is none. A writing statement runs to its end, because only
    /// there are all its changes made and committed.
    /// - Throws: ``DatabaseError`` if the query fails, or the row cannot be read as an `Element`.
    @inlinable
    public func first() throws(DatabaseError) -> Element? {
        let element = try next()
        try complete()
        return element
    }

    /// Calls `body` with each remaining row. If `body` throws, the rows are closed; what the statement has written stays.
    /// - Throws: what `body` throws, and as ``all()``.
    @inlinable
    public func forEach(_ body: (Element) throws -> Void) throws {
        defer { close() }
        while let element = try next() { try body(element) }
    }

    /// Ends the query and releases its locks. A statement from ``Database/prepare(_:)-(SQL)`` can then be bound again.
    /// Calling it again has no effect. For a writing statement, see ``ResultSet/close()``.
    public func close() {
        guard isActive else { return }
        isActive = false
        resultSet.finish()
    }

    /// Ends the query like ``close()``, but throws.
    /// - Throws: ``DatabaseError`` if the changes of the statement could not be committed. None of them is stored then.
    public func closeWithError() throws(DatabaseError) {
        guard isActive else { return }
        isActive = false
        try resultSet.finishWithError()
    }

    /// Ends the query once enough rows have been read.
    @usableFromInline
    func complete() throws(DatabaseError) {
        guard isActive else { return }
        isActive = false
        do throws(DatabaseError) {
            try resultSet.completeExecution()
            try resultSet.finishWithError()
        } catch {
            failure = error
            throw error
        }
    }

    @usableFromInline
    func fail(_ error: DatabaseError) { failure = resultSet.endedByRow(error) }

    @usableFromInline
    func ended() throws(DatabaseError) -> Element? {
        if let failure { throw failure }
        return nil
    }
}

@available(*, unavailable, message: "Rows belong to the thread that uses their Database. Pass the values on.")
extension Rows: Sendable {}

/// Reads the rows of an execution as tuples.
@usableFromInline
struct RowCursor {
    let statement: Statement
    private var plan = TuplePlan()
    private var width: Int32 = 0

    @usableFromInline
    init(_ resultSet: ResultSet) {
        statement = resultSet.prepared
    }

    @usableFromInline
    mutating func add(_ type: Any.Type) {
        plan.add(type)
        width += 1
    }

    @inlinable
    @inline(__always)
    func next<each Value: ColumnReadable>(
        _ type: (repeat each Value).Type
    ) throws(DatabaseError) -> (repeat each Value)? {
        guard try step() else { return nil }
        let row: (repeat each Value)? = withUnsafeTemporaryAllocation(of: type, capacity: 1) { row in
            guard read(into: UnsafeMutableRawBufferPointer(row)) else { return nil }
            return row.moveElement(from: 0)
        }
        if let row { return row }
        return try read(type)
    }

    /// Reads the elements one by one. This also finds out what is wrong with one of them.
    @inlinable
    @inline(never)
    func read<each Value: ColumnReadable>(
        _ type: (repeat each Value).Type
    ) throws(DatabaseError) -> (repeat each Value) {
        var column = try columnBeforeFirst()
        func next<Next: ColumnReadable>(_ type: Next.Type) throws(DatabaseError) -> Next {
            column.position += 1
            return try Next(column: column)
        }
        return (repeat try next((each Value).self))
    }

    /// Reads all columns of the next row.
    func nextByName() throws(DatabaseError) -> [String: SQLValue]? {
        guard try step(), let names = statement.valuesByName else { return nil }
        var column = try columnBeforeFirst()
        return try names.row { (index) throws(DatabaseError) in
            column.position = index
            return try SQLValue(column: column)
        }
    }

    @usableFromInline
    func step() throws(DatabaseError) -> Bool { try statement.advance() }

    /// Reads the row directly into memory. Returns false, with nothing read, if ``read(_:)`` must read it.
    @usableFromInline
    func read(into place: UnsafeMutableRawBufferPointer) -> Bool {
        plan.read(statement, into: place)
    }

    @usableFromInline
    func columnBeforeFirst() throws(DatabaseError) -> Column {
        guard statement.columnCount >= width else {
            throw DatabaseError(
                extendedCode: SQLITE_RANGE,
                reason: .misuse,
                message: "\(width) columns were asked for, but the query has \(statement.columnCount).",
                sql: statement.sql
            )
        }
        return Column(statement: statement, index: -1)
    }
}
