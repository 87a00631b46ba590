import Foundation
internal import SQLiteEngine

/// Databases as byte arrays. https://www.sqlite.org/c3ref/serialize.html
extension Connection {
    /// Returns the pages of "main" in plaintext, whether or not the file is encrypted.
    func plaintextImage() throws(DatabaseError) -> Data {
        guard let handle else { throw .notOpen }
        var count: sqlite3_int64 = 0
        var image: UnsafeMutablePointer<UInt8>?
        let code = watchingPages {
            image = sqlite3_serialize(handle, "main", &count, 0)
            return SQLITE_OK
        }
        do throws(DatabaseError) {
            try check(code)
        } catch {
            sqlite3_free(image)
            throw error
        }
        guard let bytes = image else {
            // No bytes: either the database has no page yet, or memory ran out.
            guard count == 0 else { throw DatabaseError(extendedCode: SQLITE_NOMEM, message: "No memory for a copy.") }
            return Data()
        }
        defer { sqlite3_free(bytes) }
        return Data(bytes: bytes, count: Int(count))
    }

    /// Replaces "main" by a database in memory with these bytes as its content.
    func deserialize(_ image: Data) throws(DatabaseError) {
        guard let handle else { throw .notOpen }
        guard let copy = sqlite3_malloc64(UInt64(max(image.count, 1))) else {
            throw DatabaseError(extendedCode: SQLITE_NOMEM, message: "No memory for the database.")
        }
        let bytes = copy.assumingMemoryBound(to: UInt8.self)
        image.copyBytes(to: bytes, count: image.count)
        let count = sqlite3_int64(image.count)
        let flags = UInt32(SQLITE_DESERIALIZE_FREEONCLOSE | SQLITE_DESERIALIZE_RESIZEABLE)
        // SQLite owns the bytes from now on, and frees them even if the call fails.
        try check(sqlite3_deserialize(handle, "main", bytes, count, count, flags))
    }
}
