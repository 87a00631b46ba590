import Foundation

extension Database {
    /// The message of the last failure; "not an error" if the last call succeeded.
    public func lastErrorMessage() -> String { shownError()?.message ?? "not an error" }

    /// SQLite's primary code of the last failure; 0 if the last call succeeded.
    public func lastErrorCode() -> Int32 { shownError()?.code ?? SQLITE_OK }

    /// SQLite's extended code of the last failure; 0 if the last call succeeded.
    public func lastExtendedErrorCode() -> Int32 { shownError()?.extendedCode ?? SQLITE_OK }

    /// Whether the last call failed. Also true if a result set or blob was released since the last check, and its
    /// changes could not be committed.
    public func hadError() -> Bool { shownError() != nil }

    /// The last failure as a ``DatabaseError``. If ``hadError()`` is false, its code is 0.
    public func lastError() -> any Error {
        shownError() ?? DatabaseError(extendedCode: SQLITE_OK, message: "not an error")
    }

    /// Returns the last failure for the caller, who has then noticed it.
    private func shownError() -> DatabaseError? {
        requireTurn("Database.lastError")
        if let failure = connection?.takeUnnoticedFailure(), recordedError == nil { record(failure) }
        if recordedError != nil { ignoredError = nil }
        return recordedError
    }

    /// Runs a throwing call, and records its outcome.
    func recording<T>(
        _ call: StaticString = #function,
        _ body: () throws(DatabaseError) -> T
    ) throws(DatabaseError) -> T {
        requireTurn(call)
        do throws(DatabaseError) {
            let result = try body()
            recordSuccess()
            return result
        } catch {
            throw recorded(error)
        }
    }

    /// Records an error, and returns it with what else is known about it.
    @inline(never)
    func recorded(_ error: DatabaseError) -> DatabaseError {
        let error = clarified(error)
        record(error)
        if logsErrors {
            configuration.logger?.error(
                "database error",
                metadata: ["code": "\(error.extendedCode)", "reason": "\(error.reason)"]
            )
        }
        if crashOnErrors { fatalError("crashOnErrors is set, and a call failed: \(error)") }
        return error
    }

    /// Runs a call that returns a Bool, and records its outcome.
    func succeeds(_ call: StaticString = #function, _ body: () throws(DatabaseError) -> Void) -> Bool {
        unlessFailed { () throws(DatabaseError) in try recording(call, body) } != nil
    }

    /// Runs a call that records its own outcome, for a caller that reports failures only by its result. Returns `nil`
    /// on failure.
    func unlessFailed<T>(_ body: () throws(DatabaseError) -> T) -> T? {
        do throws(DatabaseError) {
            return try body()
        } catch {
            ignore(error)
            return nil
        }
    }

    /// Keeps a failure that the caller may not notice. The first such failure is kept until it is noticed.
    func ignore(_ error: DatabaseError) {
        if ignoredError == nil { ignoredError = error }
    }

    /// Takes the first failure since the last time that was neither thrown nor noticed. It now counts as noticed.
    func takeUnnoticedFailure() -> DatabaseError? {
        let (ignored, ended) = (ignoredError, connection?.takeUnnoticedFailure())
        ignoredError = nil
        return ignored ?? ended
    }

    /// Runs a block that succeeds or fails as a whole, and throws if one of its calls failed unnoticed.
    /// - Parameter always: whether to throw regardless of the configuration, because the block's work is recorded as
    ///   done.
    func noticingFailures<T>(always: Bool = false, _ block: () throws -> T) throws -> T {
        let outer = takeUnnoticedFailure()
        defer {
            // Failures that were undone or thrown need no further notice.
            _ = takeUnnoticedFailure()
            if let outer { ignore(outer) }
        }
        let result = try block()
        if let failure = takeUnnoticedFailure(), always || configuration.failsBlocksAfterIgnoredErrors {
            throw failure.ignored
        }
        return result
    }

    /// Runs one of FMDB's own blocks. Its failures count for the surrounding block, unless they are undone.
    func leavingFailures<T>(_ block: () throws -> T) rethrows -> T {
        let outer = takeUnnoticedFailure()
        do {
            let result = try block()
            if let outer { ignoredError = outer }
            return result
        } catch {
            ignoredError = outer
            throw error
        }
    }

    private func clarified(_ error: DatabaseError) -> DatabaseError {
        if error.code == SQLITE_LOCKED, hasOpenResultSets {
            return error.adding(context: "A result set of this connection is still open; close it first")
        }
        if error.code == SQLITE_CORRUPT, error.reason == .damaged, configuration.keyOrigin != nil, error.sql != nil {
            return error.adding(
                context: "The store is damaged, and the statement did nothing. `sealdb verify` lists the pages"
            )
        }
        guard error.code == SQLITE_NOTADB, error.reason == .sqlite, let connection else { return error }
        if fittingKey != nil, connection.hasRefusedFirstPage {
            guard error.isOfAttaching else { return error.ofChangedFirstPage }
            // That is another store's, which is not attached.
            connection.hasRefusedFirstPage = false
        }
        // If not even the header can be read, the present error is kept.
        guard configuration.keyOrigin == nil, let header = try? connection.mainFileHeader() else { return error }
        return StoreHeader.diagnoseWithoutKey(error, header: header)
    }

    func openConnection() throws(DatabaseError) -> Connection {
        guard let connection else { throw .notOpen }
        return connection
    }
}

extension DatabaseError {
    /// What SQLite calls no database, after the key has opened it.
    fileprivate var ofChangedFirstPage: DatabaseError {
        DatabaseError(
            extendedCode: extendedCode,
            reason: .damaged,
            message: """
                The first page of the store, or of an attached one, is not as it was written, or is that of another key, which \
                somebody has given it in place since it was opened here. Nothing that was read is given out, and the statement \
                did nothing. Look at it with `sealdb verify`. If it is damaged, restore a backup; if it has another key, open \
                it anew with that one.
                """,
            sql: sql,
            offset: offset
        )
    }

    /// Whether its statement attaches a file.
    fileprivate var isOfAttaching: Bool {
        guard var sql else { return false }
        return sql.withUTF8 { SQLStatementText($0).attachesFile }
    }

    /// The same error, thrown by a block that did not notice it.
    fileprivate var ignored: DatabaseError {
        adding(
            context: """
                A call in the block failed and nobody looked at its failure, so the block failed as a whole and nothing \
                of it is kept. Use the call's throwing form, or look at lastError() after it
                """
        )
    }
}
