extension Database {
    /// Runs a block of a caller, who may stop it.
    func supervised<T>(_ scope: Supervision.Scope, stop: StopFlag?, _ block: () throws -> T) throws -> T {
        supervision.scope = scope
        supervision.stop = stop
        supervision.isStoppable = true
        defer {
            supervision.isStoppable = false
            supervision.stop = nil
            supervision.scope = .block
            supervision.isShared = false
            if scope != .block { endUses() }
        }
        if supervision.isStopped { throw DatabaseError.stopped }
        guard scope != .block else { return try block() }
        let result = try noticingFailures {
            let result = try block()
            // Their end can fail as well.
            endUses()
            return result
        }
        // Its caller does not want it any more, and is told that nothing of it is kept.
        if scope == .writing, supervision.isStopped { throw DatabaseError.stopped }
        return result
    }

    /// Ends the result sets and blobs that a block has left open.
    func endUses() {
        closeOpenResultSets()
        connection?.endBlobs()
    }

    /// Ends what a block without a transaction of its own has left open, which commits what was written that way.
    func endUsesWithError() throws(DatabaseError) {
        endUses()
        if let failure = connection?.takeUnnoticedFailure() { throw recorded(failure) }
    }

    /// Runs a block of `read` in a transaction that sees one state of the store. The supervision refuses writes: the
    /// pragma `query_only`, which readers of a pool have in addition, would make SQLite prepare all statements anew each
    /// time it is set.
    func snapshot<T>(stop: StopFlag?, _ block: (Database) throws -> T) throws -> T {
        try recording { () throws(DatabaseError) in try openConnection().run("BEGIN DEFERRED") }
        defer { endSnapshot() }
        return try supervised(.reading, stop: stop) { try block(self) }
    }

    /// Ends a transaction that only reads.
    func endSnapshot() {
        guard isInTransaction, let connection else { return }
        // What cannot be ended is, by closing. The next block opens it again.
        if (try? connection.run("COMMIT")) == nil { close() }
    }

    /// Closes if somebody has put another file in place of the store, as a rotation from outside does, so that the next
    /// opening finds that file, with its key read anew. What is written to a file that has no name any more is lost.
    func closeIfReplaced() throws(DatabaseError) {
        guard let connection, isOfFile, let path = databasePath, !isInTransaction,
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
        let lost = Result { () throws(DatabaseError) in try connection.requireNothingTemporary() }
        // What cannot be asked for any more is not carried over; the file that it was asked of is gone.
        if (try? closeForReopening()) == nil { close() }
        // Observers saw the former file.
        additions.hooks.changes.everythingChanged()
        if case .failure(let error) = lost {
            throw error.adding(
                context: """
                    Somebody else put another file in the place of \(path), so the connection was closed, with what ends with \
                    it. The block was not called; the next one finds the new file
                    """
            )
        }
    }

    /// Closes after an error that shows the connection or its file to be unfit for further blocks, which open it again.
    ///
    /// The error's code alone does not: it may be that of another store that the block has used. And it stays open where
    /// something would be lost with it: a database that has no file, temporary objects, and attached databases.
    func closeIfUnusable(after error: any Error) {
        guard let error = error as? DatabaseError, DatabaseError.isUnfitness(error.extendedCode),
            let connection, connection.isUnfit, isOfFile, let path = databasePath, FileSystem.exists(path),
            !connection.mayHaveTemporaries
        else { return }
        // The caller has an error. What cannot be asked for any more is not carried over.
        if (try? closeForReopening()) == nil { close() }
    }

    /// Runs a block that may have transactions of its own. One that it leaves open would take in what others do next, who
    /// would be told success for what is not committed: it is rolled back, and the block's caller is told.
    func endingTransaction<T>(_ block: () throws -> T) throws -> T {
        do {
            let result = try block()
            try endUsesWithError()
            guard isInTransaction else { return result }
            throw recorded(.transactionLeftOpen)
        } catch {
            if isInTransaction {
                // What cannot be rolled back is, by closing.
                if connection?.rollBack() == false { close() }
            }
            throw error
        }
    }
}

extension DatabaseError {
    static let transactionLeftOpen = DatabaseError(
        extendedCode: SQLITE_MISUSE,
        reason: .misuse,
        message: """
            The block left a transaction open, which was rolled back: nothing of it is kept. End it in the block that \
            begins it, or use write or inTransaction.
            """
    )
}
