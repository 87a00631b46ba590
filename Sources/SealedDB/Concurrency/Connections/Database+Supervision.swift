import Foundation

extension Database {
    /// Runs a caller's block, which `stop` or a shutdown can stop.
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
        supervision.refusedRollback = nil
        let result = try noticingFailures {
            let result = try block()
            // Ending result sets and blobs can fail too. Such a failure counts as one of the block.
            endUses()
            return result
        }
        // As in `inTransaction`: what the block wanted to undo is not kept, whether or not it has looked at the refusal.
        if scope == .writing, let refusal = supervision.refusedRollback { throw refusal }
        // The caller no longer wants the result. This error undoes the block, and tells the caller that nothing of it
        // is kept.
        if scope == .writing, supervision.isStopped { throw DatabaseError.stopped }
        return result
    }

    /// Ends the result sets and blobs that a block has left open.
    func endUses() {
        closeOpenResultSets()
        connection?.endBlobs()
    }

    /// Ends the result sets and blobs that a block without a transaction of the library has left open. Outside a
    /// transaction, this commits what they have written.
    /// - Throws: ``DatabaseError`` if that fails, or if ending an earlier one failed unnoticed.
    func endUsesWithError() throws(DatabaseError) {
        endUses()
        if let failure = connection?.takeUnnoticedFailure() { throw recorded(failure) }
    }

    /// Runs a block of `read` in a transaction that sees one state of the store. The supervision refuses writes.
    /// `PRAGMA query_only` is not set here, because SQLite would then prepare all statements again each time. Only the
    /// readers of a pool have it set in addition, from their opening on.
    func snapshot<T>(stop: StopFlag?, _ block: (Database) throws -> T) throws -> T {
        try recording { () throws(DatabaseError) in try openConnection().run("BEGIN DEFERRED") }
        defer { endSnapshot() }
        return try supervised(.reading, stop: stop) { try block(self) }
    }

    /// Ends a transaction that only reads.
    func endSnapshot() {
        guard isInTransaction, let connection else { return }
        // If COMMIT fails, closing ends the transaction. The next block opens the connection again.
        if (try? connection.run("COMMIT")) == nil { close() }
    }

    /// Closes the database if another file was put in the place of the store, as a rotation from outside does. The next
    /// opening then finds the new file, and reads its key anew. Otherwise blocks would write to a file that has no name
    /// any more, and their changes would be lost.
    func closeIfReplaced() throws(DatabaseError) {
        guard let connection, isOfFile, let path = filePath, !isInTransaction,
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
        try requireNoLogOfFormerFile(path)
        let lost = Result { () throws(DatabaseError) in try connection.requireNothingTemporary() }
        // If the settings cannot be read any more, they are not carried over: this connection's file is gone.
        if (try? closeForReopening()) == nil { close() }
        // What observers have read came from the former file.
        additions.hooks.changes.everythingChanged()
        supervision.whenReplaced?()
        if case .failure(let error) = lost {
            throw error.adding(
                context: """
                    Somebody else put another file in the place of \(path), so the connection was closed, with what ends with \
                    it. The block was not called; the next one finds the new file
                    """
            )
        }
    }

    /// Throws if the log beside the path is the one that was written for the file which this connection has open. SQLite would
    /// take it for that of the new file.
    private func requireNoLogOfFormerFile(_ path: String) throws(DatabaseError) {
        let log = path + "-wal"
        guard let status = try FileSystem.statusIfPresent(log), status.st_size > 0,
            try OpenLogs.use(ofLog: status, nil, for: FileSystem.status(path)) == false
        else { return }
        throw DatabaseError(
            extendedCode: SQLITE_READONLY_DBMOVED,
            reason: .damaged,
            message: """
                Somebody put another file in the place of \(path) while it was open, and \(log) is still the log of the former \
                file. SQLite would write its pages into the new one. The block was not called. Keep a copy of the new file and of the \
                log. If the new file is whole without that log, as a backup is, move the log away; otherwise put the former \
                file back.
                """
        )
    }

    /// Closes the database after an error which shows that the connection or its file is not fit for further blocks.
    /// The next block opens it again.
    ///
    /// The error's code alone does not show this, because the error may come from another store that the block has
    /// used. The database stays open if closing would lose something: a database that has no file, temporary objects,
    /// or attached databases.
    func closeIfUnusable(after error: any Error) {
        guard let error = error as? DatabaseError, DatabaseError.isUnfitness(error.extendedCode),
            let connection, connection.isUnfit, isOfFile, let path = filePath, FileSystem.exists(path),
            !connection.mayHaveTemporaries
        else { return }
        // The caller already gets an error. If the settings cannot be read any more, they are not carried over.
        if (try? closeForReopening()) == nil { close() }
    }

    /// Runs a block that may begin transactions. If the block leaves one open, it is rolled back, and the caller gets
    /// an error. Otherwise later blocks would write in that transaction, and their callers would be told of success
    /// although nothing is committed.
    func endingTransaction<T>(_ block: () throws -> T) throws -> T {
        do {
            let result = try block()
            try endUsesWithError()
            guard isInTransaction else { return result }
            throw recorded(.transactionLeftOpen)
        } catch {
            rollBackWhatIsOpen()
            // How its result sets end is this block's affair, too, and its own error stands for it: left to itself, it would be
            // thrown to the next block, whose work is stored.
            endUses()
            _ = connection?.takeUnnoticedFailure()
            throw error
        }
    }

    /// Rolls back a transaction that was left open.
    func rollBackWhatIsOpen() {
        guard isInTransaction else { return }
        // If ROLLBACK fails, closing the connection rolls back.
        if connection?.rollBack() == false { close() }
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
