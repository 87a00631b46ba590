internal import SQLiteEngine

/// An open blob. https://www.sqlite.org/c3ref/blob_open.html
final class BlobHandle: ConnectionHandle {
    private var pointer: OpaquePointer?
    private let connection: Connection
    private let database: String
    private let table: String
    private var rowID: Int64
    private var hasExpired = false

    init(
        _ connection: Connection,
        database: String,
        table: String,
        column: String,
        rowID: Int64,
        isWritable: Bool
    ) throws(DatabaseError) {
        guard let handle = connection.handle else { throw .notOpen }
        try connection.requireNoHook()
        try connection.supervision?.check(connection, writes: isWritable)
        for name in [database, table, column] { try Connection.requireWholeName(name) }
        if isWritable { try connection.requireNoOpenWriter() }
        // SQLite asks no authorizer here.
        if isWritable, !connection.statementGuard.isSuspended,
            let reason = connection.guardRules?.refusal(ofChanging: table, addsRows: false)
        {
            throw .notAllowed(reason)
        }
        self.connection = connection
        self.database = database
        self.table = table
        self.rowID = rowID
        let code = connection.watchingPages {
            sqlite3_blob_open(handle, database, table, column, rowID, isWritable ? 1 : 0, &pointer)
        }
        do throws(DatabaseError) {
            try connection.check(code)
        } catch {
            // The blob is open if SQLite did not notice a damaged page. Nothing was written to it.
            sqlite3_blob_close(pointer)
            pointer = nil
            throw error
        }
        if isWritable { connection.mayHaveOpenWriter = connection.isAutocommit }
        connection.register(self)
        connection.hooks?.noteRead(table, in: database)
    }

    func takePointer() -> OpaquePointer? {
        defer { pointer = nil }
        return pointer
    }

    static func end(_ pointer: OpaquePointer) -> Int32 { sqlite3_blob_close(pointer) }

    var isClosed: Bool { pointer == nil }

    /// Ends the blob, on any thread.
    func drop() { connection.end(self) }

    /// Ends the blob. This also ends the transaction that the blob may have begun, and its commit can fail.
    func close() throws(DatabaseError) {
        guard !isClosed else { return }
        guard !connection.isForked else { throw .forked }
        connection.gate?.require("Blob.close")
        try connection.requireNoHook()
        let code = connection.ending(self) { claimed in
            claimed.first.map { pointer in connection.watchingPages { sqlite3_blob_close(pointer) } } ?? SQLITE_OK
        }
        connection.settleChanges()
        guard code != SQLITE_OK else { return }
        do throws(DatabaseError) {
            try connection.check(code)
        } catch {
            guard connection.isAutocommit, let state = connection.stateAfterMoment(code) else { throw error }
            throw error.adding(commitState: state)
        }
    }

    var count: Int {
        guard let pointer else { return 0 }
        connection.gate?.require("Blob.count")
        return Int(sqlite3_blob_bytes(pointer))
    }

    func read(into buffer: UnsafeMutableRawBufferPointer, at offset: Int) throws(DatabaseError) {
        let pointer = try usable(offset, buffer.count)
        let code = connection.watchingPages {
            sqlite3_blob_read(pointer, buffer.baseAddress, Int32(buffer.count), Int32(offset))
        }
        // The buffer may hold bytes that were never stored.
        if code != SQLITE_OK { buffer.initializeMemory(as: UInt8.self, repeating: 0) }
        try check(code)
    }

    func write(_ bytes: UnsafeRawBufferPointer, at offset: Int) throws(DatabaseError) {
        let pointer = try usable(offset, bytes.count)
        try check(
            connection.watchingPages {
                sqlite3_blob_write(pointer, bytes.baseAddress, Int32(bytes.count), Int32(offset))
            }
        )
        if connection.isObserved { connection.hooks?.changes.blobWritten(table, in: database, rowID: rowID) }
        try connection.hasWritten()
    }

    func reopen(rowID: Int64) throws(DatabaseError) {
        let pointer = try usable(0, 0)
        let code = connection.watchingPages { sqlite3_blob_reopen(pointer, rowID) }
        // After a failed move, the blob is at no row, whatever the reason of the failure.
        hasExpired = code != SQLITE_OK
        try connection.check(code)
        self.rowID = rowID
    }

    /// Returns the pointer; throws unless the bytes are within the blob.
    private func usable(_ offset: Int, _ length: Int) throws(DatabaseError) -> OpaquePointer {
        guard let pointer else {
            throw DatabaseError(
                extendedCode: SQLITE_MISUSE,
                reason: .misuse,
                message: "The blob is closed, by itself, with its database, or with the queue's block. Open it anew."
            )
        }
        guard !connection.isForked else { throw .forked }
        connection.gate?.require("Blob")
        try connection.requireNoHook()
        guard !hasExpired else { throw BlobHandle.expired }
        guard offset >= 0, (0...count).contains(length), offset <= count - length else {
            throw DatabaseError(
                extendedCode: SQLITE_RANGE,
                reason: .misuse,
                message: "\(length) bytes from \(offset) on are not within the blob's \(count). It is unchanged."
            )
        }
        return pointer
    }

    func requireRange(_ offset: Int, _ length: Int) throws(DatabaseError) {
        _ = try usable(offset, length)
    }

    private func check(_ code: Int32) throws(DatabaseError) {
        hasExpired = code & 0xff == SQLITE_ABORT
        guard !hasExpired else { throw BlobHandle.expired }
        try connection.check(code)
    }

    private static let expired = DatabaseError(
        extendedCode: SQLITE_ABORT,
        message: """
            The blob has expired: its row was changed or deleted after it was opened, or it could not be moved to another \
            row, or the transaction was rolled back. Open it anew.
            """
    )
}
