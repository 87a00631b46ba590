internal import CSealedDBSystem
internal import SQLiteEngine

/// The SQLite library in this process.
enum Engine {
    /// Whether this build has a codec.
    static let isEncrypting = sealeddb_has_codec != 0

    /// The engine traits of this build.
    static var enabledTraits: [String] { enabledEngineTraits }

    /// Configures SQLite. This happens once, before the first connection.
    static func start() {
        _ = configured
    }

    /// Whether URI filenames are off in the whole process. False if another part of the process used SQLite before;
    /// `Connection` then ensures itself that a path is not taken for a URI.
    static var areURIsOff: Bool { configured }

    private static let configured: Bool = {
        // If this fails, a process that ends while a thread ends may crash after its work is done. That is no reason to
        // refuse work.
        _ = sealeddb_skip_openssl_cleanup()
        let code = sealeddb_disable_uri_filenames()
        // Memory statistics take one mutex of the whole process for each allocation: two connections on two cores would
        // be slower than on one. SQLite recommends turning them off:
        // https://www.sqlite.org/compile.html#default_memstatus
        _ = sealeddb_disable_memory_statistics()
        sqlite3_initialize()
        return code == SQLITE_OK
    }()

    /// The start-up checks, made once per process, before its first key. If libsqlite3 came before libsqlcipher,
    /// `PRAGMA key` would do nothing, the file would be plaintext, and `sqlite3_key` would crash.
    static var checks: [EngineFacts.Check] { examination.checks }

    /// Why a damaged page may go unreported by the call that reads it; `nil` if every such call fails.
    static var pageWatchProblem: String? { examination.pageWatchProblem }

    private static let examination: (checks: [EngineFacts.Check], pageWatchProblem: String?) = {
        start()
        guard isEncrypting else { return ([], "this build has no encryption") }
        var version: String?
        let checks = facts.checks {
            version = keyedProbe()
            return version
        }
        guard checks.allSatisfy(\.passed), let version, let library = objectPath(sealeddb_address_of_key()) else {
            return (checks, "the engine is not one that can be used")
        }
        let isMemoryOrdinary = text("PRAGMA cipher_memory_security", probe) == "0"
        let problem = PageWatch.begin(
            library: library,
            cipherVersion: version,
            reasonAgainstContexts: PageContexts.reasonAgainst(hasMemorySecurity: !isMemoryOrdinary)
        )
        return (checks, problem)
    }()

    private static var facts: EngineFacts {
        EngineFacts(
            hasCodec: sqlite3_compileoption_used("HAS_CODEC") != 0,
            versionNumber: sqliteVersionNumber,
            sourceID: sourceID,
            oldestVersionNumber: sealeddb_oldest_version_number,
            objects: [
                ("open", objectPath(sealeddb_address_of_open())),
                ("prepare", objectPath(sealeddb_address_of_prepare())),
                ("step", objectPath(sealeddb_address_of_step())),
                ("key", objectPath(sealeddb_address_of_key())),
                ("compileoption_used", objectPath(sealeddb_address_of_compileoption_used())),
            ]
        )
    }

    /// Throws unless all start-up checks passed.
    static func requireCodec() throws(DatabaseError) {
        guard isEncrypting else {
            throw DatabaseError(
                extendedCode: SQLITE_MISUSE,
                reason: .unsupported,
                message: """
                    This build of SealedDB has no encryption (trait PlainSQLite), so it takes no key. Nothing was \
                    opened or written. Build with the trait SQLCipher, which is the default.
                    """
            )
        }
        let failed = checks.filter { !$0.passed }
        guard !failed.isEmpty else { return }
        throw DatabaseError(
            extendedCode: SQLITE_MISUSE,
            reason: .wrongEngine,
            message: """
                The SQLite library in this process is not a SQLCipher that this program can use: \
                \(failed.map { "\($0.name): \($0.detail)" }.joined(separator: "; ")). Keys are refused, because data \
                would be written in plaintext. Nothing was opened or written. Install libsqlcipher 4.5 or later, keep \
                libsqlite3 out of LD_PRELOAD, and if another part of the program links libsqlite3, give the linker \
                libsqlcipher.so by its path, so that it comes first.
                """
        )
    }

    /// Keeps the handle reachable for leak detectors. It is set once and never read.
    nonisolated(unsafe) private static var probe: OpaquePointer?

    private static func objectPath(_ address: UnsafeRawPointer?) -> String? {
        var path = [CChar](repeating: 0, count: 4096)
        guard sealeddb_object_of(address, &path, path.count) != nil else { return nil }
        return String(decoding: path.prefix { $0 != 0 }.map(UInt8.init(bitPattern:)), as: UTF8.self)
    }

    /// Opens a database in memory with a key, which starts SQLCipher, and turns SQLCipher's log off: since 4.6, a wrong
    /// key prints three lines to stderr. The setting is lost if made before the first key of the process, and stays
    /// afterwards.
    ///
    /// The database is never closed: SQLCipher before 4.7 forgets its provider with the last connection that has a key.
    private static func keyedProbe() -> String? {
        var handle: OpaquePointer?
        defer { probe = handle }
        guard sqlite3_open_v2(":memory:", &handle, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, nil) == SQLITE_OK else {
            return nil
        }
        let placeholder = [UInt8]("probe".utf8)
        guard sealeddb_key(handle, placeholder, Int32(placeholder.count)) == SQLITE_OK else { return nil }
        guard sqlite3_exec(handle, "PRAGMA cipher_log = off", nil, nil, nil) == SQLITE_OK else { return nil }
        return text("PRAGMA cipher_version", handle)
    }

    private static func text(_ sql: String, _ handle: OpaquePointer?) -> String? {
        var statement: OpaquePointer?
        // The result repeats the error of the step.
        defer { sqlite3_finalize(statement) }
        guard sqlite3_prepare_v3(handle, sql, -1, 0, &statement, nil) == SQLITE_OK,
            sqlite3_step(statement) == SQLITE_ROW
        else { return nil }
        return sqlite3_column_text(statement, 0).map { String(cString: $0) }
    }

    static var sqliteVersion: String { String(cString: sqlite3_libversion()) }
    static var sqliteVersionNumber: Int32 { sqlite3_libversion_number() }

    /// Whether a schema must be trusted for its triggers to write to full-text tables: older versions do not call FTS5
    /// innocuous. https://www.sqlite.org/c3ref/c_vtab_constraint_support.html
    static let needsTrustInSchema = sqliteVersionNumber < 3_046_000
    static var sourceID: String { String(cString: sqlite3_sourceid()) }
    static var isThreadSafe: Bool { sqlite3_threadsafe() != 0 }

    static var compileOptions: [String] {
        (0...).lazy.map { sqlite3_compileoption_get($0) }.prefix { $0 != nil }.map { String(cString: $0!) }
    }
}
