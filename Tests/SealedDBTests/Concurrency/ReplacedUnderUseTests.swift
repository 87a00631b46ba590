import Foundation
import Testing

@testable import SealedDB

/// Another file is put in the place of a store that is open, with its log beside it.
@Suite(.hangLimit)
struct ReplacedUnderUseTests {
    enum Kind: CaseIterable, Sendable { case queue, pool }

    private let directory: TemporaryDirectory
    private var path: String { directory.file("db") }

    init() throws {
        directory = try TemporaryDirectory()
    }

    private func configuration() throws -> Configuration {
        var configuration = Configuration(key: isEncrypting ? try .testing(1) : nil)
        configuration.journalMode = .wal
        configuration.maximumReaderCount = 2
        return configuration
    }

    private func access(_ kind: Kind) throws -> any DatabaseAccess {
        let access: any DatabaseAccess =
            switch kind {
            case .queue: try DatabaseQueue(path: path, configuration: configuration())
            case .pool: DatabasePool(path: path, configuration: try configuration())
            }
        try access.write { db in try db.fill(rows: 300) }
        return access
    }

    private static func count(_ db: Database) throws -> Int { try db.integers("SELECT count(*) FROM t")[0] }
    private func count(_ db: Database) throws -> Int { try Self.count(db) }

    /// What an operator does who does not follow the documentation.
    /// - Parameter sameSalt: whether the copy is one of the file, as `cp` makes it; otherwise a backup with a salt of its own.
    private func replace(_ access: any DatabaseAccess, sameSalt: Bool, reads: Bool = true) throws -> Data {
        if reads { try access.writeWithoutTransaction { db in _ = try db.checkpoint(.truncate) } }
        if sameSalt {
            try directory.write("copy", directory.bytes("db"))
        } else {
            try access.backup(to: directory.file("copy"))
        }
        let copy = try directory.bytes("copy")
        try access.write { db in try db.executeUpdate("UPDATE t SET body = upper(body) WHERE id < 100") }
        if reads, access is DatabasePool { #expect(try access.read { db in try count(db) } == 300) }
        #expect(rename(directory.file("copy"), path) == 0)
        return copy
    }

    @Test(arguments: Kind.allCases, [false, true])
    func theLogOfTheFormerFileIsNotUsed(kind: Kind, sameSalt: Bool) throws {
        let access = try access(kind)
        let copy = try replace(access, sameSalt: sameSalt)
        for _ in 0..<3 {
            for call in [{ try access.write { db in try db.fill(rows: 1) } }, { _ = try access.read(count) }] {
                let error = #expect(throws: DatabaseError.self) { try call() }
                #expect(error?.reason == .damaged, "\(String(describing: error))")
                #expect(error?.message.contains("log of the former file") == true, "\(String(describing: error))")
            }
            #expect(try directory.bytes("db") == copy)
        }
        // As the message says.
        #expect(rename(path + "-wal", directory.file("log")) == 0)
        try access.write { db in try db.fill(rows: 7) }
        #expect(try access.read(count) == 307)
        #expect(try access.read { db in try db.integers("SELECT count(*) FROM t WHERE body LIKE 'SECRET%'") } == [307])
        #expect(try access.read { db in try db.integers("SELECT count(*) FROM t WHERE body = upper(body)") } == [0])
    }

    /// Others would mix the pages of both, too.
    @Test(arguments: [false, true])
    func nobodyElseOpensIt(sameSalt: Bool) throws {
        let queue = try access(.queue)
        let copy = try replace(queue, sameSalt: sameSalt)
        // Somebody who only reads the new file, such as a backup program, or this process itself.
        let reader = try FileHandle.closedToChildren(path, O_RDONLY)
        defer { try? reader.close() }
        for flags in [SQLITE_OPEN_READWRITE, SQLITE_OPEN_READONLY] {
            var configuration = try configuration()
            configuration.isReadOnly = flags == SQLITE_OPEN_READONLY
            let other = Database(path: path, configuration: configuration)
            let error = #expect(throws: DatabaseError.self) { try other.openVerified() }
            #expect(error?.reason == .busy, "\(String(describing: error))")
            #expect(error?.message.contains("the log beside it") == true, "\(String(describing: error))")
        }
        #expect(try directory.bytes("db") == copy)
    }

    /// A process that opens and closes the file by itself loses its lock on it. Its log is that of the file all the same.
    @Test func aLockThatIsLostIsNoFormerFile() throws {
        let queue = try access(.queue)
        _ = try Data(contentsOf: URL(fileURLWithPath: path))
        let other = Database(path: path, configuration: try configuration())
        try other.openVerified()
        #expect(try count(other) == 300)
        #expect(other.close())
        try queue.write { db in try db.fill(rows: 1) }
        #expect(try queue.read(count) == 301)
    }

    /// A file without a key is attached with the same care.
    @Test func aPlainFileThatIsAttached() throws {
        let plain = Database(path: directory.file("plain"))
        #expect(plain.open())
        try plain.execute(script: "PRAGMA journal_mode = WAL; CREATE TABLE t (a); INSERT INTO t VALUES (1)")
        let other = Database(path: directory.file("other"))
        #expect(other.open())
        try other.execute(script: "CREATE TABLE t (a); INSERT INTO t VALUES (2)")
        #expect(other.close())
        let before = try directory.bytes("other")
        #expect(rename(directory.file("other"), directory.file("plain")) == 0)
        let main = Database(path: nil)
        #expect(main.open())
        let error = #expect(throws: DatabaseError.self) {
            try main.attach(directory.file("plain"), as: "plain", key: nil)
        }
        #expect(error?.reason == .busy, "\(String(describing: error))")
        #expect(try directory.bytes("plain") == before)
        plain.close()
    }

    /// As long as one connection reads from the former file, SQLite's files beside the path are those of that.
    @Test func aReaderThatLasts() async throws {
        let pool = DatabasePool(path: path, configuration: try configuration())
        try await pool.write { db in try db.fill(rows: 300) }
        let (reads, goOn) = (Gate(), Gate())
        let reader = Task {
            try await pool.read { db in
                let before = try Self.count(db)
                reads.open()
                goOn.waitBlocking()
                return try [before, Self.count(db)]
            }
        }
        await reads.wait()
        _ = try replace(pool, sameSalt: false, reads: false)
        #expect(rename(path + "-wal", directory.file("log")) == 0)
        let error = await #expect(throws: DatabaseError.self) { try await pool.write { db in try db.fill(rows: 1) } }
        #expect(error?.reason == .busy, "\(String(describing: error))")
        goOn.open()
        #expect(try await reader.value == [300, 300])
        // The reader closes the former file when it is used again, or when another connection finds it idle.
        #expect(try await pool.read { db in try Self.count(db) } == 300)
        try await pool.write { db in try db.fill(rows: 1) }
        #expect(try await pool.read { db in try Self.count(db) } == 301)
    }

    /// All idle connections of a pool are closed when one of them finds out, so that the next one can be opened.
    @Test func idleConnectionsAreInNobodysWay() throws {
        let pool = DatabasePool(path: path, configuration: try configuration())
        try pool.write { db in try db.fill(rows: 300) }
        try pool.inDatabase { db in try #require(count(db) == 300) }
        _ = try replace(pool, sameSalt: false)
        #expect(pool.countOfOpenDatabases == 3)
        #expect(rename(path + "-wal", directory.file("log")) == 0)
        try pool.write { db in try db.fill(rows: 1) }
        #expect(pool.countOfOpenDatabases == 1)
        #expect(try pool.read(count) == 301)
        #expect(try pool.inDatabase { db throws in try count(db) } == 301)
    }
}

/// A relative path leads to the same file, whatever the working directory is by then.
@Suite(.hangLimit)
struct RelativePathTests {
    @Test func itIsResolvedOnce() {
        let directory = FileManager.default.currentDirectoryPath
        let database = Database(path: "a.db")
        #expect(database.databasePath == "a.db" && database.filePath == directory + "/a.db")
        #expect(database.opening(flags: 0, vfs: nil, key: nil).path == directory + "/a.db")
        for path in [nil, "", ":memory:", "/a.db"] { #expect(Database(path: path).filePath == path) }
    }

    /// Also for the connections that a pool makes later.
    @Test func eachConnectionOfAPoolHasIt() throws {
        let directory = try TemporaryDirectory()
        let here = FileManager.default.currentDirectoryPath
        let up = String(repeating: "../", count: here.split(separator: "/").count)
        let relative = up + directory.file("db").dropFirst()
        let pool = DatabasePool(path: relative, configuration: Configuration(key: isEncrypting ? try .testing(1) : nil))
        try pool.write { db in try db.fill(rows: 1) }
        let paths: [String?] = [
            try pool.write { db in db.filePath }, try pool.read { db in db.filePath },
            try pool.inDatabase { db throws in db.filePath },
        ]
        #expect(paths == Array(repeating: here + "/" + relative, count: 3))
        #expect(pool.path == relative)
    }
}
