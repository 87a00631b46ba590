extension Database {
    /// Runs a block of a caller, who may stop it.
    func supervised<T>(_ scope: Supervision.Scope, stop: StopFlag?, _ block: () throws -> T) throws -> T {
        guard let supervision else { return try block() }
        supervision.scope = scope
        supervision.stop = stop
        supervision.isStoppable = true
        defer {
            supervision.isStoppable = false
            supervision.stop = nil
            supervision.scope = .block
            supervision.isShared = false
            if scope != .block {
                closeOpenResultSets()
                connection?.endBlobs()
            }
        }
        if supervision.isStopped { throw DatabaseError.stopped }
        return try block()
    }

    /// Runs a block of `read` in a transaction that sees one state of the store. The supervision refuses writes: the
    /// pragma `query_only`, which readers of a pool have in addition, would make SQLite prepare all statements anew each
    /// time it is set.
    func snapshot<T>(stop: StopFlag?, _ block: (Database) throws -> T) throws -> T {
        try recording { () throws(DatabaseError) in try openConnection().run("BEGIN DEFERRED") }
        defer { endSnapshot() }
        return try supervised(.reading, stop: stop) { try block(self) }
    }

    private func endSnapshot() {
        guard isInTransaction, let connection else { return }
        // What cannot be ended is, by closing. The next block opens it again.
        if (try? connection.run("COMMIT")) == nil { close() }
    }

    /// Closes if somebody has put another file in place of the store, as a rotation from outside does, so that the next
    /// opening finds that file, with its key read anew. What is written to a file that has no name any more is lost.
    func closeIfReplaced() throws(DatabaseError) {
        guard let connection, let path = databasePath, !path.isEmpty, path != ":memory:", !isInTransaction,
            try connection.mainFileHasMoved()
        else { return }
        guard FileSystem.exists(path) else {
            throw DatabaseError(
                extendedCode: SQLITE_READONLY_DBMOVED,
                reason: .noSuchFile,
                message:
                    "\(path) was removed or renamed while it was open. The block was not called; put the file back."
            )
        }
        close()
    }

    /// Rolls back a transaction that the body begins and does not end.
    func endingTransaction<T>(_ body: () throws -> T) throws -> T {
        let wasInTransaction = isInTransaction
        defer { if isInTransaction, !wasInTransaction { rollback() } }
        return try body()
    }
}
