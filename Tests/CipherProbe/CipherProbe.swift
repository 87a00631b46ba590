import Foundation
import SealedDB

// What belongs to the whole process is tried out in one of its own. Prints what it finds; the tests know what it should.

func open(_ path: String?, key byte: UInt8, settings: CipherSettings = .init()) throws -> Database {
    let key = try [UInt8](repeating: byte, count: 32).withUnsafeBytes { try Key.raw($0) }
    var configuration = Configuration(key: key)
    configuration.cipherSettings = settings
    let database = Database(path: path, configuration: configuration)
    try database.openVerified()
    return database
}

func tell(_ values: Any...) {
    print(values.map { "\($0)" }.joined(separator: " "))
}

/// Where the output of one step ends on standard error.
func mark(_ text: String) {
    FileHandle.standardError.write(Data("\(text)\n".utf8))
}

let directory = CommandLine.arguments[2]
let path = directory + "/db"

switch CommandLine.arguments[1] {
case "log":
    let database = try open(path, key: 1)
    mark("before")
    _ = try? open(path, key: 2)
    tell(database.enableCipherLogging(.error), database.cipherLogLevel.map { "\($0)" } ?? "nil")
    mark("enabled")
    _ = try? open(path, key: 2)
    for level in [CipherLogLevel.debug, .trace] {
        tell(database.enableCipherLogging(level), (database.lastError() as? DatabaseError)?.reason as Any)
    }
    tell(database.disableCipherLogging(), database.cipherLogLevel.map { "\($0)" } ?? "nil")
    mark("disabled")
    _ = try? open(path, key: 2)
case "descriptors":
    let database = try open(path, key: 1)
    let names = (0...9).map { try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/fd/\($0)") }
    let ofStore = names.indices.filter { names[$0]?.contains("/db") ?? false }
    mark("\(!ofStore.isEmpty && ofStore.allSatisfy { $0 > 2 })")
    database.close()
case "headless":
    // The first thread ends, and another one goes on.
    let database = try open(path, key: 1)
    try database.executeUpdate("UPDATE t SET body = upper(body)", values: nil)
    Thread.detachNewThread {
        func state() -> String? { try? String(contentsOfFile: "/proc/self/stat", encoding: .utf8) }
        while state()?.contains(") Z ") != true { sched_yield() }
        mark("ready")
        _ = readLine()
        exit(0)
    }
    withExtendedLifetime(database) { pthread_exit(nil) }
case "fill":
    // Alike, so that an old page of the one could stand for a new one of the other.
    for (name, key) in [("source", 1), ("destination", 2)] as [(String, UInt8)] {
        let database = try open(directory + "/" + name, key: key)
        database.executeStatements("CREATE TABLE of_\(raw: name) (a); CREATE INDEX i ON of_\(raw: name) (a)")
        for row in 1...400 {
            let sql = "INSERT INTO of_\(name) VALUES (randomblob(?))"
            try database.executeUpdate(sql, values: [row])
        }
        tell(database.close())
    }
case "backup":
    let (source, destination) = (try open(directory + "/source", key: 1), try open(directory + "/destination", key: 2))
    do {
        try source.backup(to: destination)
        tell("done")
    } catch {
        tell(error.reason, error.message)
    }
case "memory":
    // This connection keeps contexts until memory security is on.
    let before = try open(directory + "/before", key: 2)
    try before.executeUpdate("CREATE TABLE t (a)", values: nil)
    tell(EngineInfo.hasMemorySecurity, EngineInfo.current().keepsPageContexts)
    try EngineInfo.enableMemorySecurity()
    tell(EngineInfo.hasMemorySecurity, EngineInfo.current().pageContextsDetail ?? "nil")
    try before.executeUpdate("INSERT INTO t VALUES (zeroblob(9000))", values: nil)
    let database = try open(path, key: 1)
    try database.executeUpdate("CREATE TABLE t (a)", values: nil)
    tell(before.close(), database.close())
case "defaults":
    // Like another library in the process, which has its own idea of SQLCipher's defaults.
    var permission = Configuration()
    permission.allowsCipherStatements = true
    let other = Database(path: nil, configuration: permission)
    other.open()
    for pragma in [
        "page_size = 8192", "kdf_iter = 5", "use_hmac = off", "plaintext_header_size = 32",
        "hmac_algorithm = HMAC_SHA1", "kdf_algorithm = PBKDF2_HMAC_SHA1",
    ] {
        tell(other.executeStatements("PRAGMA cipher_default_\(raw: pragma)"))
    }
    let database = try open(path, key: 1)
    try database.executeUpdate("CREATE TABLE t (a)", values: nil)
    tell(database.effectiveCipherSettings.map { $0.isSame(as: .sqlCipher4) } as Any)
    do {
        try database.attach(directory + "/attached", as: "o", key: database.configuration.key)
        tell("attached")
    } catch {
        tell(error.reason)
    }
    for sql in [
        "ATTACH '\(directory)/inheriting' AS i", "VACUUM INTO '\(directory)/copy'", "EXPLAIN VACUUM main INTO 'x'",
        "VACUUM",
    ] {
        tell(database.executeStatements(sql) ? "executed" : (database.lastError() as? DatabaseError)?.reason as Any)
    }
    let plain = Database(path: nil)
    plain.open()
    tell(plain.executeStatements("ATTACH '\(raw: directory)/keyed' AS k KEY 'hush'"))
    tell(
        other.executeStatements(
            "PRAGMA cipher_default_compatibility = 4; PRAGMA cipher_default_plaintext_header_size = 0"
        )
    )
    tell(database.executeStatements("VACUUM INTO '\(raw: directory)/copy'"))
    tell(database.close())
case "uris":
    // Like another library in the process, which has begun to use SQLite and can have switched URI filenames on.
    typealias Initialize = @convention(c) () -> Int32
    guard let function = dlsym(nil, "sqlite3_initialize"), unsafeBitCast(function, to: Initialize.self)() == 0 else {
        exit(1)
    }
    let database = try open(path, key: 1)
    tell(try open(directory + "/other", key: 1).close())
    let other = "file:\(directory)/other?cipher_compatibility=3"
    for (sql, values) in [
        ("ATTACH ? AS a", [other]), ("ATTACH ? AS a", [directory + "/other"]), ("ATTACH '\(other)' AS a", []),
        ("ATTACH '\(directory)/new' AS a", []),
    ] as [(String, [Any])] {
        do {
            try database.executeUpdate(sql, values: values)
            tell("attached")
        } catch {
            tell(error.reason, error.message)
        }
    }
    try database.attach(directory + "/other", as: "b", key: database.configuration.key)
    tell(database.close())
case "fork":
    let queue = try DatabaseQueue(path: directory + "/queue", configuration: Configuration())
    var pool: DatabasePool! = DatabasePool(path: directory + "/pool")
    let single = Database(path: directory + "/single")
    single.open()
    let insertion = "INSERT INTO t VALUES (1)"
    try queue.write { db in tell(db.executeStatements("CREATE TABLE t (n); \(raw: insertion)")) }
    try pool.write { db in tell(db.executeStatements("CREATE TABLE t (n); \(raw: insertion)")) }
    tell(pool.inDatabase { db in tell(db.executeStatements(insertion)) } as Any)
    tell(single.executeStatements("CREATE TABLE t (n); INSERT INTO t VALUES (1), (2)"))
    let rows = try single.executeQuery("SELECT n FROM t", values: nil)
    tell(rows.next())
    let open = Database(path: directory + "/open")
    tell(open.open() && open.executeStatements("CREATE TABLE t (n, b); INSERT INTO t VALUES (1, zeroblob(5)), (2, 2)"))
    let others = Database(path: directory + "/open")
    tell(others.open())
    let prepared = try others.prepare("INSERT INTO t (n) VALUES (?)")
    let written = try open.executeQuery("UPDATE t SET n = n + 10 RETURNING n", values: nil)
    tell(written.next())
    let blob = try others.openBlob(table: "t", column: "b", rowID: 1)
    fflush(nil)
    // Swift hides it, for such reasons as are looked for here.
    let fork = unsafeBitCast(dlsym(nil, "fork"), to: (@convention(c) () -> pid_t).self)
    let child = fork()
    if child == 0 {
        func attempt(_ call: () throws -> Void) {
            do {
                try call()
                tell("done")
            } catch {
                tell((error as? DatabaseError)?.message.contains("forked") as Any)
            }
        }
        attempt { try queue.write { db in try db.executeUpdate(insertion, values: nil) } }
        attempt { try queue.read { _ in } }
        attempt { try pool.write { db in try db.executeUpdate(insertion, values: nil) } }
        attempt { try pool.read { _ in } }
        attempt { try pool.barrier { _ in } }
        attempt { if let error = pool.inDatabase({ _ in }) { throw error } }
        attempt { try single.executeUpdate(insertion, values: nil) }
        attempt { if prepared.bind(with: [5]) { try prepared.stepWithError() } }
        attempt { try written.closeWithError() }
        attempt { _ = try blob.read(at: 0, count: 5) }
        attempt { try blob.close() }
        queue.close()
        queue.releaseMemory()
        pool.releaseMemory()
        pool.releaseAllDatabases()
        tell(single.close())
        pool = nil
        fflush(nil)
        _exit(0)
    }
    var status: Int32 = 0
    tell(waitpid(child, &status, 0) == child && status == 0)
    tell(rows.next(), rows.next())
    try blob.close()
    tell(try written.nextWithError(), try written.nextWithError())
    try written.closeWithError()
    tell(try others.executeQuery("SELECT count(*) FROM t WHERE n > 10").scalar(Int.self) as Any)
    prepared.close()
    tell(open.close() && others.close())
    for access in [queue, pool!] as [any DatabaseAccess] {
        try access.write { db in try db.executeUpdate(insertion, values: nil) }
        tell(try access.read { db in try db.executeQuery("SELECT count(*) FROM t").scalar(Int.self) } as Any)
    }
    tell(single.executeStatements(insertion), single.close())
default: exit(64)
}
