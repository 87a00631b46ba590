/// Attached files, for queries and transactions across several files on one connection.
extension Database {
    /// Attaches a file under a name, so that its tables are `name.table`. https://www.sqlite.org/lang_attach.html
    ///
    /// A transaction over several files is atomic only in rollback-journal modes. In WAL mode, each file is committed
    /// separately: if the second commit fails, or the process ends in between, the changes to the first file are
    /// stored.
    ///
    /// The key is bound, never part of the SQL, and it is verified. A store must have SQLCipher 4's settings; migrate
    /// any other store first (``StoreMigration``). ``close()`` detaches all files, and so does a rotation of the key.
    /// - Parameters:
    ///   - path: a file, which is created if it does not exist and ``Configuration/createsFile`` is true; `:memory:`
    ///     and `""` as in ``init(path:)``.
    ///   - schema: any name except `main` and `temp`.
    ///   - key: the key of the file. `nil` means a plaintext database, which must already exist if this database has a
    ///     key: no key is inherited, and no plaintext file is created silently. To use the key of this database, pass
    ///     `configuration.key`.
    /// - Throws: the same errors as ``openVerified()``, and an error within a transaction. Nothing is attached then.
    public func attach(_ path: String, as schema: String, key: Key? = nil) throws(DatabaseError) {
        try recording { () throws(DatabaseError) in
            let connection = try openConnection()
            let attachment = StoreAttachment(
                connection: connection,
                path: path,
                schema: schema,
                key: key,
                mainHasKey: configuration.keyOrigin != nil,
                createsFile: configuration.createsFile && !configuration.isReadOnly,
                busyTimeout: configuration.busyTimeout.seconds,
                warn: configuration.tell
            )
            try attachment.attach()
        }
    }

    /// Detaches a file. https://www.sqlite.org/lang_detach.html
    /// - Throws: ``DatabaseError`` if no file is attached under that name, or if a statement or transaction still uses
    ///   it.
    public func detach(_ schema: String) throws(DatabaseError) {
        try recording { () throws(DatabaseError) in
            try openConnection().run("DETACH \(schema.quotedIdentifier)")
        }
    }
}
