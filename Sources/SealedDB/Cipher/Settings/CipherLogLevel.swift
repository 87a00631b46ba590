/// How much SQLCipher tells of its own work. <https://www.zetetic.net/sqlcipher/sqlcipher-api/#cipher_log_level>
public enum CipherLogLevel: UInt, Sendable, CaseIterable {
    case none
    case error
    case warn
    case info
    /// Not to be had: see ``Database/enableCipherLogging(_:)``.
    case debug
    /// Not to be had: see ``Database/enableCipherLogging(_:)``.
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
