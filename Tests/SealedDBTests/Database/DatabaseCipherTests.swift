import Foundation
import SealedDB
import Testing

@Suite(.hangLimit)
struct DatabaseCipherTests {
    private let directory: TemporaryDirectory

    init() throws {
        directory = try TemporaryDirectory()
    }

    /// A key of the configuration's own is replaced there; one that comes from elsewhere is asked for again.
    @Test(.enabled(if: isEncrypting, "needs a codec"))
    func theConfigurationHasTheNewKey() throws {
        let database = try Database.testing(directory.file("db"))
        try database.rotateKey(to: .testing(2))
        #expect(try database.configuration.key == .testing(2))
    }

    @Test(.enabled(if: isEncrypting, "needs a codec"))
    func whatTheEngineSaysOfItself() throws {
        let database = FMDatabase(path: directory.file("db"), configuration: Configuration(key: try .testing(1)))
        #expect(database.cipherVersion == nil && database.effectiveCipherSettings == nil)
        try database.openVerified()
        let stock = try StockShell.run(":memory:", "PRAGMA cipher_version;")
        #expect(database.cipherVersion?.split(separator: ".").first == stock.first?.split(separator: ".").first)
        #expect(database.cipherProvider == "openssl")
        #expect(database.cipherProviderVersion?.hasPrefix("OpenSSL") == true)
        #expect(["0", "1"].contains(database.cipherFipsStatus))
        #expect(database.effectiveCipherSettings?.isSame(as: .sqlCipher4) == true)
        #expect(database.cipherLogLevel != nil)
        #expect(!database.applyLicense("a license"))
        #expect((database.lastError() as? DatabaseError)?.reason == .unsupported)
        try database.addRandom(Data([1, 2, 3]))
        #expect(throws: DatabaseError.self) { try database.addRandom(Data()) }
    }

    /// With a header in plaintext the salt is not in the file: only these settings have it.
    @Test(.enabled(if: isEncrypting, "needs a codec"))
    func theSettingsHaveTheSalt() throws {
        let settings = CipherSettings(plaintextHeaderSize: 32, salt: FixtureFormat.salt)
        var configuration = Configuration(key: try .testing(1))
        configuration.cipherSettings = settings
        let database = Database(path: directory.file("db"), configuration: configuration)
        try database.openVerified()
        try database.executeUpdate("CREATE TABLE t (a)")
        let effective = try #require(database.effectiveCipherSettings)
        #expect(effective.isSame(as: settings))
        database.close()
        configuration.cipherSettings = effective
        let again = Database(path: directory.file("db"), configuration: configuration)
        try again.openVerified()
        #expect(again.tableExists("t"))
    }

    @Test(.enabled(if: isEncrypting, "needs a codec"))
    func withoutAKey() throws {
        let database = Database(path: directory.file("db"))
        database.open()
        #expect(database.cipherVersion != nil)
        #expect(database.cipherProvider == nil && database.cipherFipsStatus == nil)
        #expect(database.effectiveCipherSettings == nil)
        #expect(throws: DatabaseError.self) { try database.addRandom(Data([1])) }
    }

    @Test(.enabled(if: isEncrypting, "needs a codec"))
    func aLogThatCannotBeSet() throws {
        let database = Database(path: directory.file("absent/db"))
        #expect(!database.enableCipherLogging(.error) && database.hadError())
        #expect(!database.disableCipherLogging())
    }

    @Test(.enabled(if: !isEncrypting, "for the plain build"))
    func plainBuildHasNone() throws {
        let database = Database(path: directory.file("db"))
        database.open()
        #expect(database.cipherVersion == nil && database.cipherStatus == nil && database.cipherLogLevel == nil)
        #expect(!database.applyLicense("x") && !database.enableCipherLogging(CipherLogLevelError))
        #expect(!database.disableCipherLogging())
        #expect(throws: DatabaseError.self) { try database.addRandom(Data([1])) }
        #expect(throws: DatabaseError.self) { try EngineInfo.enableMemorySecurity() }
        #expect(throws: DatabaseError.self) { try database.attach(directory.file("o"), as: "o", key: .testing(1)) }
        try database.attach(directory.file("o"), as: "o")
        try database.executeUpdate("CREATE TABLE o.t (a)", values: nil)
        try database.detach("o")
    }

    @Test(.enabled(if: isEncrypting, "needs a codec"))
    func logIsSilentUntilAskedFor() throws {
        let outcome = try Probe.run("CipherProbe", "log", directory.path)
        #expect(outcome.status == 0)
        #expect(
            outcome.lines == [
                "true error", "false Optional(unsupported)", "false Optional(unsupported)", "true none",
            ]
        )
        // Only between the second and the third mark.
        #expect(outcome.errors.starts(with: ["before", "enabled"]))
        #expect(outcome.errors.last == "disabled")
        #expect(outcome.errors.count > 3 && outcome.errors.contains { $0.contains("hmac check failed") })
    }

    @Test(.enabled(if: isEncrypting, "needs a codec"))
    func memorySecurity() throws {
        let outcome = try Probe.run("CipherProbe", "memory", directory.path)
        let expected = ["false true", "true memory security is on", "true true"]
        #expect(outcome.status == 0 && outcome.lines == expected, "\(outcome.lines), \(outcome.errors)")
    }

    /// Where URI filenames cannot be switched off, no name is attached that the text of the statement does not show.
    @Test(.enabled(if: isEncrypting, "needs a codec"))
    func namesThatMayBeURIs() throws {
        let lines = try Probe.run("CipherProbe", "uris", directory.path).lines
        #expect(lines.count == 6 && lines.first == "true" && lines.last == "true", "\(lines)")
        for line in lines.dropFirst().prefix(2) { #expect(line.contains("has switched URI filenames on"), "\(lines)") }
        #expect(lines.dropFirst(3).first?.contains("URI filenames are refused") == true, "\(lines)")
        #expect(lines.dropFirst(4).first == "attached", "\(lines)")
    }

    /// Others in the process may change SQLCipher's defaults; no store of ours gets them.
    @Test(.enabled(if: isEncrypting, "needs a codec"))
    func defaultsOfOthers() throws {
        let outcome = try Probe.run("CipherProbe", "defaults", directory.path)
        #expect(outcome.status == 0, "\(outcome.errors)")
        #expect(
            outcome.lines == [String](repeating: "true", count: 6) + [
                "Optional(true)", "unusable settings", "Optional(unusable settings)", "Optional(unusable settings)",
                "Optional(unusable settings)", "executed", "false", "true", "true", "true",
            ],
            "\(outcome.lines)"
        )
        // A file that was attached with a key is created before its settings are looked at.
        #expect(directory.namesOfFiles.filter { $0 != "attached" } == ["copy", "db"])
        #expect(
            try StockShell.run(
                directory.file("db"),
                "PRAGMA key = \"x'\(String(repeating: "01", count: 32))'\"; SELECT count(*) FROM t;"
            ) == ["0"]
        )
    }
}
