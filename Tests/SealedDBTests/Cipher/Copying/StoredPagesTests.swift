import Foundation
import Testing

@testable import SealedDB

/// Which stores can be read page by page, beside SQLite.
@Suite(.hangLimit, .enabled(if: isEncrypting, "needs a codec"))
struct StoredPagesTests {
    private let directory: TemporaryDirectory
    private var path: String { directory.file("db") }

    init() throws {
        directory = try TemporaryDirectory()
    }

    private func failure(_ connection: Connection) -> DatabaseError? {
        #expect(throws: DatabaseError.self) { _ = try StoredPages(reading: connection) }
    }

    private func open(_ flags: Int32 = SQLITE_OPEN_READWRITE) throws -> Connection {
        try StoreOpening(path: path, key: .testing(1), flags: flags, takesLock: false).open()
    }

    private func beginReading(_ connection: Connection) throws {
        try connection.run("BEGIN")
        #expect(try connection.integer("SELECT count(*) FROM t") == 30)
    }

    /// SQLite makes an index in its memory if it may only read the one of the file, and nobody keeps that up to date.
    /// Which frames count is then known to this connection alone.
    @Test func anIndexThatIsNotShared() throws {
        let store = try Database.testing(path, journalMode: .wal)
        try store.fill(rows: 30)
        try directory.keep("db", "db-wal", "db-shm", of: store)
        let files = try ["", "-wal", "-shm"].map { (name: "db" + $0, bytes: try directory.bytes("db" + $0)) }
        let all = CallWatch(directory.path)
        let shared = try open(SQLITE_OPEN_READONLY)
        try beginReading(shared)
        #expect(try StoredPages.canRead(shared))
        #expect(try StoredPages(reading: shared).totals.count == PageTotals(of: shared).count)
        shared.close()
        let index = try #require(all.endWithAll().firstIndex(of: "open db-shm"))
        for file in files { try directory.write(file.name, file.bytes) }
        // It may not be opened for writing.
        let watch = CallWatch(directory.path, failing: index...index, code: EACCES)
        let connection = try open(SQLITE_OPEN_READONLY)
        defer { connection.close() }
        try beginReading(connection)
        #expect(watch.end(describing: index) == "open db-shm")
        #expect(try !StoredPages.canRead(connection))
        let error = failure(connection)
        #expect(error?.reason == .notPermitted, "\(error as Any)")
        #expect(error?.message.contains("up to date") == true, "\(error as Any)")
    }

    /// SQLite has no index of a log that came after the transaction began.
    @Test func aLogWithoutAnIndex() throws {
        let store = try Database.testing(path, journalMode: .delete)
        try store.fill(rows: 30)
        #expect(store.close())
        let connection = try open()
        defer { connection.close() }
        try beginReading(connection)
        try directory.write("db-wal", [])
        #expect(try StoredPages(reading: connection).totals.count == PageTotals(of: connection).count)
        try directory.write("db-wal", [1])
        let error = failure(connection)
        #expect(error?.reason == .damaged, "\(error as Any)")
        unlink(directory.file("db-wal"))
    }

    /// The disk has changed what is written there, and SQLite, which has its index, does not look.
    @Test func aLogThatDoesNotHoldWhatItsIndexSays() throws {
        let store = try Database.testing(path, journalMode: .wal)
        defer { store.close() }
        try store.fill(rows: 30)
        let connection = try open()
        defer { connection.close() }
        try beginReading(connection)
        #expect(try StoredPages(reading: connection).totals.count == PageTotals(of: connection).count)
        let file = try FileHandle(forUpdating: URL(fileURLWithPath: directory.file("db-wal")))
        let end = try file.seekToEnd()
        try file.seek(toOffset: end - 1)
        let last = try #require(try file.read(upToCount: 1))
        try file.seek(toOffset: end - 1)
        try file.write(contentsOf: last.map { $0 ^ 1 })
        try file.close()
        let error = failure(connection)
        #expect(error?.reason == .damaged, "\(error as Any)")
        #expect(error?.message.contains("does not hold what its index says") == true, "\(error as Any)")
    }
}
