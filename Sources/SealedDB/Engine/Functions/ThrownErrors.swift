/// Errors of the caller's closures, on their way from the closure to the call that made SQLite run it.
///
/// No Swift error can pass through C. It waits here under a result code, which SQLite hands through, and whoever meets
/// that code takes it.
struct ThrownErrors {
    private struct Waiting {
        let code: Int32
        let error: any Error
        /// What threw it, and what that means for the data.
        let message: String
    }

    private var waiting: [Waiting] = []
    private var count: Int32 = 0

    /// Keeps the error, and returns the code to fail with: `SQLITE_ERROR` with extended bits that nobody else uses.
    mutating func keep(_ error: any Error, message: String) -> Int32 {
        count = (count + 1) & 0x3f_ffff
        let code = SQLITE_ERROR | (0x40_0000 | count) << 8
        keep(error, message: message, under: code)
        return code
    }

    /// Keeps the error under a code that SQLite chooses.
    mutating func keep(_ error: any Error, message: String, under code: Int32) {
        waiting.removeAll { $0.code == code }
        // What is never asked for, such as the error of an aggregate that only ended because another one failed.
        if waiting.count == 8 { waiting.removeFirst() }
        waiting.append(Waiting(code: code, error: error, message: message))
    }

    /// A thrown ``DatabaseError`` as it is, any other error carried by one.
    mutating func take(_ code: Int32, sql: String?) -> DatabaseError? {
        guard let index = waiting.firstIndex(where: { $0.code == code }) else { return nil }
        let found = waiting.remove(at: index)
        return .thrown(found.error, message: found.message, code: code, sql: sql)
    }
}

extension DatabaseError {
    /// A thrown ``DatabaseError`` as it is, any other error carried by one.
    static func thrown(
        _ error: any Error,
        message: String,
        code: Int32,
        reason: Reason = .closureFailed,
        sql: String? = nil
    ) -> DatabaseError {
        if let error = error as? DatabaseError { return error }
        return DatabaseError(
            // The bits that only mark the way are left out.
            extendedCode: code & 0x4000_0000 == 0 ? code : code & 0xff,
            reason: reason,
            message: "\(message) It threw an error of type \(type(of: error)); see underlyingError.",
            sql: sql,
            underlyingError: error
        )
    }
}
