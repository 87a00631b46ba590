import Foundation

extension Database {
    /// The message of the last failure; "not an error" if the last call succeeded.
    public func lastErrorMessage() -> String { recordedError?.message ?? "not an error" }

    /// SQLite's primary code of the last failure; 0 if the last call succeeded.
    public func lastErrorCode() -> Int32 { recordedError?.code ?? SQLITE_OK }

    /// SQLite's extended code of the last failure; 0 if the last call succeeded.
    public func lastExtendedErrorCode() -> Int32 { recordedError?.extendedCode ?? SQLITE_OK }

    /// Whether the last call failed.
    public func hadError() -> Bool { recordedError != nil }

    /// The last failure as a ``DatabaseError``; one with code 0 if the last call succeeded.
    public func lastError() -> any Error {
        recordedError ?? DatabaseError(extendedCode: SQLITE_OK, message: "not an error")
    }

    /// Runs a call of the throwing kind, and remembers its outcome.
    func recording<T>(_ body: () throws(DatabaseError) -> T) throws(DatabaseError) -> T {
        do throws(DatabaseError) {
            let result = try body()
            recordSuccess()
            return result
        } catch {
            throw recorded(error)
        }
    }

    /// Remembers an error, and says what more is known of it.
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

    /// Runs a call of the kind that answers with a Bool, and remembers its outcome.
    func succeeds(_ body: () throws(DatabaseError) -> Void) -> Bool {
        (try? recording(body)) != nil  // Recorded.
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
        // If not even the header can be read, the error that there is stays.
        guard error.code == SQLITE_NOTADB, error.reason == .sqlite, configuration.keyOrigin == nil, let connection,
            let header = try? connection.mainFileHeader()
        else { return error }
        return StoreHeader.diagnoseWithoutKey(error, header: header)
    }

    func openConnection() throws(DatabaseError) -> Connection {
        guard let connection else { throw .notOpen }
        return connection
    }
}
