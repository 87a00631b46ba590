import SealedDB

/// The other side of an export: one session of PostgreSQL.
protocol ExportTarget: AnyObject {
    /// User, host, port and database, without what is secret.
    var name: String { get }

    /// Executes one statement or several, and returns the rows of the last one as text.
    @discardableResult
    func execute(_ sql: String) throws -> [[String?]]

    /// Executes COPY … FROM STDIN with the bytes that `body` sends.
    func copyIn(_ sql: String, _ body: (_ send: (UnsafeRawBufferPointer) throws -> Void) throws -> Void) throws

    /// Executes COPY … TO STDOUT, and calls `body` with what comes, in parts of any size.
    func copyOut(_ sql: String, _ body: (UnsafeRawBufferPointer) throws -> Void) throws

    /// Executes COMMIT, which no signal stops.
    func commit() throws

    /// Rolls back what is not committed, and ends the session.
    func close()
}

/// How an export connects.
struct ExportAddress {
    /// A URL, or libpq's other form: https://www.postgresql.org/docs/15/libpq-connect.html#LIBPQ-CONNSTRING
    let text: String
    let allowsUnencrypted: Bool
}

/// The classes of PostgreSQL's errors, as exit codes. https://www.postgresql.org/docs/15/errcodes-appendix.html
enum ServerError {
    static func status(_ state: String) -> ExitStatus {
        switch state {
        case "53100": .inputOutput
        case "42501", "42P06", "42P07", "42710", "25006", "3F000": .cannotCreate
        case "55P03", "40001", "40P01", "55006": .busy
        case "57014": SignalWatch.wasInterrupted ? .interrupted : .unavailable
        case _ where state.begins(with: "08") || state.begins(with: "28") || state.begins(with: "3D"): .unavailable
        case _ where state.begins(with: "53") || state.begins(with: "57"): .unavailable
        case _ where state.begins(with: "22") || state.begins(with: "23") || state.begins(with: "54"): .data
        case _ where state.begins(with: "58"): .inputOutput
        default: .software
        }
    }

    /// - Parameter message: the primary one. Details and context have values of rows, and are never asked for.
    static func failure(_ state: String, _ message: String) -> Failure {
        let status = status(state)
        if status == .interrupted { return Failure(.interrupted, "Interrupted.") }
        // Those of this class may show a part of the value.
        let text = state.begins(with: "22") ? "it rejects a value" : message
        return Failure(status, "PostgreSQL: \(text) (SQLSTATE \(state)).")
    }
}

/// Ends long work at the next step after a signal.
enum ExportInterruption {
    static func check() throws(Failure) {
        if SignalWatch.wasInterrupted { throw Failure(.interrupted, "Interrupted.") }
    }
}
