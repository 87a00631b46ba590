import Foundation
import Testing

@testable import SealedDB

/// Odd files, and how much is tried to tell what they are.
@Suite(.hangLimit, .enabled(if: isEncrypting, "needs a codec"))
struct DiagnosisOddityTests {
    private let directory: TemporaryDirectory

    init() throws { directory = try TemporaryDirectory() }

    private func diagnosis(
        _ key: Key?,
        _ settings: CipherSettings = .init(),
        allowsUnauthenticated: Bool = false
    ) throws -> StoreDiagnosis {
        try StoreDiagnosis.examine(
            path: directory.file("db"),
            key: key,
            cipherSettings: settings,
            allowsUnauthenticated: allowsUnauthenticated
        )
    }

    private func examination(_ key: Key, _ effort: StoreRecognition.Effort) throws -> StoreDiagnosis {
        var examination = StoreExamination(path: directory.file("db"), key: key, settings: .init(), effort: effort)
        let connection = try Connection(path: directory.file("db"), flags: SQLITE_OPEN_READONLY)
        defer { connection.close() }
        return try examination.examine(connection)
    }

    /// A log beside a plaintext file may have what the file lacks.
    @Test(arguments: [false, true]) func aPlaintextFileThatIsCutOff(hasLog: Bool) throws {
        let database = Database(path: directory.file("db"))
        #expect(database.open())
        try database.fill(rows: 300)
        database.close()
        try directory.write("db", directory.bytes("db").prefix(8192))
        if hasLog { try directory.write("db-wal", [1, 2, 3]) }
        #expect(try diagnosis(nil).finding == (hasLog ? .opens : .truncated))
    }

    /// What was tried is not said to be left out.
    @Test(arguments: [false, true]) func formatsWithoutCodes(isTried: Bool) throws {
        let database = try Database.testing(directory.file("db"))
        try database.fill(rows: 30)
        database.close()
        let diagnosis = try diagnosis(.testing(2), allowsUnauthenticated: isTried)
        #expect(diagnosis.finding == .wrongKey)
        #expect(diagnosis.explanation.contains("were not tried") != isTried, "\(diagnosis.explanation)")
    }

    @Test func theSettingsOfADamagedStore() throws {
        let database = try Database.testing(directory.file("db"))
        try database.fill(rows: 300)
        database.close()
        #expect(try diagnosis(.testing(1)).settingsOfSoundStore().isSame(as: .sqlCipher4))
        try directory.overwrite("db", at: 2 * 4096 + 100, with: [1, 2, 3, 4])
        let diagnosis = try diagnosis(.testing(1))
        #expect(diagnosis.damagedPages == [3])
        let error = #expect(throws: DatabaseError.self) { try diagnosis.settingsOfSoundStore() }
        #expect(error?.reason == .damaged)
    }

    /// A first page is damaged also if that in the journal is.
    @Test(arguments: [false, true]) func theFirstPageOfAJournal(isDamaged: Bool) throws {
        let database = try Database.testing(directory.file("db"), journalMode: .delete)
        try database.fill(rows: 300)
        try database.spillChanges()
        try database.execute(script: "BEGIN; CREATE TABLE u (a); UPDATE t SET body = body || 'x'")
        try directory.keep("db", "db-journal", of: database)
        let journal = try [UInt8](directory.bytes("db-journal"))
        let start = try #require(
            stride(from: 512, to: journal.count - 4104, by: 4104).first { journal[$0..<($0 + 4)] == [0, 0, 0, 1] }
        )
        try #require(start < 512 + 8 * 4104)
        try directory.overwrite("db", at: 100, with: [1, 2, 3, 4])
        if isDamaged { try directory.overwrite("db-journal", at: start + 4 + 100, with: [1, 2, 3, 4]) }
        #expect(try (diagnosis(.testing(1)).finding == .damagedFirstPage) == isDamaged)
    }

    // MARK: Efforts

    /// Without an effort nothing is derived that was not given.
    @Test func anOlderFormatAsGiven() throws {
        try FixtureFormat.olderFormats[2].make(directory.file("db"), key: .passphrase)
        let key = try FixtureKey.passphrase.key()
        #expect(try examination(key, .quick).finding == .olderFormat)
        #expect(try examination(key, .asGiven).finding == .wrongKey)
    }

    @Test func aPrereleaseAsGiven() throws {
        try FixtureFormat.prereleases[0].make(directory.file("db"), key: .raw)
        let key = try FixtureKey.raw.key()
        #expect(try examination(key, .quick).finding == .prereleaseFormat)
        #expect(try examination(key, .asGiven).finding == .wrongKey)
    }
}
