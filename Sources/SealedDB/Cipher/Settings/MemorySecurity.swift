extension EngineInfo {
    /// Makes SQLCipher lock and wipe all memory that SQLite allocates, including decrypted pages, and not only keys. It
    /// applies to the whole process and stays on until the process ends.
    ///
    /// Writing becomes two to three times as slow, because every allocation needs two system calls, and the memory lock
    /// limit (`ulimit -l`) must be large enough for the page caches. Call this before anything else: memory that is
    /// already allocated stays as it is. Pages are then read as slowly as SQLCipher reads them, see
    /// ``keepsPageContexts``. <https://www.zetetic.net/sqlcipher/sqlcipher-api/#cipher_memory_security>
    /// - Throws: ``DatabaseError`` with ``DatabaseError/Reason/unsupported`` if SQLCipher does not turn it on.
    public static func enableMemorySecurity() throws(DatabaseError) {
        let connection = try StoreOpening(path: nil, key: .random()).open()
        defer { connection.close() }
        PageContexts.stopForMemorySecurity()
        let state = try connection.unguarded { () throws(DatabaseError) in
            try connection.run("PRAGMA cipher_memory_security = ON")
            return try connection.text("PRAGMA cipher_memory_security")
        }
        guard state == "1" else { throw .unsupportedByEngine("how to secure memory") }
    }

    /// Whether SQLCipher's memory security is on in this process; see ``enableMemorySecurity()``.
    public static var hasMemorySecurity: Bool {
        // False if it cannot be found out.
        guard let connection = try? StoreOpening(path: nil, key: .random()).open() else { return false }
        defer { connection.close() }
        // False if it cannot be found out, as above.
        return (try? connection.text("PRAGMA cipher_memory_security")) == "1"
    }
}
