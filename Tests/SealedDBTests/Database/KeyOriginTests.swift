import Foundation
import Testing

@testable import SealedDB

/// Databases and queues whose keys come from sources and rings.
@Suite(.hangLimit, .enabled(if: isEncrypting, "needs a codec"))
struct KeyOriginTests {
    private let directory: TemporaryDirectory
    private let path: String

    init() throws {
        directory = try TemporaryDirectory()
        path = directory.file("db")
    }

    private func makeStore(_ key: Key) throws {
        for suffix in ["", "-wal", "-shm"] { try? FileManager.default.removeItem(atPath: path + suffix) }
        let database = Database(path: path, configuration: Configuration(key: key))
        try database.openVerified()
        try database.fill(rows: 10)
        database.close()
    }

    @discardableResult
    private func writeKey(_ name: String, _ byte: UInt8) throws -> String {
        try directory.write(name, [UInt8](repeating: byte, count: 32))
    }

    private func opened(_ configuration: Configuration) throws -> Database {
        let database = Database(path: path, configuration: configuration)
        try database.openVerified()
        #expect(try database.integers("SELECT count(*) FROM t") == [10])
        return database
    }

    private func census(_ queue: DatabaseQueue) throws -> [Int] {
        try queue.inDatabase { db in try db.integers("SELECT count(*) FROM t") }
    }

    private func failure(_ configuration: Configuration) throws -> DatabaseError {
        try #require(throws: DatabaseError.self) {
            try Database(path: path, configuration: configuration).openVerified()
        }
    }

    // MARK: Configuration

    @Test func theLastOriginCounts() throws {
        var configuration = Configuration(keySource: .keyFile("/k"))
        #expect(configuration.key == nil && configuration.keyRing == nil)
        #expect(configuration.keySource?.description == "key file /k")
        configuration.keyRing = try KeyRing(activeID: "a", key: .testing(1))
        #expect(configuration.keySource == nil && configuration.keyRing?.activeID == "a")
        configuration.key = try .testing(2)
        #expect(try configuration.keyRing == nil && configuration.key == .testing(2))
        configuration.keyRing = nil
        #expect(configuration.key == nil)
    }

    // MARK: Sources

    @Test func aSourceIsReadOnceForManyConnections() throws {
        try makeStore(.testing(1))
        let calls = Guarded(0)
        let configuration = Configuration(
            keySource: .closure {
                calls.withLock { $0 += 1 }
                return try .testing(1)
            }
        )
        let databases = try (0..<3).map { _ in try opened(configuration) }
        #expect(calls.withLock { $0 } == 1)
        for database in databases {
            #expect(database.keyID == nil && !database.needsRotation)
            database.close()
        }
        let queue = try DatabaseQueue(path: path, configuration: configuration)
        queue.close()
        #expect(try census(queue) == [10])
        #expect(calls.withLock { $0 } == 1)
    }

    @Test func passphrasesOfASourceAreDerivedOnce() throws {
        try makeStore(.passphrase("open sesame"))
        let file = try directory.write("p", "open sesame\n".utf8)
        let configuration = Configuration(keySource: .passphraseFile(file))
        for _ in 0..<4 { _ = try opened(configuration) }
        let key = try #require(try opened(configuration).fittingKey?.key)
        #expect(key.derivedKeys?.derivationCount == 1)
    }

    @Test func aSourceIsReadAnewWhenItsKeyNoLongerFits() throws {
        try makeStore(.testing(1))
        let file = try writeKey("key", 1)
        let queue = try DatabaseQueue(path: path, configuration: Configuration(keySource: .keyFile(file)))
        queue.close()
        try KeyRotation(path: path, from: .testing(1), to: .testing(2)).run()
        let error = #expect(throws: DatabaseError.self) { try census(queue) }
        #expect(error?.reason == .wrongKey && error?.message.contains("With the key file \(file)") == true)
        unlink(file)
        let missing = #expect(throws: DatabaseError.self) { try census(queue) }
        #expect(missing?.reason == .noSuchFile)
        try writeKey("key", 2)
        #expect(try census(queue) == [10])
    }

    @Test func rotationOutlivesASourceThatLagsBehind() throws {
        try makeStore(.testing(1))
        let configuration = Configuration(keySource: .keyFile(try writeKey("key", 1)))
        let queue = try DatabaseQueue(path: path, configuration: configuration)
        try queue.rotateKey(to: .testing(2))
        queue.close()
        #expect(try census(queue) == [10])
        #expect(try failure(configuration).reason == .wrongKey)
        try writeKey("key", 2)
        _ = try opened(configuration)
        // Rotated again elsewhere, the source counts again.
        queue.close()
        try KeyRotation(path: path, from: .testing(2), to: .testing(3)).run()
        try writeKey("key", 3)
        #expect(try census(queue) == [10])
    }

    @Test func anUnreadableSourceFailsTheOpeningAndMakesNoFile() throws {
        let absent = try failure(Configuration(keySource: .keyFile(directory.file("absent"))))
        #expect(absent.reason == .noSuchFile)
        let open = try directory.write("key", [UInt8](repeating: 1, count: 32), mode: 0o644)
        #expect(try failure(Configuration(keySource: .keyFile(open))).reason == .unsafeKeyFile)
        #expect(throws: DatabaseError.self) {
            try DatabaseQueue(path: path, configuration: Configuration(keySource: .keyFile(open)))
        }
        #expect(directory.names == ["key"])
    }

    @Test func settingAKeyDisplacesTheSource() throws {
        try makeStore(.testing(0xAB))
        let database = Database(
            path: path,
            configuration: Configuration(keySource: .keyFile(try writeKey("key", 0xAB)))
        )
        try database.openVerified()
        #expect(database.setKey("x'" + String(repeating: "ab", count: 32) + "'"))
        #expect(database.configuration.keySource == nil)
        #expect(try database.integers("SELECT count(*) FROM t") == [10])
    }

    @Test func aDatabaseInMemoryIsSavedUnderTheSourcesKey() throws {
        let source = KeySource.keyFile(try writeKey("key", 1))
        let memory = Database(path: nil, configuration: Configuration(keySource: source))
        try memory.openVerified()
        try memory.fill(rows: 10)
        try memory.save(toFile: path)
        #expect(try StoreInfo.inspect(path: path, key: nil).kind == .encrypted)
        _ = try opened(Configuration(key: .testing(1)))
    }

    @Test func aDatabaseWithASourceKeepsItsFilesSealed() throws {
        try makeStore(.testing(1))
        let source = KeySource.keyFile(try writeKey("key", 1))
        let database = try opened(Configuration(keySource: source))
        let image = try database.serialized()
        #expect(image.range(of: Data("secret row".utf8)) == nil)
        let copy = try Database.opening(serialized: image, configuration: Configuration(keySource: source))
        #expect(try copy.integers("SELECT count(*) FROM t") == [10])
        // Neither is its key inherited nor a plaintext file made.
        let error = #expect(throws: DatabaseError.self) { try database.attach(directory.file("other"), as: "o") }
        #expect(error?.reason == .keyRequired)
        #expect(!directory.names.contains("other"))
    }

    /// Other keys are for a store that does not open with the key that a rotation gave it. They do not help against
    /// other errors.
    @Test func otherKeysAreTriedOnlyWhenTheAdoptedOneIsWrong() throws {
        let origin = KeyOrigin.key(try .testing(1))
        let adopted = try Key.testing(2)
        let codes: [(Int32, DatabaseError.Reason, [Key])] = [
            (SQLITE_BUSY, .busy, [adopted]), (SQLITE_NOTADB, .wrongKey, [adopted, try .testing(1)]),
        ]
        for (code, reason, keys) in codes {
            let failure = DatabaseError(extendedCode: code, reason: reason, message: "no")
            var tried: [Key] = []
            let error = #expect(throws: DatabaseError.self) {
                try origin.open("db", adopted: adopted) { (key) throws(DatabaseError) -> Void in
                    tried.append(key)
                    throw failure
                }
            }
            #expect(error == failure)
            #expect(tried == keys)
        }
    }

    // MARK: Rings

    @Test func aDatabaseInMemoryIsLoadedWithAnyKeyOfTheRing() throws {
        try makeStore(.testing(1))
        let memory = Database(path: nil, configuration: Configuration(keyRing: try ring(active: "k2")))
        try memory.openVerified()
        try memory.load(fromFile: path)
        #expect(try memory.integers("SELECT count(*) FROM t") == [10])
        try memory.save(toFile: directory.file("copy"))
        let copy = Database(path: directory.file("copy"), configuration: Configuration(key: try .testing(2)))
        try copy.openVerified()
        #expect(try copy.integers("SELECT count(*) FROM t") == [10])
        try makeStore(.testing(9))
        let error = #expect(throws: DatabaseError.self) { try memory.load(fromFile: path) }
        #expect(error?.reason == .wrongKey)
        #expect(try memory.integers("SELECT count(*) FROM t") == [10])
    }

    private func ring(active: String) throws -> KeyRing {
        var ring = try KeyRing(activeID: "k2", key: .testing(2))
        try ring.add(.testing(1), id: "k1")
        try ring.add(.keyFile(writeKey("k3", 3)), id: "k3")
        try ring.activate(active)
        return ring
    }

    @Test(arguments: [UInt8(1), 2, 3], ["k1", "k2", "k3"])
    func anyKeyOfTheRingOpens(byte: UInt8, active: String) throws {
        try makeStore(.testing(byte))
        let database = try opened(Configuration(keyRing: ring(active: active)))
        #expect(database.keyID == "k\(byte)")
        #expect(database.needsRotation == (active != "k\(byte)"))
    }

    @Test func newStoresGetTheActiveKey() throws {
        for id in ["k1", "k3"] {
            let database = Database(
                path: directory.file("db-\(id)"),
                configuration: Configuration(keyRing: try ring(active: id))
            )
            try database.openVerified()
            #expect(database.keyID == id && !database.needsRotation)
        }
        _ = try Database.testing(directory.file("db-k1"), key: 1)
        _ = try Database.testing(directory.file("db-k3"), key: 3)
    }

    @Test func noKeyOfTheRingOpens() throws {
        try makeStore(.testing(9))
        let before = try directory.bytes("db")
        let error = try failure(Configuration(keyRing: ring(active: "k2")))
        #expect(error.reason == .wrongKey && error.code == SQLITE_NOTADB)
        #expect(error.message.contains("k2, k1, k3") && error.message.contains(path), "\(error)")
        #expect(try directory.bytes("db") == before)
    }

    @Test func keysThatCannotBeReadAreNamed() throws {
        try makeStore(.testing(1))
        var ring = try KeyRing(activeID: "gone", source: .keyFile(directory.file("absent")))
        let none = try failure(Configuration(keyRing: ring))
        #expect(none.reason == .noSuchFile && none.message.contains("gone: "), "\(none)")
        try ring.add(.testing(2), id: "wrong")
        let some = try failure(Configuration(keyRing: ring))
        #expect(some.reason == .wrongKey && some.message.contains("tried were wrong"), "\(some)")
        #expect(some.message.contains("gone: Cannot read"), "\(some)")
        try ring.add(.testing(1), id: "right")
        #expect(try opened(Configuration(keyRing: ring)).keyID == "right")
    }

    @Test func otherErrorsThanAWrongKeyEndTheSearch() throws {
        let plain = Database(path: path)
        plain.open()
        try plain.fill(rows: 10)
        plain.close()
        let error = try failure(Configuration(keyRing: ring(active: "k1")))
        #expect(error.reason == .plaintext)
    }

    @Test func rotationToTheActiveKeyAndBeyond() throws {
        try makeStore(.testing(1))
        let ring = try ring(active: "k2")
        let queue = try DatabaseQueue(path: path, configuration: Configuration(keyRing: ring))
        func state() throws -> [String?] {
            try queue.inDatabase { db in [db.keyID, db.needsRotation ? "due" : "done"] }
        }
        #expect(try state() == ["k1", "due"])
        try queue.rotateKey(to: ring.activeKey())
        #expect(try state() == ["k2", "done"])
        queue.close()
        #expect(try state() == ["k2", "done"])
        // A key that the ring does not have.
        try queue.rotateKey(to: .testing(7))
        #expect(try state() == [nil, "due"])
        queue.close()
        #expect(try state() == [nil, "due"])
        #expect(try failure(Configuration(keyRing: ring)).reason == .wrongKey)
    }

    @Test func failedRotationGoesOnWithTheOldKey() throws {
        try makeStore(.testing(1))
        let queue = try DatabaseQueue(path: path, configuration: Configuration(keyRing: ring(active: "k2")))
        #expect(throws: DatabaseError.self) {
            try queue.rotateKey(to: .testing(2)) { _ in throw CancellationError() }
        }
        #expect(try queue.inDatabase { db in db.keyID } == "k1")
        #expect(try census(queue) == [10])
    }

    @Test func aRingFileIsReadAnewAtEachOpening() throws {
        try makeStore(.testing(2))
        let file = directory.file("ring")
        try KeyRing(activeID: "k2", key: .testing(2)).write(toNewFile: file)
        let configuration = Configuration(keyRing: try KeyRing(contentsOfFile: file))
        let queue = try DatabaseQueue(path: path, configuration: configuration)
        #expect(try queue.inDatabase { db in db.needsRotation } == false)
        queue.close()
        try KeyRing.update(file: file) { ring throws(DatabaseError) in
            try ring.add(.keyFile(directory.file("new")), id: "new")
            try ring.activate("new")
        }
        // The new key is not there yet, and not needed.
        #expect(try queue.inDatabase { db in db.needsRotation } == true)
        #expect(configuration.keyRing?.activeID == "new")
        queue.close()
        try KeyRotation(path: path, from: .testing(2), to: .testing(5)).run()
        try writeKey("new", 5)
        #expect(try queue.inDatabase { db in [db.keyID, db.needsRotation ? "due" : "done"] } == ["new", "done"])
        // The file that the ring refers to is read anew as well.
        queue.close()
        try KeyRotation(path: path, from: .testing(5), to: .testing(6)).run()
        try writeKey("new", 6)
        #expect(try queue.inDatabase { db in db.keyID } == "new")
        queue.close()
        try directory.write("ring", "nonsense\n".utf8)
        // A ring that cannot be read takes no key away that is known.
        #expect(try census(queue) == [10])
        queue.close()
        try KeyRotation(path: path, from: .testing(6), to: .testing(7)).run()
        let error = #expect(throws: DatabaseError.self) { try census(queue) }
        #expect(error?.reason == .malformedKeyRing)
    }

    @Test func passphrasesOfARingFileAreDerivedOnce() throws {
        try makeStore(.passphrase("open sesame"))
        try directory.write("p", "open sesame\n".utf8)
        let file = directory.file("ring")
        var ring = try KeyRing(activeID: "raw", key: .testing(1))
        try ring.add(.passphraseFile(directory.file("p")), id: "words")
        try ring.write(toNewFile: file)
        let configuration = Configuration(keyRing: try KeyRing(contentsOfFile: file))
        for _ in 0..<4 { #expect(try opened(configuration).keyID == "words") }
        #expect(try opened(configuration).fittingKey?.key.derivedKeys?.derivationCount == 1)
    }

    @Test func withKeyTriesOneAfterTheOther() throws {
        try makeStore(.testing(3))
        let ring = try ring(active: "k1")
        var tried: [String] = []
        let report = try ring.withKey(toOpen: path) { key, id in
            tried.append(id)
            return try IntegrityReport.verify(path: path, key: key)
        }
        #expect(report.isSound && tried == ["k1", "k2", "k3"])
        let error = #expect(throws: DatabaseError.self) {
            try ring.withKey(toOpen: "it") { _, _ in
                throw DatabaseError(extendedCode: SQLITE_NOTADB, reason: .wrongKey, message: "")
            }
        }
        #expect(error?.reason == .wrongKey && error?.message.contains("k1, k2, k3") == true)
        #expect(throws: CancellationError.self) { try ring.withKey(toOpen: "it") { _, _ in throw CancellationError() } }
    }
}
