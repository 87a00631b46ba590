internal import CSealedDBSystem
internal import SQLiteEngine

/// SQLCipher's own functions. https://www.zetetic.net/sqlcipher/sqlcipher-api/#sqlite3_key
extension Connection {
    /// Gives the connection its key. `SQLITE_OK` does not mean that the key is right.
    func key(_ spec: UnsafeRawBufferPointer) -> Int32 {
        guard let handle else { return SQLITE_MISUSE }
        // The key makes a new codec.
        sealeddb_forget_failures(UnsafeMutableRawPointer(handle))
        return sealeddb_key(handle, spec.baseAddress, Int32(spec.count))
    }

    /// Rewrites the file under another key. SQLite's result is unreliable: close the connection, and check with a new
    /// one.
    func rekey(_ spec: UnsafeRawBufferPointer) {
        guard let handle else { return }
        // SQLCipher also returns OK for rekeys that failed. A new connection finds out what happened.
        _ = sealeddb_rekey(handle, spec.baseAddress, Int32(spec.count))
    }
}
