import Foundation
import Testing

@testable import SealedDB

/// Keys derived here against those that SQLCipher derives.
@Suite(.hangLimit, .enabled(if: isEncrypting, "needs a codec"))
struct KeyDerivationTests {
    private let directory: TemporaryDirectory
    private let passphrase = "pässphrase 'with' \u{1F511}"

    init() throws {
        directory = try TemporaryDirectory()
    }

    /// A connection that SQLCipher keys with the passphrase, or with what is derived from it here.
    private func connection(
        _ pragmas: [String],
        derivation: KeyDerivation? = nil
    ) throws -> Connection {
        try Engine.requireCodec()
        let connection = try Connection(
            path: directory.file("db"),
            flags: SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE
        )
        if let derivation {
            let salt = try connection.mainFileHeader()
            let key = try Key.passphrase(passphrase).derived(salt: salt, by: derivation)
            #expect(try key.withKeySpec { spec throws(DatabaseError) in connection.key(spec) } == SQLITE_OK)
        } else {
            #expect(Array(passphrase.utf8).withUnsafeBytes { connection.key($0) } == SQLITE_OK)
        }
        for pragma in pragmas { try connection.run("PRAGMA \(pragma)") }
        return connection
    }

    private func expectSameKey(_ pragmas: [String], _ derivation: KeyDerivation) throws {
        let written = try connection(pragmas)
        try written.run("CREATE TABLE t AS SELECT 7 AS a")
        written.close()
        let read = try connection(pragmas, derivation: derivation)
        #expect(try read.integer("SELECT a FROM t") == 7)
        try read.run("INSERT INTO t VALUES (8)")
        read.close()
        let again = try connection(pragmas)
        #expect(try again.integer("SELECT sum(a) FROM t") == 15)
        again.close()
    }

    @Test(arguments: CipherSettings.Compatibility.allCases)
    func formats(_ format: CipherSettings.Compatibility) throws {
        let settings = CipherSettings(compatibility: format)
        try expectSameKey(["cipher_compatibility = \(format.rawValue)"], settings.parameters.keyDerivation)
    }

    @Test(arguments: [KeyDerivation.Algorithm.sha1, .sha256, .sha512], [1, 2, 1000])
    func settings(algorithm: KeyDerivation.Algorithm, iterations: Int) throws {
        let name = "PBKDF2_HMAC_\(algorithm)".uppercased()
        try expectSameKey(
            ["kdf_iter = \(iterations)", "cipher_kdf_algorithm = \(name)"],
            KeyDerivation(algorithm: algorithm, iterations: iterations)
        )
    }

    @Test func refusedByOpenSSL() throws {
        let secret = try SecretBytes(capacity: 1) { target throws(DatabaseError) in 1 }
        for iterations in [0, -1, Int(Int32.max) + 1] {
            let error = #expect(throws: DatabaseError.self) {
                try KeyDerivation(algorithm: .sha512, iterations: iterations).key(from: secret, salt: [1])
            }
            #expect(error?.reason == .unsupported)
        }
    }

    // MARK: Whole stores

    private func configuration(_ key: Key) -> Configuration {
        var configuration = Configuration(key: key)
        configuration.cipherSettings.kdfIterations = 1000
        return configuration
    }

    /// The stock library opens with the passphrase what was made here with it, and the reverse.
    @Test func storesOfTheLibrary() throws {
        let settings = ["kdf_iter = 1000"]
        let database = Database(path: directory.file("db"), configuration: configuration(try .passphrase(passphrase)))
        try database.openVerified()
        try database.executeUpdate("CREATE TABLE t AS SELECT 7 AS a", values: nil)
        database.close()
        let stock = try connection(settings)
        #expect(try stock.integer("SELECT a FROM t") == 7)
        stock.close()
        try FileManager.default.removeItem(atPath: directory.file("db"))
        let other = try connection(settings)
        try other.run("CREATE TABLE t AS SELECT 9 AS a")
        other.close()
        try database.openVerified()
        #expect(try database.integers("SELECT a FROM t") == [9])
    }

    @Test func newStoresHaveSaltsOfTheirOwn() throws {
        let key = try Key.passphrase(passphrase)
        var salts: Set<Data> = []
        for name in ["a", "b", "c", "a"] {
            try? FileManager.default.removeItem(atPath: directory.file(name))
            try Database(path: directory.file(name), configuration: configuration(key)).openVerified()
            salts.insert(try directory.bytes(name).prefix(16))
        }
        #expect(salts.count == 4)
    }

    @Test func passphraseInMemoryAndInATemporaryFile() throws {
        let key = try Key.passphrase(passphrase)
        for path in [nil, "", ":memory:"] {
            let database = Database(path: path, configuration: Configuration(key: key))
            try database.openVerified()
            try database.fill(rows: 10)
            #expect(try database.integers("SELECT count(*) FROM t") == [10])
        }
        #expect(key.derivedKeys?.derivationCount == 0)
    }

    // MARK: Once

    @Test func eightConnectionsDeriveOnce() throws {
        let key = try Key.passphrase(passphrase)
        let databases = (0..<8).map { _ in Database(path: directory.file("db"), configuration: configuration(key)) }
        for database in databases { try database.openVerified() }
        #expect(key.derivedKeys?.derivationCount == 1)
        let queue = try DatabaseQueue(path: directory.file("db"), configuration: configuration(key))
        for _ in 0..<3 {
            queue.close()
            #expect(try queue.inDatabase { db in try db.integers("SELECT count(*) FROM sqlite_schema") } == [0])
        }
        #expect(key.derivedKeys?.derivationCount == 1)
    }

    @Test func aPoolDerivesOnce() throws {
        let key = try Key.passphrase(passphrase)
        let pool = DatabasePool(path: directory.file("db"), configuration: configuration(key))
        let counts: [Int] = try pool.inDatabase { first in
            try first.fill(rows: 1)
            return try pool.inDatabase { _ in
                try pool.inDatabase { third in try third.integers("SELECT count(*) FROM t") }
            }
        }
        #expect(counts == [1])
        #expect(pool.countOfOpenDatabases == 3)
        #expect(key.derivedKeys?.derivationCount == 1)
    }

    @Test func eightThreadsAtOnceDeriveOnce() throws {
        try Database(path: directory.file("db"), configuration: configuration(.passphrase(passphrase))).openVerified()
        let key = try Key.passphrase(passphrase)
        let (path, configuration) = (directory.file("db"), configuration(key))
        DispatchQueue.concurrentPerform(iterations: 8) { _ in
            #expect(throws: Never.self) { try Database(path: path, configuration: configuration).openVerified() }
        }
        #expect(key.derivedKeys?.derivationCount == 1)
    }

    @Test func eachSaltAndSettingOnce() throws {
        let key = try Key.passphrase(passphrase)
        for _ in 0..<2 {
            for name in ["a", "b"] {
                try Database(path: directory.file(name), configuration: configuration(key)).openVerified()
            }
        }
        #expect(key.derivedKeys?.derivationCount == 2)
        let other = Database(path: directory.file("a"), configuration: Configuration(key: key))
        let error = #expect(throws: DatabaseError.self) { try other.openVerified() }
        #expect(error?.reason == .wrongKey)
        // And the diagnosis has looked whether it is of SQLCipher 3 or 2.
        #expect(key.derivedKeys?.derivationCount == 5)
    }

    @Test func attachedFilesAreDerivedOnce() throws {
        let key = try Key.passphrase(passphrase)
        let path = directory.file("other")
        for round in 0..<3 {
            let database = try Database.testing(directory.file("db"))
            try database.attach(path, as: "o", key: key)
            try database.executeUpdate("CREATE TABLE o.t\(raw: round) (a)", values: nil)
            database.close()
        }
        #expect(key.derivedKeys?.derivationCount == 1)
        let stock = try Connection(path: path, flags: SQLITE_OPEN_READWRITE)
        #expect(Array(passphrase.utf8).withUnsafeBytes { stock.key($0) } == SQLITE_OK)
        #expect(try stock.integer("SELECT count(*) FROM sqlite_schema") == 3)
        stock.close()
        let database = try Database.testing(directory.file("db"))
        try database.attach(":memory:", as: "m", key: key)
        try database.executeUpdate("CREATE TABLE m.t (a)", values: nil)
        let error = #expect(throws: DatabaseError.self) {
            try database.attach(path, as: "o", key: .passphrase("wrong"))
        }
        #expect(error?.reason == .wrongKey)
    }

    @Test func serializedImagesOpenWithThePassphrase() throws {
        let configuration = configuration(try .passphrase(passphrase))
        let database = Database(path: directory.file("db"), configuration: configuration)
        try database.openVerified()
        try database.fill(rows: 10)
        let image = try database.serialized()
        let copy = try Database.opening(serialized: image, configuration: self.configuration(.passphrase(passphrase)))
        #expect(try copy.integers("SELECT count(*) FROM t") == [10])
        let wrong = self.configuration(try .passphrase("wrong"))
        let error = #expect(throws: DatabaseError.self) {
            try Database.opening(serialized: image, configuration: wrong)
        }
        #expect(error?.reason == .wrongKey)
    }

    /// With a plaintext header the salt is not in the file.
    @Test func saltsOutsideTheFile() throws {
        var configuration = configuration(try .passphrase(passphrase))
        configuration.cipherSettings.plaintextHeaderSize = 32
        configuration.cipherSettings.salt = (0..<16).map { $0 }
        let database = Database(path: directory.file("db"), configuration: configuration)
        try database.openVerified()
        try database.fill(rows: 10)
        database.close()
        let stock = try connection([
            "kdf_iter = 1000", "cipher_plaintext_header_size = 32",
            "cipher_salt = \"x'\(Hexadecimal.string((0..<16).map { UInt8($0) }))'\"",
        ])
        #expect(try stock.integer("SELECT count(*) FROM t") == 10)
        stock.close()
        try database.openVerified()
        #expect(configuration.key?.derivedKeys?.derivationCount == 1)
    }

    @Test func olderKeysGiveWay() throws {
        let key = try Key.passphrase(passphrase)
        let derivation = KeyDerivation(algorithm: .sha1, iterations: 1)
        for round in 1...2 {
            for number in 0..<300 {
                _ = try key.derived(salt: [UInt8(number & 255), UInt8(number >> 8)], by: derivation)
            }
            #expect(key.derivedKeys?.derivationCount == 300 * round)
        }
    }

    @Test func rotationsDeriveOnceForEachSalt() throws {
        let (first, second) = (try Key.passphrase("first"), try Key.passphrase("second"))
        let database = Database(path: directory.file("db"), configuration: configuration(first))
        try database.openVerified()
        try database.fill(rows: 10)
        let salt = try directory.bytes("db").prefix(16)
        try database.rotateKey(to: second)
        #expect(try directory.bytes("db").prefix(16) != salt)
        #expect(first.derivedKeys?.derivationCount == 1)
        #expect(second.derivedKeys?.derivationCount == 1)
        // Back, by somebody else: the store has a third salt.
        database.close()
        let rotation = KeyRotation(
            path: directory.file("db"),
            from: second,
            to: first,
            cipherSettings: configuration(first).cipherSettings
        )
        try rotation.run()
        #expect(second.derivedKeys?.derivationCount == 1)
        #expect(first.derivedKeys?.derivationCount == 2)
        let reopened = Database(path: directory.file("db"), configuration: configuration(first))
        try reopened.openVerified()
        #expect(try reopened.integers("SELECT count(*) FROM t") == [10])
        #expect(first.derivedKeys?.derivationCount == 2)
    }

    @Test func rekeyingInPlaceDerivesOnceAndKeepsTheSalt() throws {
        let (first, second) = (try Key.passphrase("first"), try Key.passphrase("second"))
        let database = Database(path: directory.file("db"), configuration: configuration(first))
        try database.openVerified()
        try database.fill(rows: 10)
        database.close()
        let salt = try directory.bytes("db").prefix(16)
        let opening = StoreOpening(
            path: directory.file("db"),
            key: first,
            settings: configuration(first).cipherSettings
        )
        try InPlaceRekey(opening: opening, newKey: second).run()
        #expect(try directory.bytes("db").prefix(16) == salt)
        #expect(first.derivedKeys?.derivationCount == 1)
        #expect(second.derivedKeys?.derivationCount == 1)
        let reopened = Database(path: directory.file("db"), configuration: configuration(second))
        try reopened.openVerified()
        #expect(try reopened.integers("SELECT count(*) FROM t") == [10])
    }

    // MARK: Several creators

    @Test func creatorsAtOnceAgreeOnTheSalt() throws {
        for round in 0..<10 {
            let path = directory.file("db\(round)")
            // Keys of their own, as in processes of their own.
            let configurations = try (0..<4).map { _ in
                var configuration = configuration(try .passphrase(passphrase))
                configuration.busyTimeout = .seconds(60)
                return configuration
            }
            DispatchQueue.concurrentPerform(iterations: 4) { number in
                #expect(throws: Never.self) {
                    let database = Database(path: path, configuration: configurations[number])
                    try database.openVerified()
                    try database.executeUpdate("CREATE TABLE t\(raw: number) AS SELECT 1", values: nil)
                }
            }
            let database = Database(path: path, configuration: configuration(try .passphrase(passphrase)))
            try database.openVerified()
            #expect(try database.integers("SELECT count(*) FROM sqlite_schema") == [4])
        }
    }

    /// Step by step what happens to one whose store is created by another between its key and its first read.
    @Test func overtakenCreatorNoticesAndWritesNothing() throws {
        let path = directory.file("db")
        let settings = configuration(try .testing(1)).cipherSettings
        let flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE
        let slow = StoreOpening(path: path, key: try .passphrase(passphrase), settings: settings, flags: flags)
        let slowConnection = try Connection(path: path, flags: flags)
        try slow.applyKey(slow.key!, to: slowConnection)
        #expect(try slowConnection.integer("SELECT count(*) FROM sqlite_schema") == 0)
        var fast = slow
        fast.key = try .passphrase(passphrase)
        try fast.open().close()
        let before = try directory.bytes("db")
        let error = #expect(throws: DatabaseError.self) {
            try slowConnection.run("BEGIN IMMEDIATE; CREATE TABLE t (a)")
        }
        #expect(try slow.isOvertaken(slowConnection, by: #require(error)))
        slowConnection.close()
        #expect(try directory.bytes("db") == before)
        try slow.open().close()
        // A wrong passphrase is not taken for that.
        var wrong = slow
        wrong.key = try .passphrase("wrong")
        let connection = try Connection(path: path, flags: flags)
        try wrong.applyKey(wrong.key!, to: connection)
        let mismatch = #expect(throws: DatabaseError.self) { try connection.run("SELECT count(*) FROM sqlite_schema") }
        #expect(try !wrong.isOvertaken(connection, by: #require(mismatch)))
        connection.close()
    }
}
