import Foundation
import Testing

@testable import SealedDB

/// Bytes of a journal that were changed make SQLite undo a part of a transaction, or cut the store off.
@Suite(.hangLimit, .enabled(if: isEncrypting, "needs a codec"))
struct JournalDamageTests {
    private let directory: TemporaryDirectory

    private static let recordSize = 4 + 4096 + 4

    init() throws {
        directory = try TemporaryDirectory()
    }

    /// A store and its journal as a kill leaves them, in the middle of a transaction.
    private func makeStore(_ mode: Configuration.JournalMode = .delete, _ change: (inout Data) -> Void) throws {
        let database = try Database.testing(directory.file("service"), journalMode: mode)
        defer {
            database.close()
            unlink(directory.file("service"))
        }
        #expect(
            database.executeStatements(
                """
                CREATE TABLE t (id INTEGER PRIMARY KEY, v, pad);
                WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 300)
                INSERT INTO t SELECT i, 100, hex(zeroblob(150)) FROM n;
                UPDATE t SET v = 100;
                """
            )
        )
        try database.spillChanges()
        #expect(database.executeStatements("PRAGMA cache_size = 10; BEGIN; UPDATE t SET v = 200"))
        var journal = try directory.bytes("service-journal")
        change(&journal)
        try directory.bytes("service").write(to: URL(fileURLWithPath: directory.file("db")))
        try journal.write(to: URL(fileURLWithPath: directory.file("db-journal")))
    }

    /// Pages without codes say nothing of the journal: it is put back as SQLite does it.
    @Test func aStoreWithoutCodes() throws {
        var configuration = Configuration(key: try .testing(1))
        configuration.cipherSettings = .sqlCipher1
        configuration.journalMode = .delete
        let database = Database(path: directory.file("service"), configuration: configuration)
        try database.openVerified()
        try database.fill(rows: 300)
        try database.spillChanges()
        try database.execute(script: "PRAGMA cache_size = 10; BEGIN; UPDATE t SET body = 'changed'")
        for name in ["", "-journal"] { try directory.write("db" + name, directory.bytes("service" + name)) }
        database.close()
        let copy = Database(path: directory.file("db"), configuration: configuration)
        try copy.openVerified()
        #expect(try copy.integers("SELECT count(*) FROM t WHERE body LIKE 'secret row %'") == [300])
        #expect(copy.close())
    }

    private func expectDamage(_ comment: Comment, sourceLocation: SourceLocation = #_sourceLocation) throws {
        let files = (try directory.bytes("db"), try directory.bytes("db-journal"))
        let key = try Key.testing(2)
        let path = directory.file("db")
        for call: () throws -> Void in [
            { try Database.testing(path).close() },
            {
                let database = try Database.testing(nil)
                defer { database.close() }
                try database.attach(path, as: "db", key: .testing(1))
            },
            { _ = try IntegrityReport.verify(path: path, key: .testing(1), isDeep: true) },
            { try KeyRotation(path: path, from: .testing(1), to: key).run() },
            { try StoreBackup(path: path, key: .testing(1), to: directory.file("b"), backupKey: key).run() },
            { try StoreDecryption(path: path, key: .testing(1), plaintextPath: directory.file("p")).run() },
            { try StoreRestore(backupPath: path, key: .testing(1), to: directory.file("r")).run() },
        ] {
            let error = #expect(throws: DatabaseError.self, comment, sourceLocation: sourceLocation) { try call() }
            #expect(
                error?.reason == .damaged,
                "\(comment): \(String(describing: error))",
                sourceLocation: sourceLocation
            )
        }
        #expect(try directory.bytes("db") == files.0 && directory.bytes("db-journal") == files.1, comment)
    }

    private func expectAllIsUndone(_ comment: Comment, sourceLocation: SourceLocation = #_sourceLocation) throws {
        #expect(try IntegrityReport.verify(path: directory.file("db"), key: .testing(1)).isSound, comment)
        let error = #expect(throws: DatabaseError.self) { try Database.testing(directory.file("db"), key: 9).close() }
        #expect(error?.reason == .wrongKey, sourceLocation: sourceLocation)
        let database = try Database.testing(directory.file("db"))
        defer { database.close() }
        #expect(try database.integers("SELECT DISTINCT v FROM t") == [100], comment, sourceLocation: sourceLocation)
    }

    @Test(arguments: [Configuration.JournalMode.delete, .persist, .truncate])
    func oneThatIsWhole(mode: Configuration.JournalMode) throws {
        try makeStore(mode) { _ in }
        try expectAllIsUndone("\(mode)")
    }

    /// Magic, count of records, number that checksums begin with, pages of the store, sizes of sector and page.
    @Test(arguments: [0, 7, 10, 11, 12, 15, 19, 22, 23, 26]) func theHeader(offset: Int) throws {
        try makeStore { journal in journal[offset] ^= 1 }
        try expectDamage("byte \(offset)")
        try makeStore { journal in journal.replaceSubrange(8..<12, with: [0xff, 0xff, 0xff, 0xfe]) }
        try expectDamage("a count without end")
        // What an earlier transaction has left stands behind this one's records.
        try makeStore(.persist) { journal in journal[offset] ^= 1 }
        try expectDamage("byte \(offset) of one that is kept")
    }

    /// SQLite takes no page from a journal of pages of another size.
    @Test(arguments: [[0x04, 0x00], [0x20, 0x00]] as [[UInt8]]) func theSizeOfPages(_ size: [UInt8]) throws {
        try makeStore { journal in journal.replaceSubrange(26..<28, with: size) }
        let error = #expect(throws: DatabaseError.self) { try Database.testing(directory.file("db")).close() }
        #expect(error?.message.contains("in it would not be put back") == true, "\(error as Any)")
        try expectDamage("another size of pages")
    }

    /// Its number, a byte that is summed and one that is not, and the sum.
    @Test(arguments: [3, 4 + 96, 4 + 1000, 4 + 4096 + 3]) func aRecord(offset: Int) throws {
        try makeStore { journal in journal[512 + 4 * Self.recordSize + offset] ^= 1 }
        try expectDamage("byte \(offset)")
    }

    /// The first record is where the parts of a journal are recognised.
    @Test(arguments: [3, 4 + 96, 4 + 1000, 4 + 4096 + 3]) func theFirstRecord(offset: Int) throws {
        try makeStore { journal in journal[512 + offset] ^= 1 }
        try expectDamage("byte \(offset)")
    }

    /// Where the headers of a journal stand, by their magic.
    private func headers(of journal: Data) -> [Int] {
        stride(from: 0, to: journal.count - 28, by: 512).filter {
            journal[$0..<$0 + 8] == Data([0xd9, 0xd5, 0x05, 0xf9, 0x20, 0xa1, 0x63, 0xd7])
        }
    }

    /// A transaction that is larger than the cache has parts, each with a header, and all must be put back.
    @Test(arguments: [Configuration.JournalMode.delete, .persist]) func theHeaderOfALaterPart(
        mode: Configuration.JournalMode
    ) throws {
        var places: [Int] = []
        try makeStore(mode) { places = headers(of: $0) }
        // The last part has no magic yet, and nothing of it was written to the store.
        let synced = places.dropFirst()
        try #require(synced.count > 1)
        for place in [synced.first, synced.last].compactMap(\.self) {
            try makeStore(mode) { $0.replaceSubrange(place..<place + 3, with: "abc".utf8) }
            try expectDamage("magic at \(place)")
            try makeStore(mode) { $0.replaceSubrange(place..<place + 512, with: Data(count: 512)) }
            try expectDamage("zeros at \(place)")
            var generator = SystemRandomNumberGenerator()
            let noise = Data((0..<512).map { _ in UInt8.random(in: 1...255, using: &generator) })
            try makeStore(mode) { $0.replaceSubrange(place..<place + 512, with: noise) }
            try expectDamage("noise at \(place)")
            try makeStore(mode) { $0.replaceSubrange(place + 8..<place + 12, with: Data(count: 4)) }
            try expectDamage("no records at \(place)")
            try makeStore(mode) { $0[place + 512 + 200] ^= 1 }
            try expectDamage("the first record at \(place)")
            try makeStore(mode) { $0.replaceSubrange(place + 8..<place + 12, with: Data(repeating: 0xff, count: 4)) }
            // Behind the last part SQLite puts back whatever follows, and that is all.
            if place == synced.last {
                try expectAllIsUndone("no number of records at \(place)")
            } else {
                try expectDamage("no number of records at \(place)")
            }
        }
    }

    /// Without syncs SQLite writes no number of records into the only header that there is.
    @Test(arguments: [Configuration.JournalMode.delete, .persist]) func noNumberOfRecordsInTheFirstHeader(
        mode: Configuration.JournalMode
    ) throws {
        try makeStore(mode) { $0.replaceSubrange(8..<12, with: Data(repeating: 0xff, count: 4)) }
        try expectDamage("the first part")
    }

    /// SQLite ends a journal that is kept by 28 zeros at once.
    @Test func theBeginningOfTheFirstHeader() throws {
        try makeStore { $0[0] = 0 }
        try expectDamage("one zero")
        try makeStore { $0.replaceSubrange(0..<3, with: "abc".utf8) }
        try expectDamage("the magic")
    }

    /// Where a journal is kept, headers and records of an earlier transaction stand behind those of this one. SQLite sets the
    /// first byte of such a header to zero before it syncs what stands before it.
    @Test func whatAnEarlierTransactionLeft() throws {
        let service = try Database.testing(directory.file("service"), journalMode: .persist)
        defer { service.close() }
        try service.execute(
            script: """
                CREATE TABLE t (id INTEGER PRIMARY KEY, v, pad);
                WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 300)
                INSERT INTO t SELECT i, 50, hex(zeroblob(150)) FROM n;
                """
        )
        try service.spillChanges()
        try service.execute(script: "PRAGMA cache_size = 10; UPDATE t SET v = 100")
        let earlier = try directory.bytes("service-journal")
        try service.execute(script: "BEGIN; UPDATE t SET v = 200")
        let journal = try directory.bytes("service-journal")
        let store = try directory.bytes("service")
        let place = try #require(
            headers(of: earlier).first { place in
                place > 0 && journal.count > place + 28 && journal[place..<place + 12] == Data(count: 12)
            }
        )
        try service.execute(script: "ROLLBACK")
        // Before the new header is written, and when it is, but none of its records.
        var atTheMark = journal.prefix(place) + earlier.dropFirst(place)
        atTheMark[place] = 0
        let atTheHeader = journal.prefix(place + 512) + earlier.dropFirst(place + 512)
        for bytes in [atTheMark, atTheHeader] {
            try store.write(to: URL(fileURLWithPath: directory.file("db")))
            try bytes.write(to: URL(fileURLWithPath: directory.file("db-journal")))
            try expectAllIsUndone("at \(place)")
        }
    }

    /// As a power failure leaves one that was not synced: nothing was written to the store then.
    @Test func oneThatWasNotSynced() throws {
        try makeStore { _ in }
        let database = try Database.testing(directory.file("service"))
        #expect(database.executeStatements("CREATE TABLE u (a); INSERT INTO u VALUES (1)"))
        #expect(database.executeStatements("BEGIN; UPDATE u SET a = 2"))
        let journal = try directory.bytes("service-journal")
        try directory.bytes("service").write(to: URL(fileURLWithPath: directory.file("db")))
        #expect(database.executeStatements("ROLLBACK"))
        database.close()
        for length in [journal.count, journal.count - 1000, 600, 512, 28, 5] {
            for damage in [nil, 0, 11, 12] as [Int?] where damage ?? 0 < length {
                var bytes = Data(journal.prefix(length))
                if let damage { bytes[damage] ^= 1 }
                try bytes.write(to: URL(fileURLWithPath: directory.file("db-journal")))
                let copy = try Database.testing(directory.file("db"))
                #expect(try copy.integers("SELECT a FROM u") == [1], "\(length) \(String(describing: damage))")
                copy.close()
            }
        }
    }

    /// Without syncs the header says nothing of how many records there are: SQLite stops at the first that is torn, and the
    /// store behind it was not written to.
    @Test(arguments: [3, 4 + 96, 4 + 4096 + 3]) func theLastRecordOfOneThatIsNeverSynced(offset: Int) throws {
        let service = try Database.testing(directory.file("service"))
        defer { service.close() }
        try service.fill(rows: 100)
        #expect(service.executeStatements("PRAGMA synchronous = OFF; BEGIN; UPDATE t SET body = 'x'"))
        var journal = try directory.bytes("service-journal")
        #expect(journal[8..<12] == Data([0xff, 0xff, 0xff, 0xff]))
        journal[journal.count - Self.recordSize + offset] ^= 1
        try directory.bytes("service").write(to: URL(fileURLWithPath: directory.file("db")))
        try journal.write(to: URL(fileURLWithPath: directory.file("db-journal")))
        #expect(try IntegrityReport.verify(path: directory.file("db"), key: .testing(1), isDeep: true).isSound)
        let copy = try Database.testing(directory.file("db"))
        defer { copy.close() }
        #expect(try copy.integers("SELECT count(*) FROM t WHERE body <> 'x'") == [100])
    }

    /// A creation that was killed: the store had no pages before, and the page that it has is the new one.
    @Test func oneOfAStoreWithoutPages() throws {
        try Database.testing(directory.file("db")).close()
        func word(_ value: UInt32) -> [UInt8] { withUnsafeBytes(of: value.bigEndian) { Array($0) } }
        var bytes: [UInt8] = [0xd9, 0xd5, 0x05, 0xf9, 0x20, 0xa1, 0x63, 0xd7]
        bytes += [0, 0x1234, 0, 512, 4096].flatMap(word)
        bytes += [UInt8](repeating: 0, count: 512 - bytes.count)
        try directory.write("db-journal", bytes)
        let database = try Database.testing(directory.file("db"))
        defer { database.close() }
        #expect(try database.integers("SELECT count(*) FROM sqlite_schema") == [0])
    }
}
