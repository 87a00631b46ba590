/// Further files on the same connection, for queries and transactions across them.
extension Database {
    /// Attaches a file under a name, so that its tables are `name.table`. https://www.sqlite.org/lang_attach.html
    ///
    /// A transaction over several files is atomic in rollback-journal modes alone. In WAL mode each file is committed by itself:
    /// if the second one fails, or the process ends in between, the first one's part is stored.
    ///
    /// The key is bound, never part of the SQL, and proved right. A store must have SQLCipher 4's settings; another one
    /// is migrated first (``StoreMigration``). Attached files are gone after ``close()``, and so after a rotation of the
    /// key.
    /// - Parameters:
    ///   - path: a file, created if it does not exist and ``Configuration/createsFile`` is true; `:memory:` and `""` as
    ///     in ``init(path:)``.
    ///   - schema: any name but `main` and `temp`.
    ///   - key: the file's own. `nil` means a plaintext database, which must exist if this database has a key:
    ///     neither is a key inherited nor a plaintext file created without a word. To share this one's key, pass
    ///     `configuration.key`.
    /// - Throws: ``DatabaseError`` as ``openVerified()``; nothing is attached then. Also within a transaction.
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
                busyTimeout: configuration.busyTimeout
            )
            try attachment.attach()
        }
    }

    /// Detaches a file. https://www.sqlite.org/lang_detach.html
    /// - Throws: ``DatabaseError`` if there is none of that name, or a statement or transaction still uses it.
    public func detach(_ schema: String) throws(DatabaseError) {
        try recording { () throws(DatabaseError) in
            try openConnection().run("DETACH \(schema.quotedIdentifier)")
        }
    }
}
