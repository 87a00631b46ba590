extension EngineInfo {
    /// Has SQLCipher lock and wipe all of SQLite's memory, decrypted pages included, and not only keys; for the whole
    /// process, and for as long as it lives.
    ///
    /// It makes writing two to three times as slow, because every allocation becomes two system calls, and needs a
    /// memory lock limit (`ulimit -l`) that holds the page caches. Best called first of all: memory that was allocated
    /// before stays as it is. <https://www.zetetic.net/sqlcipher/sqlcipher-api/#cipher_memory_security>
    /// - Throws: ``DatabaseError`` with ``DatabaseError/Reason/unsupported`` if it did not come on.
    public static func enableMemorySecurity() throws(DatabaseError) {
        let connection = try StoreOpening(path: nil, key: .random()).open()
        defer { connection.close() }
        let state = try connection.unguarded { () throws(DatabaseError) in
            try connection.run("PRAGMA cipher_memory_security = ON")
            return try connection.text("PRAGMA cipher_memory_security")
        }
        guard state == "1" else { throw .unsupportedByEngine("how to secure memory") }
    }

    /// Whether ``enableMemorySecurity()`` has been called.
    public static var hasMemorySecurity: Bool {
        // False where it cannot be known.
        guard let connection = try? StoreOpening(path: nil, key: .random()).open() else { return false }
        defer { connection.close() }
        // As above.
        return (try? connection.text("PRAGMA cipher_memory_security")) == "1"
    }
}
