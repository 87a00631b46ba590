import Foundation
import Testing

@testable import SealedDB

/// What is told of a file that is looked at: the numbers, the words, and what to try next.
@Suite(.hangLimit, .enabled(if: isEncrypting, "needs a codec"))
struct ExaminationWordsTests {
    private let directory: TemporaryDirectory
    private var path: String { directory.file("db") }

    init() throws { directory = try TemporaryDirectory() }

    private func make(_ settings: CipherSettings = .init(), key: Key? = nil, _ script: SQL = "") throws {
        var configuration = Configuration(key: try key ?? .testing(1))
        (configuration.cipherSettings, configuration.journalMode) = (settings, .delete)
        let database = Database(path: path, configuration: configuration)
        try database.openVerified()
        try database.fill(rows: 300)
        try database.execute(script: script)
        database.close()
    }

    private func diagnosis(
        _ key: Key?,
        _ settings: CipherSettings = .init(),
        _ effort: StoreRecognition.Effort = .thorough,
        triesUnauthenticated: Bool = false
    ) throws -> StoreDiagnosis {
        var examination = StoreExamination(path: path, key: key, settings: settings, effort: effort)
        examination.triesUnauthenticated = triesUnauthenticated
        let connection = try Connection(path: path, flags: SQLITE_OPEN_READONLY)
        defer { connection.close() }
        return try examination.examine(connection)
    }

    // MARK: Info

    @Test func whatIsTold() throws {
        try make(
            .init(),
            """
            PRAGMA user_version = 7; PRAGMA application_id = 9; CREATE TABLE u (a); CREATE INDEX i ON t (body);
            CREATE VIEW v AS SELECT 1; DELETE FROM t WHERE id > 20;
            """
        )
        let database = try Database.testing(path)
        let numbers = try ["page_count", "freelist_count"].map { try database.integers("PRAGMA \($0)")[0] }
        database.close()
        try #require(numbers[1] > 2)
        let info = try StoreInfo.inspect(path: path, key: .testing(1))
        #expect(info.kind == .encrypted && info.siblings == [])
        #expect(try info.salt == Hexadecimal.string(Array(directory.bytes("db").prefix(16))))
        let details = try #require(info.details)
        #expect(
            Int(details.pageCount) == numbers[0] && Int(details.freePages) == numbers[1] && details.pageSize == 4096
        )
        #expect(details.userVersion == 7 && details.applicationID == 9 && details.tableCount == 2)
        #expect(details.journalMode == "delete" && !details.cipherSettings.isEmpty)
        for suffix in ["-wal", "-shm", "-journal"] { try directory.write("db" + suffix, [1]) }
        #expect(try StoreInfo.outside(path: path).siblings == ["-wal", "-shm", "-journal"])
    }

    /// The salt is somewhere else.
    @Test func aHeaderInTheClear() throws {
        let settings = CipherSettings(plaintextHeaderSize: 32, salt: Array(1...16))
        try make(settings)
        let info = try StoreInfo.inspect(path: path, key: .testing(1), cipherSettings: settings)
        #expect(info.salt == nil && info.details?.tableCount == 1, "\(info)")
    }

    /// Nothing that is encrypted has such a size.
    @Test func sizesOfNoStore() throws {
        for (size, kind) in [(512, StoreInfo.Kind.encrypted), (511, .notADatabase), (1000, .notADatabase)] {
            try directory.write("db", (0..<size).map { UInt8($0 * 167 % 251) })
            #expect(try StoreInfo.outside(path: path).kind == kind, "\(size)")
        }
    }

    // MARK: Wrong keys

    /// What a search has tried is not recommended again.
    @Test func whatToTryNext() throws {
        try make()
        let (wrong, words) = (try Key.testing(2), try Key.passphrase("words"))
        let looks = "`sealdb info` looks for other settings"
        let untried = "Formats without page authentication, such as SQLCipher 1, were not tried."
        #expect(try diagnosis(words, .init(), .quick).explanation.contains(looks))
        #expect(try !diagnosis(wrong, .init(), .quick).explanation.contains(looks))
        let thorough = try diagnosis(words)
        #expect(thorough.finding == .wrongKey && !thorough.explanation.contains(looks), "\(thorough)")
        #expect(thorough.explanation.hasSuffix(untried), "\(thorough)")
        #expect(try !diagnosis(wrong, triesUnauthenticated: true).explanation.contains(untried))
        #expect(try !diagnosis(wrong, CipherSettings(usesHMAC: false)).explanation.contains(untried))
    }

    /// A log may have the first page under another key, and what stands beside the file is named.
    @Test func whatStandsBesideIt() throws {
        try make()
        let (key, beside, cut) = (try Key.testing(2), "Beside it: ", "If a change of its key was cut off")
        try directory.write("db-wal", [])
        let alone = try diagnosis(key).explanation
        #expect(!alone.contains(beside) && !alone.contains(cut), "\(alone)")
        try directory.write("db-wal", [1])
        try directory.write("db-shm", [1])
        let told = try diagnosis(key).explanation
        #expect(told.contains(beside + "-wal, -shm.") && told.contains(cut), "\(told)")
    }

    /// A raw key is not derived, so that nothing tells the two versions apart. A passphrase does.
    @Test func olderFormats() throws {
        try make(.sqlCipher3)
        #expect(try diagnosis(.testing(1)).explanation.contains("was written by SQLCipher 2 or 3, and"))
        let key = try Key.passphrase("words")
        try FileManager.default.removeItem(atPath: path)
        try make(.sqlCipher3, key: key)
        let told = try diagnosis(key)
        #expect(told.finding == .olderFormat && !told.explanation.contains("2 or 3"), "\(told)")
    }

    // MARK: Damage

    /// A key is known by any of some pages, wherever they are.
    @Test(arguments: [[1], [1, 2], [1, 2, 3]]) func aKeyThatSomePageTells(damaged: [Int]) throws {
        try make()
        for page in damaged { try directory.overwrite("db", at: (page - 1) * 4096 + 300, with: [1, 2, 3, 4]) }
        #expect(try diagnosis(.testing(1)).finding == .damagedFirstPage)
        #expect(try diagnosis(.testing(2)).finding == .wrongKey)
    }

    /// The last page alone tells it, too.
    @Test func onlyTheLastPage() throws {
        try make()
        let size = try directory.bytes("db").count
        let last = try directory.bytes("db").suffix(4096)
        try directory.write(
            "db",
            directory.bytes("db").prefix(16) + [UInt8](repeating: 7, count: size - 4096 - 16) + last
        )
        #expect(try diagnosis(.testing(1)).finding == .damagedFirstPage)
    }

    /// Not by its mode: root may read everything.
    @Test func aFileThatMayNotBeRead() throws {
        let call = try FailedCall(
            "access db",
            EACCES,
            prepare: { directory in
                let database = try Database.testing(directory.file("db"))
                try database.fill(rows: 3)
                database.close()
            }
        ) { directory in try StoreDiagnosis.examine(path: directory.file("db"), key: nil) }
        #expect(call.value?.finding == .notPermitted, "\(call.error as Any)")
        #expect(call.value?.explanation.contains("may not be read by this user") == true)
    }

    // MARK: Checks

    @Test func aCheckThatIsStopped() throws {
        try make()
        struct Stop: Error {}
        let error = #expect(throws: DatabaseError.self) {
            try IntegrityReport.verify(path: path, key: .testing(1)) { _ in throw Stop() }
        }
        #expect(error?.reason == .interrupted && error?.underlyingError is Stop)
        #expect(error?.message.hasPrefix("The check did not come to its end, and nothing was changed") == true)
    }

}
