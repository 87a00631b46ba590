internal import CSealedDBSystem

/// The database engine in this process, and whether it can be trusted with keys.
///
/// ```swift
/// let engine = EngineInfo.current()
/// guard engine.isEncrypting else { fatalError("\(engine.checks.filter { !$0.passed })") }
/// ```
public struct EngineInfo: Sendable, Codable, Hashable {
    /// A check of the engine that is made before the first key of the process is used.
    public struct Check: Sendable, Codable, Hashable {
        /// What was looked at: `codec`, `version`, `object` or `cipher_version`.
        public let name: String
        /// Whether it is as it must be. If false, every key is refused with ``DatabaseError/Reason/wrongEngine``.
        public let passed: Bool
        /// What was found, for people to read.
        public let detail: String
    }

    /// Version of SealedDB, which is also that of the command and of its packages.
    public static let version = "0.1.0"

    /// The engine traits that this build was made with: `SQLCipher`, `PlainSQLite`, or both. With both, SQLCipher is the
    /// engine, and libsqlite3 is not linked.
    public static var enabledTraits: [String] { Engine.enabledTraits }

    /// Whether stores with a key can be opened: the build has a codec, and all ``checks`` passed. False in the plain build,
    /// and where another SQLite came before SQLCipher in the process.
    public let isEncrypting: Bool
    /// Version of the SQLite inside the engine, such as `3.46.1`.
    public let sqliteVersion: String
    /// The check-in that this SQLite was made from: a date and a hash.
    public let sourceID: String
    /// Version of SQLCipher, such as `4.6.1 community`; `nil` if ``isEncrypting`` is false, or it did not answer.
    public let cipherVersion: String?
    /// The library that SQLCipher encrypts with, such as `openssl`; `nil` as for ``cipherVersion``.
    public let cipherProvider: String?
    /// Version of that library; `nil` as for ``cipherVersion``.
    public let cipherProviderVersion: String?
    /// The options that the engine was compiled with, without their `SQLITE_`.
    public let compileOptions: [String]
    /// The checks of the engine, in their order. Empty in the plain build.
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

    /// Collects the information. Values that cannot be read are `nil`. It may be called by any thread; the checks are made
    /// once for the process.
    public static func current() -> EngineInfo {
        let checks = Engine.checks.map { Check(name: $0.name, passed: $0.passed, detail: $0.detail) }
        let isTrusted = Engine.isEncrypting && checks.allSatisfy(\.passed)
        // What cannot be read is reported as `nil`.
        let connection = isTrusted ? try? StoreOpening(path: nil, key: .random()).open() : nil
        defer { connection?.close() }
        let contextsProblem = Engine.pageWatchProblem ?? PageContexts.problem
        let limit = sealeddb_memory_lock_limit()
        return EngineInfo(
            isEncrypting: isTrusted,
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
