public import Foundation

/// One value of a row, read and written in parts, without having it in memory as a whole.
///
/// It expires when its row is changed or deleted by other means: reads and writes then fail with `SQLITE_ABORT`. Its size
/// is fixed; make room with `zeroblob(n)`. Until it is closed it holds a transaction, a writable one keeps other writers
/// out. It ends with the database, and with the block of a queue or pool.
///
/// Not Sendable; but it may be dropped on any thread. https://www.sqlite.org/c3ref/blob_open.html
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

    /// Number of bytes; 0 once it is closed.
    public var count: Int { handle.count }

    /// Reads some bytes.
    /// - Throws: ``DatabaseError``: `SQLITE_RANGE` if they are not all within the blob, `SQLITE_ABORT` if it has expired,
    ///   `SQLITE_MISUSE` if it is closed.
    public func read(at offset: Int = 0, count: Int) throws(DatabaseError) -> Data {
        // Before there is memory for it: the number may be absurd.
        try recording("Blob.read") { () throws(DatabaseError) in try handle.requireRange(offset, count) }
        var data = Data(count: count)
        try data.withUnsafeMutableBytes { bytes in
            Result { () throws(DatabaseError) in try read(at: offset, into: bytes) }
        }
        .get()
        return data
    }

    /// Fills the buffer with the bytes from `offset` on.
    /// - Throws: as ``read(at:count:)``.
    public func read(at offset: Int = 0, into buffer: UnsafeMutableRawBufferPointer) throws(DatabaseError) {
        try recording("Blob.read") { () throws(DatabaseError) in try handle.read(into: buffer, at: offset) }
    }

    /// Overwrites bytes from `offset` on. Outside a transaction they are committed when the blob is closed.
    /// - Throws: as ``read(at:count:)``; `SQLITE_READONLY` if it was not opened to be written.
    public func write(_ bytes: some ContiguousBytes, at offset: Int = 0) throws(DatabaseError) {
        try bytes.withUnsafeBytes { bytes in
            Result { () throws(DatabaseError) in
                try recording("Blob.write") { () throws(DatabaseError) in try handle.write(bytes, at: offset) }
            }
        }
        .get()
    }

    /// Moves to the same column of another row, which is faster than to open it.
    /// - Throws: ``DatabaseError``, after which the blob has expired.
    public func reopen(rowID: Int64) throws(DatabaseError) {
        try recording("Blob.reopen") { () throws(DatabaseError) in try handle.reopen(rowID: rowID) }
    }

    /// Ends it; idempotent.
    /// - Throws: ``DatabaseError`` if its transaction could not be committed; what was written to it is then undone. Of a
    ///   blob that is dropped instead, ``Database/lastError()`` tells.
    public func close() throws(DatabaseError) {
        try recording("Blob.close") { () throws(DatabaseError) in try handle.close() }
    }

    /// One that has ended may be anywhere, and leaves the database alone.
    private func recording<T>(
        _ call: StaticString,
        _ body: () throws(DatabaseError) -> T
    ) throws(DatabaseError) -> T {
        handle.isClosed ? try body() : try database.recording(call, body)
    }
}

@available(*, unavailable, message: "A Blob belongs to the thread that uses its Database. Pass its bytes on.")
extension Blob: Sendable {}

extension Database {
    /// Opens the value of one row to be read, and if asked for to be written, in parts.
    /// - Parameters:
    ///   - rowID: as from ``lastInsertRowId``.
    ///   - database: the schema that the table is in, by default `main`.
    /// - Throws: ``DatabaseError``: if there is no such row, or its value is neither blob nor text; for a view, a virtual
    ///   table and one WITHOUT ROWID; for an indexed column that is to be written.
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
