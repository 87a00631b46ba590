internal import SQLiteEngine

/// SQLCipher's own calls. https://www.zetetic.net/sqlcipher/sqlcipher-api/#sqlite3_key
extension Connection {
    /// Gives the connection its key. OK says nothing about the key being right.
    func key(_ spec: UnsafeRawBufferPointer) -> Int32 {
        guard let handle else { return SQLITE_MISUSE }
        return sealeddb_key(handle, spec.baseAddress, Int32(spec.count))
    }

    /// Rewrites the file under another key. The result means nothing: close the connection, and look with a fresh one.
    func rekey(_ spec: UnsafeRawBufferPointer) {
        guard let handle else { return }
        // SQLCipher returns OK for rekeys that failed, and what is true is found by a fresh connection.
        _ = sealeddb_rekey(handle, spec.baseAddress, Int32(spec.count))
    }
}
