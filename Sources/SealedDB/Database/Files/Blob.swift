public import Foundation

/// One blob or text of a row, which is read and written in parts, without being in memory as a whole.
///
/// It expires if its row is changed or deleted by other means: reading and writing then fails with `SQLITE_ABORT`. Its
/// size is fixed; use `zeroblob(n)` to make room. It holds a transaction open until it is closed, and a writable blob
/// keeps other writers out, also those of its own connection unless an explicit transaction is open: SQLite would commit what
/// they write only when the blob ends. It ends with the database, and with the block of a queue or pool.
///
/// It is not Sendable, but any thread may release it. https://www.sqlite.org/c3ref/blob_open.html
public final class Blob {
    private let handle: BlobHandle
    private let database: Database

    fileprivate init(_ handle: BlobHandle, _ database: Database) {
        self.handle = handle
        self.database = database
    }

    deinit {
        handle.drop()
    }

    /// The number of bytes; 0 once the blob is closed.
    public var count: Int { handle.count }

    /// Reads bytes.
    /// - Throws: ``DatabaseError``, with `SQLITE_RANGE` if not all bytes are within the blob, `SQLITE_ABORT` if it has
    ///   expired, and `SQLITE_MISUSE` if it is closed.
    public func read(at offset: Int = 0, count: Int) throws(DatabaseError) -> Data {
        // The range is checked before memory is allocated, because the count may be absurdly large.
        try recording("Blob.read") { () throws(DatabaseError) in try handle.requireRange(offset, count) }
        var data = Data(count: count)
        try data.withUnsafeMutableBytes { bytes in
            Result { () throws(DatabaseError) in try read(at: offset, into: bytes) }
        }
        .get()
        return data
    }

    /// Fills the buffer with the bytes from `offset` on.
    /// - Throws: the same errors as ``read(at:count:)``.
    public func read(at offset: Int = 0, into buffer: UnsafeMutableRawBufferPointer) throws(DatabaseError) {
        try recording("Blob.read") { () throws(DatabaseError) in try handle.read(into: buffer, at: offset) }
    }

    /// Overwrites bytes from `offset` on. Outside a transaction, closing the blob commits them.
    /// - Throws: the same errors as ``read(at:count:)``, and `SQLITE_READONLY` if the blob was not opened for writing.
    public func write(_ bytes: some ContiguousBytes, at offset: Int = 0) throws(DatabaseError) {
        try bytes.withUnsafeBytes { bytes in
            Result { () throws(DatabaseError) in
                try recording("Blob.write") { () throws(DatabaseError) in try handle.write(bytes, at: offset) }
            }
        }
        .get()
    }

    /// Moves to the same column of another row. This is faster than opening that blob.
    /// - Throws: ``DatabaseError``. The blob has then expired.
    public func reopen(rowID: Int64) throws(DatabaseError) {
        try recording("Blob.reopen") { () throws(DatabaseError) in try handle.reopen(rowID: rowID) }
    }

    /// Closes the blob. Calling it again has no effect.
    /// - Throws: ``DatabaseError`` if its transaction could not be committed. What was written to it is then undone. If
    ///   a blob is released instead of closed, ``Database/lastError()`` returns that error.
    public func close() throws(DatabaseError) {
        try recording("Blob.close") { () throws(DatabaseError) in try handle.close() }
    }

    /// Runs a call, and records its outcome for the database while the blob is open. A closed blob may be used on any
    /// thread, so it does not touch the database.
    private func recording<T>(
        _ call: StaticString,
        _ body: () throws(DatabaseError) -> T
    ) throws(DatabaseError) -> T {
        guard !handle.isClosed else { return try body() }
        // A blob that expires ends its transaction, which may commit what was written to it.
        defer { database.connection?.settleEnd() }
        return try database.recording(call, body)
    }
}

@available(*, unavailable, message: "A Blob belongs to the thread that uses its Database. Pass its bytes on.")
extension Blob: Sendable {}

extension Database {
    /// Opens a value of one row for reading in parts, and for writing if `isWritable` is true.
    ///
    /// SQLite checks no CHECK constraint against what is written, and does not compute stored generated columns of it anew.
    /// <https://www.sqlite.org/c3ref/blob_open.html>
    /// - Parameters:
    ///   - table: the name of the table.
    ///   - column: the name of the column.
    ///   - rowID: the row id, such as from ``lastInsertRowId``.
    ///   - database: the schema of the table, by default `main`.
    ///   - isWritable: whether to write, too. Default false.
    /// - Throws: ``DatabaseError`` if there is no such row, or the value is neither a blob nor text; for a view, a
    ///   virtual table and a table WITHOUT ROWID; and for writing to an indexed column.
    public func openBlob(
        table: String,
        column: String,
        rowID: Int64,
        database: String = "main",
        isWritable: Bool = false
    ) throws(DatabaseError) -> Blob {
        try recording { () throws(DatabaseError) in
            let handle = try BlobHandle(
                openConnection(),
                database: database,
                table: table,
                column: column,
                rowID: rowID,
                isWritable: isWritable
            )
            return Blob(handle, self)
        }
    }
}
