import FailingCalls
import Foundation
import Testing

@testable import SealedDB

/// Odd stores that are copied whole.
@Suite(.hangLimit, .enabled(if: isEncrypting, "needs a codec"))
struct CopiedLayoutTests {
    private let directory: TemporaryDirectory

    init() throws { directory = try TemporaryDirectory() }

    /// The table of numbers that were given remains when the last table that needs it is dropped.
    @Test func theSequenceAlone() throws {
        let database = try Database.testing(directory.file("db"))
        try database.execute(
            script: """
                CREATE TABLE t (a INTEGER PRIMARY KEY AUTOINCREMENT); DROP TABLE t; CREATE TABLE u (a);
                INSERT INTO sqlite_sequence VALUES ('gone', 12);
                """
        )
        database.close()
        try StoreMigration(path: directory.file("db"), key: .testing(1), to: CipherSettings(pageSize: 1024)).run()
        var configuration = Configuration(key: try .testing(1))
        configuration.cipherSettings = CipherSettings(pageSize: 1024)
        let migrated = Database(path: directory.file("db"), configuration: configuration)
        try migrated.openVerified()
        defer { migrated.close() }
        #expect(try migrated.integers("SELECT seq FROM sqlite_sequence WHERE name = 'gone'") == [12])
    }

    /// The same key with the same salt, with another part of the first page in clear.
    @Test(arguments: [(0, 32), (32, 0), (32, 64)]) func headersInClear(before: Int, after: Int) throws {
        let salt = [UInt8](1...16)
        func settings(_ size: Int) -> CipherSettings { CipherSettings(plaintextHeaderSize: size) }
        func key() throws -> Key {
            try [UInt8](repeating: 1, count: 32).withUnsafeBytes { key in
                try salt.withUnsafeBytes { try Key.raw(key, salt: $0) }
            }
        }
        func open(_ size: Int) throws -> Database {
            var configuration = Configuration(key: try key())
            configuration.cipherSettings = settings(size)
            let database = Database(path: directory.file("db"), configuration: configuration)
            try database.openVerified()
            return database
        }
        let database = try open(before)
        try database.fill(rows: 100)
        database.close()
        try StoreMigration(path: directory.file("db"), key: key(), from: settings(before), to: settings(after)).run()
        let migrated = try open(after)
        defer { migrated.close() }
        #expect(try migrated.integers("SELECT count(*) FROM t") == [100])
        #expect(try directory.bytes("db").prefix(16).elementsEqual(after > 0 ? Array("SQLite format 3\0".utf8) : salt))
    }

    /// A problem that the source has, too, is no problem of the copy.
    @Test func whatIsWrongWithTheSourceAlready() throws {
        let made = try Database.testing(directory.file("db"), journalMode: .delete)
        try made.fill(rows: 100)
        made.close()
        // The number of free pages.
        try directory.forge("db", page: 1) { $0[39] = 5 }
        let source = try Database.testing(directory.file("db"))
        defer { source.close() }
        let report = try IntegrityReport.verify(path: directory.file("db"), key: .testing(1))
        try #require(!report.isSound && report.damagedPages.isEmpty)
        let target = try Database.testing(directory.file("new"), key: 2)
        defer { target.close() }
        try source.backup(to: target)
        #expect(try target.integers("SELECT count(*) FROM t") == [100])
    }

    @Test func aDatabaseWithoutPages() throws {
        let database = Database(path: nil)
        #expect(database.open())
        defer { database.close() }
        #expect(try database.plaintextSerialized().isEmpty)
    }

    // MARK: Tables and indexes

    /// The condition of a partial index stands behind its columns, in which there may be parentheses.
    @Test func partialIndexes() throws {
        let database = try Database.testing(directory.file("db"))
        try database.execute(
            script: """
                CREATE TABLE t (a, b); INSERT INTO t VALUES ('A', 1), ('b', 2), ('C', 3);
                CREATE INDEX i ON t (lower(a), b) WHERE b > 1 AND (b < 9);
                """
        )
        database.close()
        let connection = try StoreOpening(path: directory.file("db"), key: .testing(1)).open()
        defer { connection.close() }
        let table = try #require(TableLayout.all(of: connection).first)
        let index = try #require(table.indexes(of: connection).first)
        defer { index.rows.close() }
        var values: [Int64] = []
        while try index.rows.step() { values.append(index.rows.int64(at: 0)) }
        #expect(index.name == "i" && values == [2, 3])
    }

    /// A table of very many columns is read in two parts, which must have as many rows.
    @Test(arguments: [("SELECT 1", "SELECT 2"), ("SELECT 1", "SELECT 2 UNION ALL SELECT 3")])
    func partsOfRows(first: String, second: String) throws {
        let connection = try StoreOpening().open()
        defer { connection.close() }
        let rows = TableRows(parts: [try connection.prepare(first), try connection.prepare(second)])
        defer { rows.close() }
        #expect(try rows.step())
        guard second.contains("UNION") else { return #expect(try !rows.step()) }
        let error = #expect(throws: DatabaseError.self) { try rows.step() }
        #expect(error?.reason == .damaged)
    }

    // MARK: A database in memory

    /// What was written is read back.
    @Test func aFileThatIsNotWhatWasSaved() throws {
        let database = Database(path: nil)
        #expect(database.open())
        defer { database.close() }
        try database.execute(script: "CREATE TABLE t (a); INSERT INTO t VALUES ('some text')")
        try database.save(toFile: directory.file("sound"))
        // A directory with as many names takes as many calls.
        let watch = CallWatch(directory.path)
        try database.save(toFile: directory.file("saved"))
        let writes = watch.endWithAll().enumerated().filter { $0.element.hasPrefix("pwrite") }.map(\.offset)
        unlink(directory.file("saved"))
        try #require(writes.count >= 2)
        var messages: [String] = []
        for index in writes {
            let watch = CallWatch(directory.path, failing: index...index, code: Int32(failing_calls_changing))
            let error = #expect(throws: DatabaseError.self) { try database.save(toFile: directory.file("saved")) }
            watch.end()
            messages.append(error?.message ?? "")
            #expect(directory.names == ["sound"])
        }
        #expect(
            messages.contains { $0.contains("its contents are not those of the database in memory") },
            "\(messages)"
        )
    }

    /// Of an encrypted file, a page that was changed has a wrong code. The journal of its first page is not needed
    /// later.
    @Test func anEncryptedFileThatIsNotWhatWasSaved() throws {
        let database = Database(path: nil, configuration: Configuration(key: try .testing(1)))
        #expect(database.open())
        defer { database.close() }
        try database.execute(script: "CREATE TABLE t (a); INSERT INTO t VALUES ('some text')")
        try database.save(toFile: directory.file("sound"))
        // A directory with as many names takes as many calls.
        let watch = CallWatch(directory.path)
        try database.save(toFile: directory.file("saved"))
        let calls = watch.endWithAll().enumerated()
        let writes = calls.filter { $0.element.hasPrefix("pwrite") && !$0.element.hasSuffix("-journal") }.map(\.offset)
        unlink(directory.file("saved"))
        var reasons: [DatabaseError.Reason?] = []
        for index in writes {
            let watch = CallWatch(directory.path, failing: index...index, code: Int32(failing_calls_changing))
            let result = Result { try database.save(toFile: directory.file("saved")) }
            watch.end()
            switch result {
            case .success:
                // It was written again.
                #expect(try IntegrityReport.verify(path: directory.file("saved"), key: .testing(1)).isSound)
                unlink(directory.file("saved"))
            case .failure(let error):
                reasons.append((error as? DatabaseError)?.reason)
                #expect((error as? DatabaseError)?.message.contains("Nothing was saved") == true, "\(error)")
                #expect(directory.namesOfFiles == ["sound"])
            }
        }
        #expect(reasons.count >= 2 && reasons.contains(.unverified), "\(reasons)")
    }

    /// A schema that SQLite cannot read is damage of the source, too, with advice what to do about it.
    @Test func aSchemaThatCannotBeRead() throws {
        let database = try Database.testing(directory.file("db"), journalMode: .delete)
        defer { database.close() }
        try database.execute(
            script: """
                CREATE TABLE t (a); PRAGMA writable_schema = ON;
                UPDATE sqlite_schema SET sql = 'CREATE TABLE t (a' WHERE name = 't';
                """
        )
        let source = try #require(database.connection)
        let copy = try StoreCopy(beside: directory.file("db"), takesAttributes: false)
        defer { copy.discard() }
        let (own, sealing) = (Sealing(key: try .testing(1)), Sealing(key: try .testing(2)))
        let error = #expect(throws: DatabaseError.self) {
            _ = try copy.fill(from: source, sealing: sealing, method: .rows(of: own), setsWAL: false, progress: nil)
        }
        #expect(error?.reason == .damaged, "\(String(describing: error))")
        #expect(error?.message.contains("`sealdb recover`") == true, "\(String(describing: error))")
    }
}
