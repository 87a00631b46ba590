import Foundation
import SQLiteEngine
import Testing

@testable import SealedDB

/// Copies that begin anew, files that are shorter than they seem, and journals of strangers.
@Suite(.hangLimit)
struct PagesEdgeTests {
    private let directory: TemporaryDirectory

    init() throws {
        directory = try TemporaryDirectory()
    }

    private func connection(_ name: String) throws -> Connection {
        let flags = SealedDB.SQLITE_OPEN_READWRITE | SealedDB.SQLITE_OPEN_CREATE
        return try Connection(path: directory.file(name), flags: flags)
    }

    // MARK: Copies

    /// The source changes between two steps, so that SQLite begins anew within the second one.
    /// - Parameters:
    ///   - name: that of the source's file.
    ///   - change: what somebody else does meanwhile.
    ///   - pages: as many as the second step is to copy.
    private func goesOn(_ name: String = "source", after change: [String], pages: Int32) throws -> (
        goesOn: Bool, copy: [String]
    ) {
        let (source, target) = (try connection(name), try connection(name + "-copy"))
        defer {
            source.close()
            target.close()
        }
        try source.run("CREATE TABLE t (id INTEGER PRIMARY KEY, b)")
        try source.run("CREATE TABLE u AS SELECT zeroblob(100000)")
        let backup = try Backup(from: source, to: target)
        #expect(try backup.step(pages: 3))
        #expect(backup.remainingPages > 10)
        let other = try connection(name)
        defer { other.close() }
        for sql in change { try other.run(sql) }
        let goesOn = try backup.step(pages: pages)
        source.end(backup)
        return (goesOn, goesOn ? [] : try target.texts("SELECT name FROM sqlite_schema ORDER BY name"))
    }

    @Test func aSourceThatHasGrown() throws {
        let change = ["CREATE TABLE v AS SELECT zeroblob(100000)"]
        let all = try goesOn(after: change, pages: -1)
        #expect(!all.goesOn)
        #expect(all.copy == ["t", "u", "v"])
        // As many as there were to be copied are not all there are now.
        #expect(try goesOn("second", after: change, pages: 100).goesOn)
    }

    @Test(arguments: [-1, 100]) func aSourceThatHasShrunk(pages: Int32) throws {
        let all = try goesOn(after: ["DROP TABLE u", "VACUUM"], pages: pages)
        #expect(!all.goesOn)
        #expect(all.copy == ["t"])
    }

    /// Who has waited for the lock says how long.
    @Test func aSourceThatIsLocked() throws {
        var configuration = Configuration()
        configuration.journalMode = .delete
        configuration.busyTimeout = .milliseconds(10)
        let queue = try DatabaseQueue(path: directory.file("db"), configuration: configuration)
        try queue.write { db in try db.fill(rows: 10) }
        let target = try connection("target")
        defer { target.close() }
        let other = try connection("db")
        defer { other.close() }
        try queue.inDatabase { db in
            let source = try #require(db.connection)
            try other.run("BEGIN EXCLUSIVE")
            let error = #expect(throws: DatabaseError.self) {
                try Backup.copy(
                    from: source,
                    to: target,
                    pagesPerStep: 5,
                    beforeEnd: { _ in },
                    betweenSteps: { _, _ in }
                )
            }
            #expect(error?.message.contains("waited") == true, "\(String(describing: error))")
        }
        try other.run("COMMIT")
    }

    /// Who has not waited does not say so.
    @Test func aTargetThatIsLocked() throws {
        let queue = try DatabaseQueue(path: directory.file("db"), configuration: Configuration())
        try queue.write { db in try db.fill(rows: 10) }
        let (target, other) = (try connection("target"), try connection("target"))
        defer {
            target.close()
            other.close()
        }
        try other.run("CREATE TABLE t (a)")
        try other.run("BEGIN EXCLUSIVE")
        try queue.inDatabase { db in
            let source = try #require(db.connection)
            let error = #expect(throws: DatabaseError.self) {
                try Backup.copy(
                    from: source,
                    to: target,
                    pagesPerStep: 5,
                    beforeEnd: { _ in },
                    betweenSteps: { _, _ in }
                )
            }
            #expect(error?.code == SealedDB.SQLITE_BUSY, "\(String(describing: error))")
            #expect(error?.message.contains("did not wait") == false, "\(String(describing: error))")
        }
        try other.run("COMMIT")
    }

    // MARK: Views

    private struct Overlay: PageOverlay {
        let pageSize = 4096
        let pageCount: Int64
        let pages: [Int64: UInt8]

        func bytes(ofPage number: Int64, from start: Int, count: Int) throws(DatabaseError) -> [UInt8]? {
            pages[number].map { [UInt8](repeating: $0, count: count) }
        }
    }

    private func view(_ overlay: Overlay?) throws -> Connection {
        let view = try FileView(path: directory.file("db"), lockTimeout: nil) { _ in overlay }
        let connection = try view.open(nil)
        connection.view = view
        return connection
    }

    /// Pages that neither the file nor what replaces some of them has are zeros, and those behind them are what they
    /// are.
    @Test func pagesBehindTheEndOfTheFile() throws {
        try directory.write("db", [UInt8](repeating: 0x11, count: 2 * 4096))
        let connection = try view(Overlay(pageCount: 5, pages: [2: 0x22, 4: 0x44]))
        defer { connection.close() }
        let handle = try #require(connection.handle)
        #expect(try connection.fileSize() == 5 * 4096)
        var bytes = [UInt8](repeating: 0xaa, count: 6 * 4096)
        let count = Int32(bytes.count)
        #expect(sealeddb_read_file(handle, "main", &bytes, count, 0) == SealedDB.SQLITE_IOERR_SHORT_READ)
        let last: [UInt8] = (1...6).map { (number: Int) -> UInt8 in bytes[number * 4096 - 1] }
        #expect(last == [0x11, 0x22, 0, 0x44, 0, 0])
        bytes = [UInt8](repeating: 0xaa, count: 4096)
        #expect(sealeddb_read_file(handle, "main", &bytes, 4096, 3 * 4096) == 0)
        #expect(bytes == [UInt8](repeating: 0x44, count: 4096))
    }

    /// A failure of the system is no end of the file.
    @Test func pagesThatCannotBeRead() throws {
        try directory.write("db", [UInt8](repeating: 0x11, count: 2 * 4096))
        let connection = try view(Overlay(pageCount: 2, pages: [2: 0x22]))
        defer { connection.close() }
        let handle = try #require(connection.handle)
        var bytes = [UInt8](repeating: 0, count: 2 * 4096)
        let count = Int32(bytes.count)
        let watch = CallWatch(directory.path, failing: 0...100)
        let code = sealeddb_read_file(handle, "main", &bytes, count, 0)
        watch.end()
        #expect(code & 0xff == SealedDB.SQLITE_IOERR && code != SealedDB.SQLITE_IOERR_SHORT_READ)
        #expect(sealeddb_read_file(handle, "main", &bytes, count, 0) == 0)
        #expect(bytes[0] == 0x11 && bytes[4096] == 0x22)
    }

    @Test func anOverlayThatCannotBeMade() throws {
        try directory.write("db", [])
        // No failure, as it seems from its code.
        let failure = DatabaseError(extendedCode: 0, message: "there is none")
        let view = try FileView(path: directory.file("db"), lockTimeout: nil) { _ throws(DatabaseError) in throw failure
        }
        let error = #expect(throws: DatabaseError.self) { try view.open(nil) }
        #expect(error == failure)
    }

    /// What SQLite keeps for a moment in a file of its own is no page of the store.
    @Test func temporaryFilesBesideAView() throws {
        let source = try connection("db")
        try source.run("CREATE TABLE t AS SELECT 7 AS a")
        source.close()
        let connection = try view(nil)
        defer { connection.close() }
        try connection.run("PRAGMA temp_store = FILE")
        try connection.run("PRAGMA temp.cache_size = 1")
        try connection.run("PRAGMA temp.cache_spill = 1")
        try connection.run("CREATE TEMP TABLE u AS SELECT a, randomblob(3000) AS b FROM t")
        for _ in 0..<8 { try connection.run("INSERT INTO u SELECT a, randomblob(3000) FROM u") }
        #expect(try connection.integer("SELECT count(DISTINCT b) + sum(a) FROM u, (SELECT 1)") == 256 * 8)
    }

    private final class Image: FileContents {
        let bytes: Data
        var code: Int32 = 0

        init(_ bytes: Data) { self.bytes = bytes }

        var size: Int64 { Int64(bytes.count) }

        func read(into buffer: UnsafeMutableRawBufferPointer, at offset: Int64) -> Int32 {
            bytes.copyBytes(
                to: buffer.assumingMemoryBound(to: UInt8.self),
                from: Int(offset)..<Int(offset) + buffer.count
            )
            return code
        }
    }

    /// What is served is one file. No other file is opened in its place.
    @Test func temporaryFilesBesideAServedFile() throws {
        let source = Database(path: nil)
        try source.openVerified()
        try source.fill(rows: 10)
        let connection = try ServedFile(Image(source.plaintextSerialized())).open()
        defer { connection.close() }
        try connection.run("PRAGMA temp_store = FILE")
        try connection.run("PRAGMA temp.cache_size = 1")
        try connection.run("PRAGMA temp.cache_spill = 1")
        let error = #expect(throws: DatabaseError.self) {
            try connection.run("CREATE TEMP TABLE u AS SELECT randomblob(3000) AS b FROM t, t AS v")
        }
        #expect(error?.code == SealedDB.SQLITE_CANTOPEN, "\(String(describing: error))")
        #expect(try connection.integer("SELECT count(*) FROM t") == 10)
    }

    /// Bytes of an earlier read are not given out for some of a file that becomes shorter while it is read.
    @Test func aFileThatBecomesShorter() throws {
        let source = Database(path: nil)
        try source.openVerified()
        try source.fill(rows: 10)
        let image = try Image(source.plaintextSerialized())
        let connection = try ServedFile(image).open()
        defer { connection.close() }
        var bytes = [UInt8](repeating: 0, count: 4096)
        func read() throws -> Int { try bytes.withUnsafeMutableBytes { try connection.readFile(at: 0, into: $0) } }
        #expect(try read() == 4096)
        image.code = SealedDB.SQLITE_IOERR_SHORT_READ
        #expect(try read() == 0)
        image.code = SealedDB.SQLITE_IOERR_READ
        #expect(throws: DatabaseError.self) { try read() }
    }

    // MARK: Pages that are not decrypted

    /// It is no damage of the page, and no wrong key.
    @Test(.enabled(if: isEncrypting, "needs a codec"), arguments: [true, false])
    func pagesThatAreNotDecrypted(isFirst: Bool) throws {
        let database = try Database.testing(directory.file("db"))
        defer { database.close() }
        try database.fill(rows: 300)
        let connection = try #require(database.connection)
        let statement = try connection.prepare("SELECT count(*) FROM t WHERE body > ''")
        defer { statement.close() }
        // While it runs, the first page is not read again.
        let first = try connection.prepare("SELECT name FROM sqlite_schema")
        defer { first.close() }
        if !isFirst { #expect(try first.step()) }
        connection.forgetPages()
        let watch = CallWatch(openSSLFailing: 0...10_000)
        let result = Result { try statement.step() }
        watch.end()
        let error = #expect(throws: DatabaseError.self) { try result.get() }
        #expect(error?.code == SealedDB.SQLITE_NOMEM, "\(String(describing: error))")
        #expect(error?.message.contains("OpenSSL did not decrypt") == true, "\(String(describing: error))")
    }

    // MARK: Other VFS

    /// What another VFS has not, the one that guards it has not either.
    @Test(arguments: [true, false]) func callsThatAnotherVFSDoesNotHave(hasThem: Bool) throws {
        let system = try #require(sqlite3_vfs_find(nil))
        // Both stay for the life of the process.
        let own = UnsafeMutablePointer<sqlite3_vfs>.allocate(capacity: 1)
        own.initialize(to: system.pointee)
        let name = hasThem ? "complete" : "bare"
        own.pointee.zName = UnsafePointer(strdup(name))
        own.pointee.pNext = nil
        if !hasThem { (own.pointee.xGetLastError, own.pointee.xCurrentTimeInt64) = (nil, nil) }
        #expect(sqlite3_vfs_register(own, 0) == 0)
        let guarding = try #require(sqlite3_vfs_find(GuardedVFS.name(guarding: name)))
        #expect((guarding.pointee.xGetLastError != nil) == hasThem)
        #expect((guarding.pointee.xCurrentTimeInt64 != nil) == hasThem)
    }

    /// SQLite looks into another journal before it removes a super-journal; not into one that a stranger has put there.
    @Test(.enabled(if: geteuid() == 0, "gives files away"), arguments: [false, true])
    func theJournalOfAStranger(isOfStranger: Bool) throws {
        let path = directory.file("db-journal")
        // Where everybody may make files.
        #expect(chmod(directory.path, 0o1777) == 0)
        try directory.write("db-journal", [])
        if isOfStranger { #expect(chown(path, 65534, 65534) == 0) }
        let vfs = try #require(sqlite3_vfs_find(GuardedVFS.name(guarding: nil)))
        let memory = UnsafeMutableRawPointer.allocate(byteCount: Int(vfs.pointee.szOsFile), alignment: 16)
        defer { memory.deallocate() }
        memory.initializeMemory(as: UInt8.self, repeating: 0, count: Int(vfs.pointee.szOsFile))
        let file = memory.assumingMemoryBound(to: sqlite3_file.self)
        let flags = SealedDB.SQLITE_OPEN_READONLY | SQLITE_OPEN_SUPER_JOURNAL
        let code = vfs.pointee.xOpen(vfs, path, file, flags, nil)
        #expect(code == (isOfStranger ? SealedDB.SQLITE_CANTOPEN : 0))
        if code == 0 { _ = file.pointee.pMethods.pointee.xClose(file) }
    }
}
