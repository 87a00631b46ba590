import Foundation

/// Decodes Decodable values from rows. One decoder serves all rows of an execution, and uses for all of them what it
/// learns from the first.
///
/// A keyed container is the row, by column names. A single value is the first column, and so is a row that is read as
/// a ``ColumnReadable`` type. A property is read by its type if that is ``ColumnReadable`` or decodes itself from a
/// single value. Every other property is JSON text.
final class RowDecoder: Decoder {
    let statement: Statement
    let naming: ColumnNaming
    let codingPath: [any CodingKey] = []
    let userInfo: [CodingUserInfoKey: Any] = [:]
    /// One container for each type of coding keys: a class and its superclass use different types.
    @exclusivity(unchecked) private var containers: [(keys: ObjectIdentifier, container: AnyObject)] = []
    @exclusivity(unchecked) private var readables: [Readable] = []

    /// Whether the type decoded from a column is ``ColumnReadable``. Finding this out is slow.
    private struct Readable {
        let index: Int32
        let type: ObjectIdentifier
        let readable: (any ColumnReadable.Type)?
    }

    init(statement: Statement, naming: ColumnNaming) {
        self.statement = statement
        self.naming = naming
    }

    func container<Key: CodingKey>(keyedBy type: Key.Type) -> KeyedDecodingContainer<Key> {
        for known in containers where known.keys == ObjectIdentifier(type) {
            return unsafeDowncast(known.container, to: Box<Key>.self).container
        }
        let box = Box(container: KeyedDecodingContainer(RowContainer<Key>(self)))
        containers.append((ObjectIdentifier(type), box))
        return box.container
    }

    /// Breaks the reference cycle between a decoder and its containers.
    final class Owner {
        let decoder: RowDecoder

        init(_ decoder: RowDecoder) { self.decoder = decoder }

        deinit {
            decoder.containers = []
        }
    }

    private final class Box<Key: CodingKey> {
        let container: KeyedDecodingContainer<Key>
        init(container: KeyedDecodingContainer<Key>) { self.container = container }
    }

    func unkeyedContainer() throws -> any UnkeyedDecodingContainer {
        throw DatabaseError.notDecodable("A row cannot be read as an array. Read it as a tuple of columns.", statement)
    }

    func singleValueContainer() -> any SingleValueDecodingContainer { ColumnValue(decoder: self, index: nil) }

    /// Advances to the next row, and decodes it; returns `nil` at the end.
    func nextRow<Value: Decodable>(_ type: Value.Type) throws(DatabaseError) -> Value? {
        guard try statement.advance() else { return nil }
        // The statement may have been reset since, and its columns may be others.
        if statement.rowNumber == 1 { (containers, readables) = ([], []) }
        // Generic code calls this also for a type that reads columns, and must get what other code gets.
        if let readable = readable(type, at: 0) { return try read(readable, as: type, at: 0) }
        do {
            return try Value(from: self)
        } catch let error as DecodingError {
            throw .notDecodable(
                "Row \(statement.rowNumber) cannot be read as \(type): \(CodingFailure.summary(of: error)).",
                statement
            )
        } catch {
            throw .thrown(
                error,
                message: "Row \(statement.rowNumber) cannot be read as \(type), because its init(from:) failed.",
                code: SQLITE_MISMATCH,
                sql: statement.sql
            )
        }
    }

    func column(at index: Int32) -> Column { Column(statement: statement, index: index) }

    func isNull(at index: Int32) -> Bool { statement.storedType(at: index) == .null }

    /// Decodes the value of one column.
    func value<Value: Decodable>(_ type: Value.Type, at index: Int32) throws -> Value {
        if let readable = readable(type, at: index) { return try read(readable, as: type, at: index) }
        do {
            return try Value(from: ColumnDecoder(decoder: self, index: index))
        } catch is ColumnDecoder.HoldsSeveralValues {
            return try JSON<Value>(column: column(at: index)).value
        } catch is DecodingError {
            throw column(at: index).mismatch(type, "that is not a valid value")
        }
    }

    private func readable(_ type: Any.Type, at index: Int32) -> (any ColumnReadable.Type)? {
        for known in readables where known.index == index && known.type == ObjectIdentifier(type) {
            return known.readable
        }
        let readable = type as? any ColumnReadable.Type
        readables.append(Readable(index: index, type: ObjectIdentifier(type), readable: readable))
        return readable
    }

    private func read<Stored: ColumnReadable, Value>(
        _ stored: Stored.Type,
        as type: Value.Type,
        at index: Int32
    ) throws(DatabaseError) -> Value {
        // Both are the same type, which was found to be readable.
        unsafeBitCast(try Stored(column: column(at: index)), to: type)
    }
}

extension DatabaseError {
    static func notDecodable(_ message: String, _ statement: Statement) -> DatabaseError {
        DatabaseError(extendedCode: SQLITE_MISMATCH, reason: .typeMismatch, message: message, sql: statement.sql)
    }
}
