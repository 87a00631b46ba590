internal import CSealedDBSystem

/// The database engine in this process, and whether it can be trusted with keys.
public struct EngineInfo: Sendable, Codable, Hashable {
    /// A check of the engine that is made before the first key of the process is used.
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
    /// Whether every call that reads a page with a wrong authentication code fails with
    /// ``DatabaseError/Reason/damaged``. If false, only SQLCipher checks: it can return zeros for the last page that a
    /// statement reads, without an error.
    public let noticesDamagedPages: Bool
    /// Why ``noticesDamagedPages`` is false; `nil` if it is true.
    public let damagedPagesDetail: String?
    /// Whether each connection keeps OpenSSL's contexts, with the keys set up in them, from page to page. It makes reading
    /// and writing pages faster; nothing else depends on it. If false, SQLCipher sets them up anew for each page.
    public let keepsPageContexts: Bool
    /// Why ``keepsPageContexts`` is false; `nil` if it is true.
    public let pageContextsDetail: String?
    /// Bytes that the process may lock in memory (`RLIMIT_MEMLOCK`); `nil` if there is no limit. Each key takes two
    /// pages of memory, and two more while it is used.
    public let memoryLockLimit: Int64?

    /// Collects the information. Values that cannot be read are `nil`.
    public static func current() -> EngineInfo {
        let checks = Engine.checks.map { Check(name: $0.name, passed: $0.passed, detail: $0.detail) }
        let isTrusted = Engine.isEncrypting && checks.allSatisfy(\.passed)
        // What cannot be read is reported as `nil`.
        let connection = isTrusted ? try? StoreOpening(path: nil, key: .random()).open() : nil
        defer { connection?.close() }
        let contextsProblem = Engine.pageWatchProblem ?? PageContexts.problem
        let limit = sealeddb_memory_lock_limit()
        return EngineInfo(
            isEncrypting: Engine.isEncrypting,
            sqliteVersion: Engine.sqliteVersion,
            sourceID: Engine.sourceID,
            // As above: `nil` if it cannot be read.
            cipherVersion: (try? connection?.text("PRAGMA cipher_version")) ?? nil,
            cipherProvider: (try? connection?.text("PRAGMA cipher_provider")) ?? nil,
            cipherProviderVersion: (try? connection?.text("PRAGMA cipher_provider_version")) ?? nil,
            compileOptions: Engine.compileOptions,
            checks: checks,
            noticesDamagedPages: isTrusted && Engine.pageWatchProblem == nil,
            damagedPagesDetail: Engine.pageWatchProblem,
            keepsPageContexts: isTrusted && contextsProblem == nil,
            pageContextsDetail: contextsProblem,
            memoryLockLimit: limit < 0 ? nil : limit
        )
    }
}
