import Foundation
import Testing

@testable import SealedDB

/// A checkpoint that was cut off has written a part of a transaction to the file, and then bytes of the log were changed. SQLite
/// would take that part for all.
@Suite(.hangLimit, .enabled(if: isEncrypting, "needs a codec"))
struct CutCheckpointTests {
    private static let frameSize = 24 + 4096
    private let directory: TemporaryDirectory

    init() throws { directory = try TemporaryDirectory() }

    /// A transfer, which changes two pages.
    /// - Parameter indexes: of the frames whose pages are in the file.
    private func makeStore(inFile indexes: [Int], last: String = "") throws -> [UInt8] {
        let database = try Database.testing(directory.file("service"), journalMode: .wal)
        defer { database.close() }
        try database.execute(
            script: """
                PRAGMA wal_autocheckpoint = 0;
                CREATE TABLE account (id INTEGER PRIMARY KEY, balance); INSERT INTO account VALUES (1, 100);
                CREATE TABLE ledger (id INTEGER PRIMARY KEY, sum); INSERT INTO ledger VALUES (1, 100);
                PRAGMA wal_checkpoint(TRUNCATE);
                """
        )
        var file = try [UInt8](directory.bytes("service"))
        try database.execute(
            script: "BEGIN; UPDATE account SET balance = 10; UPDATE ledger SET sum = 190; COMMIT;" + last
        )
        let log = try [UInt8](directory.bytes("service-wal"))
        try #require(log.count >= 32 + 2 * Self.frameSize)
        for start in indexes.map({ 32 + $0 * Self.frameSize }) {
            let page = Int(log[start + 3]) - 1
            file.replaceSubrange(
                (page * 4096)..<((page + 1) * 4096),
                with: log[(start + 24)..<(start + Self.frameSize)]
            )
        }
        try directory.write("db", file)
        return log
    }

    /// Offsets of bytes in the log's header, and in the frame whose page is in the file: of the page's number, the salts, the page.
    private static let headerBytes = [0, 10, 17, 27, 31]
    private static let frameBytes = [0, 3, 8, 15, 24, 24 + 1500, 24 + 4095]

    @Test(arguments: headerBytes.map { -$0 } + frameBytes.map { $0 + 1 }, [0, 1])
    func nobodyTakesHalfOfIt(place: Int, index: Int) throws {
        var log = try makeStore(inFile: [index])
        log[place > 0 ? 32 + index * Self.frameSize + place - 1 : -place] ^= 1
        try directory.write("db-wal", log)
        let store = try directory.bytes("db")
        try expectNobodyOpens(directory.file("db"))
        for call: () throws -> Void in [
            {
                let report = try IntegrityReport.verify(path: directory.file("db"), key: .testing(1), isDeep: true)
                try #require(report.isSound, "It must throw, or find damage.")
            },
            { try StoreBackup(path: directory.file("db"), key: .testing(1), to: directory.file("backup")).run() },
            { try KeyRotation(path: directory.file("db"), from: .testing(1), to: .testing(2)).run() },
        ] {
            #expect(throws: (any Error).self) { try call() }
        }
        #expect(try directory.bytes("db") == store && [UInt8](directory.bytes("db-wal")) == log)
        let report = try StoreRecovery(path: directory.file("db"), key: .testing(1), to: directory.file("new")).run()
        #expect(!report.problems.isEmpty)
        let saved = try Database.testing(directory.file("new"))
        defer { saved.close() }
        #expect(try saved.integers("SELECT balance FROM account") == [10])
        #expect(try saved.integers("SELECT sum FROM ledger") == [190])
    }

    /// The file has all of it, or nothing: then what SQLite leaves is a state that the store once had.
    @Test(arguments: [[0, 1], []])
    func aHeaderThatMayBeLost(inFile indexes: [Int]) throws {
        var log = try makeStore(inFile: indexes)
        log[27] ^= 1
        try directory.write("db-wal", log)
        let database = try Database.testing(directory.file("db"))
        defer { database.close() }
        let isInFile = !indexes.isEmpty
        #expect(try database.integers("SELECT balance FROM account") == [isInFile ? 10 : 100])
        #expect(try database.integers("SELECT sum FROM ledger") == [isInFile ? 190 : 100])
    }

    /// Also where its only version in the log is damaged.
    @Test func aPageThatIsOlderIsNamed() throws {
        var log = try makeStore(inFile: [], last: "INSERT INTO account VALUES (2, 0)")
        let pages = stride(from: 32, to: log.count, by: Self.frameSize).map { log[$0 + 3] }
        let index = try #require((0...1).first { index in pages.count { $0 == pages[index] } == 1 })
        log[32 + index * Self.frameSize + 24 + 100] ^= 1
        try directory.write("db-wal", log)
        let report = try StoreRecovery(path: directory.file("db"), key: .testing(1), to: directory.file("new")).run()
        #expect(
            report.problems.contains { $0.contains("newest version of page \(pages[index]) ") },
            "\(report.problems)"
        )
    }
}

/// Expects that a store is refused because SQLite would put older pages of its log in the place of newer ones.
func expectNobodyOpens(_ path: String) throws {
    for isReadOnly in [true, false] {
        var configuration = Configuration(key: try .testing(1))
        configuration.isReadOnly = isReadOnly
        let database = Database(path: path, configuration: configuration)
        let error = #expect(throws: DatabaseError.self) { try database.openVerified() }
        #expect(error?.reason == .damaged && error?.message.contains("older pages") == true, "\(error as Any)")
    }
}
