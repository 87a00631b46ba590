/// Errors that the caller's closures threw, on their way to the call that made SQLite run the closure.
///
/// A Swift error cannot pass through C. It is stored here under a result code, which SQLite passes on. Whoever receives
/// that code takes the error.
struct ThrownErrors {
    private struct Waiting {
        let code: Int32
        let error: any Error
        /// What threw the error, and what that means for the data.
        let message: String
    }

    private var waiting: [Waiting] = []
    private var count: Int32 = 0

    /// Stores the error. Returns the code to fail with: `SQLITE_ERROR` with extended bits that nobody else uses.
    mutating func keep(_ error: any Error, message: String) -> Int32 {
        count = (count + 1) & 0x3f_ffff
        let code = SQLITE_ERROR | (0x40_0000 | count) << 8
        keep(error, message: message, under: code)
        return code
    }

    /// Stores the error under a code that SQLite chooses.
    mutating func keep(_ error: any Error, message: String, under code: Int32) {
        waiting.removeAll { $0.code == code }
        // Some errors are never taken, such as that of an aggregate that only ended because another one failed.
        if waiting.count == 8 { waiting.removeFirst() }
        waiting.append(Waiting(code: code, error: error, message: message))
    }

    /// Takes the error for a code. A ``DatabaseError`` is returned as it is; any other error is wrapped in one.
    mutating func take(_ code: Int32, sql: String?) -> DatabaseError? {
        guard let index = waiting.firstIndex(where: { $0.code == code }) else { return nil }
        let found = waiting.remove(at: index)
        return .thrown(found.error, message: found.message, code: code, sql: sql)
    }
}

extension DatabaseError {
    /// Returns a thrown ``DatabaseError`` as it is; wraps any other error in one.
    static func thrown(
        _ error: any Error,
        message: String,
        code: Int32,
        reason: Reason = .closureFailed,
        sql: String? = nil
    ) -> DatabaseError {
        if let error = error as? DatabaseError { return error }
        return DatabaseError(
            // Removes the bits that only identify the stored error.
            extendedCode: code & 0x4000_0000 == 0 ? code : code & 0xff,
            reason: reason,
            message: "\(message) It threw an error of type \(type(of: error)); see underlyingError.",
            sql: sql,
            underlyingError: error
        )
    }
}
