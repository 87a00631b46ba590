/// How much SQLCipher logs about its own work. <https://www.zetetic.net/sqlcipher/sqlcipher-api/#cipher_log_level>
public enum CipherLogLevel: UInt, Sendable, CaseIterable {
    /// Nothing is logged.
    case none
    /// Errors.
    case error
    /// Errors and warnings.
    case warn
    /// Errors, warnings, and what is done.
    case info
    /// Not available: see ``Database/enableCipherLogging(_:)``.
    case debug
    /// Not available: see ``Database/enableCipherLogging(_:)``.
    case trace

    var pragmaValue: String {
        switch self {
        case .none: "NONE"
        case .error: "ERROR"
        case .warn: "WARN"
        case .info: "INFO"
        case .debug: "DEBUG"
        case .trace: "TRACE"
        }
    }
}
