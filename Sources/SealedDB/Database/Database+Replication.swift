/// Shipping the store of a queue or pool; see ``Replication``.
extension Database {
    /// Refuses what cannot be shipped, before anything is opened.
    func requireReplicable(flags: Int32, vfs: String?) throws(DatabaseError) {
        guard isShared else {
            throw .notReplicable(
                "A Database of its own does not ship its store. Open it with a DatabaseQueue, or run `sealdb replicate`."
            )
        }
        try Engine.requireCodec()
        guard isOfFile else {
            throw .notReplicable("A database in memory has no log that could be shipped. Give it a file.")
        }
        guard configuration.keyOrigin != nil else {
            throw .notReplicable("Only an encrypted store is shipped: what is in the repository must not be plaintext.")
        }
        guard flags & SQLITE_OPEN_READONLY == 0 else {
            throw .notReplicable(
                "A store that is opened read-only is not shipped: who writes to it ships it. Leave out the replication."
            )
        }
        guard configuration.journalMode == .wal else {
            throw .notReplicable(
                "Only what passes through the write-ahead log can be shipped. Set the journal mode WAL, or none."
            )
        }
        guard vfs == nil else {
            throw .notReplicable("A store that is opened through another VFS is not shipped. Leave out the VFS.")
        }
    }

    /// Tells the shipper that the store is open, and with which key.
    func followForShipping(_ connection: Connection) throws(DatabaseError) {
        guard let shipper, let key = fittingKey?.key, let path = connection.mainFilePath else { return }
        // Another process may have set the mode since it was asked for.
        guard try connection.text("PRAGMA main.journal_mode") == "wal" else {
            throw .notReplicable("The store is not in WAL mode, and nothing else can be shipped. Try again.")
        }
        try shipper.storeWasOpened(with: key, at: path)
    }

    /// Goes on shipping if the store is open, but was let go of meanwhile.
    func resumeShipping() throws(DatabaseError) {
        guard let shipper, !shipper.isFollowing, isOpen, let key = fittingKey?.key,
            let path = connection?.mainFilePath
        else { return }
        try shipper.storeWasOpened(with: key, at: path)
    }

    /// Has the shipper let go of the store, so that another file can be put in its place. The next opening goes on.
    ///
    /// What was committed is shipped before, as far as it can be in a short time: the callers of the store wait.
    func endShipping() throws(DatabaseError) {
        guard let shipper, shipper.isFollowing else { return }
        guard shipper.letGo(ships: !shipper.isFailing, within: Database.patienceOfShipping) else {
            // As soon as it has let go.
            goOnShipping()
            throw DatabaseError(
                extendedCode: SQLITE_BUSY,
                reason: .busy,
                message: """
                    The store is being shipped to \(shipper.replication.repository), which does not answer, so that it cannot be \
                    let go of. Nothing was changed. See what is wrong there, and try again.
                    """
            )
        }
    }

    /// Goes on after ``endShipping()``, if the store is open.
    func goOnShipping() {
        // The failure of a shipper that is required for opening is in its status, and the store stays open here.
        try? resumeShipping()
    }

    /// How many seconds the callers of a store wait for what is left to be shipped.
    private static let patienceOfShipping = 2.0
}

extension DatabaseError {
    fileprivate static func notReplicable(_ message: String) -> DatabaseError {
        DatabaseError(
            extendedCode: SQLITE_MISUSE,
            reason: .misuse,
            message: "The configuration has a replication. \(message) Nothing was opened."
        )
    }
}
