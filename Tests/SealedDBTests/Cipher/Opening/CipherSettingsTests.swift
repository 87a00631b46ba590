import Foundation
import SealedDB
import Testing

@Suite(.hangLimit, .enabled(if: isEncrypting, "needs a codec"))
struct CipherSettingsTests {
    private let directory: TemporaryDirectory

    init() throws {
        directory = try TemporaryDirectory()
    }

    private func open(_ name: String, _ key: Key, _ settings: CipherSettings) throws -> Database {
        var configuration = Configuration(key: key)
        configuration.cipherSettings = settings
        let database = Database(path: directory.file(name), configuration: configuration)
        try database.openVerified()
        return database
    }

    @Test(arguments: FixtureFormat.all, FixtureKey.allCases)
    func whatTheStockShellWroteIsReadAndWritten(format: FixtureFormat, key: FixtureKey) throws {
        try format.make(directory.file("db"), key: key)
        let database = try open("db", key.key(), format.settings)
        #expect(try database.integers("SELECT count(*) FROM t") == [40])
        try database.executeUpdate("INSERT INTO t (body) VALUES ('from here')", values: nil)
        database.close()
        #expect(
            try StockShell.run(directory.file("db"), "\(key.pragma) \(format.pragmas) SELECT max(id), body FROM t;")
                == ["41|from here"]
        )
    }

    @Test(arguments: FixtureFormat.all)
    func whatIsWrittenHereTheStockShellReads(format: FixtureFormat) throws {
        let database = try open("db", .testing(0x5a), format.settings)
        try database.fill(rows: 40)
        database.close()
        let sql = "\(FixtureKey.raw.pragma) \(format.pragmas) SELECT count(*) FROM t; PRAGMA quick_check;"
        #expect(try StockShell.run(directory.file("db"), sql) == ["40"])
    }

    @Test(arguments: [16, 32, 64])
    func plaintextHeader(size: Int) throws {
        let settings = CipherSettings(plaintextHeaderSize: size, salt: FixtureFormat.salt)
        let passphrase = try Key.passphrase("p")
        let database = try open("db", passphrase, settings)
        try database.fill(rows: 50)
        database.close()
        let bytes = try directory.bytes("db")
        #expect(bytes.prefix(16) == Data("SQLite format 3\0".utf8))
        #expect(bytes[72..<92] != Data(count: 20))
        #expect(bytes.range(of: Data("secret row".utf8)) == nil)
        #expect(try open("db", passphrase, settings).integers("SELECT count(*) FROM t") == [50])
        let digits = FixtureFormat.salt.map { String(format: "%02x", $0) }.joined()
        let sql = """
            PRAGMA key = 'p'; PRAGMA cipher_plaintext_header_size = \(size); PRAGMA cipher_salt = "x'\(digits)'";
            SELECT count(*) FROM t;
            """
        #expect(try StockShell.run(directory.file("db"), sql) == ["50"])
        var otherSalt = settings
        otherSalt.salt = [UInt8](1...16)
        for wrong in [otherSalt, CipherSettings(plaintextHeaderSize: 48, salt: FixtureFormat.salt), .init()] {
            #expect(throws: DatabaseError.self) { try open("db", passphrase, wrong) }
        }
        #expect(try directory.bytes("db") == bytes)
    }

    @Test func plaintextHeaderWithTheSaltInTheKey() throws {
        let key = try FixtureKey.rawWithSalt.key()
        let settings = CipherSettings(plaintextHeaderSize: 32)
        try open("db", key, settings).fill(rows: 3)
        #expect(try open("db", key, settings).integers("SELECT count(*) FROM t") == [3])
    }

    /// A plaintext database must not be taken for a store with a plaintext header, nor written to.
    @Test func plaintextHeaderOnAPlaintextDatabase() throws {
        let plain = Database(path: directory.file("db"))
        plain.open()
        try plain.fill(rows: 3)
        plain.close()
        let before = try directory.bytes("db")
        let settings = CipherSettings(plaintextHeaderSize: 32, salt: FixtureFormat.salt)
        let error = #expect(throws: DatabaseError.self) { try open("db", .testing(1), settings) }
        #expect(error?.reason == .plaintext)
        #expect(try directory.bytes("db") == before)
    }

    @Test func invalidSettingsAreRefusedBeforeAnythingIsMade() throws {
        let salt = FixtureFormat.salt
        let bad: [(CipherSettings, FixtureKey)] = [
            (CipherSettings(pageSize: 1000), .raw), (CipherSettings(pageSize: 256), .raw),
            (CipherSettings(pageSize: 131_072), .raw), (CipherSettings(pageSize: 512), .raw),
            (CipherSettings(pageSize: 512, usesHMAC: false), .raw), (CipherSettings(kdfIterations: 0), .raw),
            (CipherSettings(kdfIterations: Int.max), .raw), (CipherSettings(plaintextHeaderSize: 20), .raw),
            (CipherSettings(plaintextHeaderSize: 32), .raw),
            (CipherSettings(plaintextHeaderSize: 32, salt: [1, 2]), .raw), (CipherSettings(salt: salt), .raw),
            (CipherSettings(plaintextHeaderSize: 32, salt: salt), .rawWithSalt),
            (CipherSettings(usesHMAC: false, plaintextHeaderSize: 32, salt: salt), .raw),
        ]
        for (settings, key) in bad {
            let error = #expect(throws: DatabaseError.self, "\(settings)") { try open("db", key.key(), settings) }
            #expect(error?.reason == .unusableSettings)
        }
        #expect(directory.names.isEmpty)
    }

    /// By somebody without the key. SQLite would believe it, and write what nothing reads.
    @Test(arguments: [(16, 0x20), (17, 1), (18, 9), (19, 0), (20, 0), (20, 79)] as [(Int, UInt8)], [32, 48, 64])
    func aHeaderInTheClearThatWasChanged(change: (offset: Int, value: UInt8), size: Int) throws {
        let settings = CipherSettings(plaintextHeaderSize: size, salt: FixtureFormat.salt)
        let database = try open("db", .testing(0x5a), settings)
        try database.fill(rows: 30)
        database.close()
        var bytes = try directory.bytes("db")
        let whole = bytes
        bytes[change.offset] = change.value
        try bytes.write(to: URL(fileURLWithPath: directory.file("db")))
        let error = #expect(throws: DatabaseError.self) { try open("db", .testing(0x5a), settings) }
        #expect(error?.reason == .damaged)
        #expect(try directory.bytes("db") == bytes)
        try whole.write(to: URL(fileURLWithPath: directory.file("db")))
        #expect(try open("db", .testing(0x5a), settings).integers("SELECT count(*) FROM t") == [30])
    }

    @Test func description() {
        #expect(CipherSettings().description == "SQLCipher 4")
        #expect(CipherSettings(pageSize: 4096).description == "SQLCipher 4")
        #expect(CipherSettings.sqlCipher1.description == "SQLCipher 1")
        #expect(
            CipherSettings(compatibility: .sqlCipher3, pageSize: 4096).description
                == "SQLCipher 3 with cipher_page_size = 4096"
        )
    }
}

@Suite(.hangLimit, .enabled(if: isEncrypting, "needs a codec"))
struct SQLCipherPragmaTests {
    /// The library itself is asked which pragmas it knows, so that a new one cannot go unnoticed.
    @Test func everyPragmaIsDocumented() throws {
        let documentation = try Documentation.text("SQLCipherPragmas.md")
        let path = try #require(EngineInfo.current().checks.first { $0.name == "object" }?.detail)
        let library = try Data(contentsOf: URL(fileURLWithPath: path))
        let words = library.split { !(UInt8(ascii: "a")...UInt8(ascii: "z")).contains($0) && $0 != UInt8(ascii: "_") }
            .filter { $0.count > 5 && $0.count < 60 }
            .map { String(decoding: $0, as: UTF8.self) }
        let pragmas = Set(words).filter { word in
            let isName = word.hasPrefix("cipher_") || word.hasSuffix("kdf_iter") || word == "rekey_cipher"
            guard isName || ["hexkey", "hexrekey", "textkey", "textrekey"].contains(word) else { return false }
            // As a text of its own, and not a part of a message.
            return library.range(of: Data([0] + word.utf8 + [0])) != nil
        }
        #expect(pragmas.count > 30)
        for pragma in pragmas { #expect(documentation.contains("`\(pragma)`"), "\(pragma)") }
    }
}
