internal import CSealedDBSystem

/// The engine in this process, and whether it may be trusted with keys.
public struct EngineInfo: Sendable, Codable, Hashable {
    /// A start-up check, made before the first key of the process.
    public struct Check: Sendable, Codable, Hashable {
        public let name: String
        public let passed: Bool
        public let detail: String
    }

    /// Version of SealedDB.
    public static let version = "0.1.0"

    /// False in the plain build.
    public let isEncrypting: Bool
    public let sqliteVersion: String
    public let sourceID: String
    public let cipherVersion: String?
    public let cipherProvider: String?
    public let cipherProviderVersion: String?
    public let compileOptions: [String]
    /// Empty in the plain build.
    public let checks: [Check]
    /// Whether every call that reads a page with a wrong authentication code fails, with
    /// ``DatabaseError/Reason/damaged``. If not, SQLCipher alone looks: it can give out the last page that a statement
    /// reads as zeros, without an error.
    public let noticesDamagedPages: Bool
    /// Why not; `nil` if it does.
    public let damagedPagesDetail: String?
    /// Bytes that the process may lock in memory (`RLIMIT_MEMLOCK`); `nil` for no limit. Each key takes two pages, and two more while in use.
    public let memoryLockLimit: Int64?

    public static func current() -> EngineInfo {
        let checks = Engine.checks.map { Check(name: $0.name, passed: $0.passed, detail: $0.detail) }
        let isTrusted = Engine.isEncrypting && checks.allSatisfy(\.passed)
        // What cannot be asked is not known: `nil`.
        let connection = isTrusted ? try? StoreOpening(path: nil, key: .random()).open() : nil
        defer { connection?.close() }
        let limit = sealeddb_memory_lock_limit()
        return EngineInfo(
            isEncrypting: Engine.isEncrypting,
            sqliteVersion: Engine.sqliteVersion,
            sourceID: Engine.sourceID,
            // As above.
            cipherVersion: (try? connection?.text("PRAGMA cipher_version")) ?? nil,
            cipherProvider: (try? connection?.text("PRAGMA cipher_provider")) ?? nil,
            cipherProviderVersion: (try? connection?.text("PRAGMA cipher_provider_version")) ?? nil,
            compileOptions: Engine.compileOptions,
            checks: checks,
            noticesDamagedPages: isTrusted && Engine.pageWatchProblem == nil,
            damagedPagesDetail: Engine.pageWatchProblem,
            memoryLockLimit: limit < 0 ? nil : limit
        )
    }
}
