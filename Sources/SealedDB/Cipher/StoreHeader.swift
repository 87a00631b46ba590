/// What the first bytes of a file tell.
enum StoreHeader {
    /// `SQLite format 3` and a NUL. https://www.sqlite.org/fileformat.html#magic_header_string
    static let plaintextMagic = [UInt8]("SQLite format 3\0".utf8)
    /// The smallest page of SQLite.
    static let smallestPage: Int64 = 512

    /// Why the first read failed. SQLite has one code for all that is not a database to it.
    static func diagnose(
        _ error: DatabaseError,
        header: [UInt8],
        connection: Connection,
        name: String
    ) throws(DatabaseError) -> DatabaseError {
        guard error.code == SQLITE_NOTADB else { return error }
        let size = try connection.mainFileSize()
        if !header.isEmpty, size < smallestPage || size % smallestPage != 0 {
            return DatabaseError(
                extendedCode: error.extendedCode,
                reason: .notADatabase,
                message: """
                    \(name) is not a database, or it is cut off: its \(size) bytes are not a whole number of pages. \
                    It was not changed. Restore it from a backup.
                    """
            )
        }
        return DatabaseError(
            extendedCode: error.extendedCode,
            reason: .wrongKey,
            message: """
                The key does not open \(name): it is the wrong key, or the store has other cipher settings, or its \
                first page is damaged. The file was not changed. Try the right key; `sealdb verify` tells a damaged \
                page from a wrong key.
                """
        )
    }

    /// The error of a read without a key, made clear.
    static func diagnoseWithoutKey(_ error: DatabaseError, header: [UInt8]) -> DatabaseError {
        guard error.code == SQLITE_NOTADB, header != plaintextMagic, !header.isEmpty else { return error }
        return DatabaseError(
            extendedCode: error.extendedCode,
            reason: .keyRequired,
            message: """
                The file is encrypted, or not a database, and no key was given. It was not changed. Open it with its \
                key.
                """,
            sql: error.sql
        )
    }
}
