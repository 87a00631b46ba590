import Foundation
import Testing

@testable import SealedDB

/// Before a key becomes the only one of some data, it is looked for where it was read.
@Suite(.hangLimit, .enabled(if: isEncrypting, "needs a codec"))
struct KeyConfirmationTests {
    private let directory: TemporaryDirectory

    init() throws {
        directory = try TemporaryDirectory()
    }

    /// Whatever gives data a key, with what is there before and where the data are afterwards.
    enum Operation: String, CaseIterable {
        case rotation, rotationOfWAL, databaseRotation, queueRotation, poolRotation, migration, encryption
        case backup, restore, restoreOver

        /// What the new key opens.
        var target: String {
            switch self {
            case .encryption, .backup, .restore: "new"
            default: "db"
            }
        }

        var isWAL: Bool { self == .rotationOfWAL || self == .queueRotation || self == .poolRotation }
    }

    private func prepare(_ operation: Operation) throws {
        let store = try Database.testing(directory.file("db"), journalMode: operation.isWAL ? .wal : .delete)
        try store.fill(rows: 40)
        store.close()
        let plain = Database(path: directory.file("plain"))
        #expect(plain.open())
        try plain.fill(rows: 40)
        plain.close()
        try StoreBackup(
            path: directory.file("db"),
            key: .testing(1),
            to: directory.file("copy"),
            backupKey: .testing(2)
        )
        .run()
        try directory.write("key", keyText(2))
    }

    private func keyText(_ byte: UInt8) -> [UInt8] {
        Array(String(repeating: "0" + String(byte, radix: 16), count: 32).utf8)
    }

    private func run(_ operation: Operation, _ newKey: Key, progress: (KeyRotation.Progress) throws -> Void) throws {
        let (db, new) = (directory.file("db"), directory.file("new"))
        let key = try Key.testing(1)
        try withoutActuallyEscaping(progress) { progress in
            switch operation {
            case .rotation, .rotationOfWAL: try KeyRotation(path: db, from: key, to: newKey).run(progress: progress)
            case .databaseRotation:
                let database = try Database.testing(db)
                defer { database.close() }
                try database.rotateKey(to: newKey, progress: progress)
            case .queueRotation:
                let queue = try DatabaseQueue(path: db, configuration: Configuration(key: key))
                defer { queue.close() }
                try queue.rotateKey(to: newKey, progress: progress)
            case .poolRotation:
                let pool = DatabasePool(path: db, configuration: Configuration(key: key))
                defer { pool.releaseAllDatabases() }
                try pool.rotateKey(to: newKey, progress: progress)
            case .migration:
                let settings = CipherSettings(pageSize: 8192)
                try StoreMigration(path: db, key: key, to: settings, newKey: newKey).run(progress: progress)
            case .encryption:
                try StoreEncryption(plaintextPath: directory.file("plain"), path: new, key: newKey)
                    .run(progress: progress)
            case .backup:
                try StoreBackup(path: db, key: key, to: new, backupKey: newKey).run(progress: progress)
            case .restore:
                try StoreRestore(backupPath: directory.file("copy"), key: newKey, to: new).run(progress: progress)
            case .restoreOver:
                try StoreRestore(backupPath: directory.file("copy"), key: newKey, to: db).run(progress: progress)
            }
        }
    }

    /// Nothing has the new key, and nothing is left behind.
    private func expectUnchanged(_ operation: Operation, _ comment: Comment) throws {
        let names = directory.namesOfFiles.filter { !$0.hasSuffix("-wal") && !$0.hasSuffix("-shm") }
        #expect(Set(names).subtracting(["key"]) == ["copy", "db", "plain"], comment)
        let store = try Database.testing(directory.file("db"))
        defer { store.close() }
        #expect(try store.integers("SELECT count(*) FROM t") == [40], comment)
        #expect(
            try store.integers("SELECT count(*) FROM pragma_journal_mode WHERE journal_mode = 'wal'")
                == [operation.isWAL ? 1 : 0],
            comment
        )
    }

    private func expectDone(_ operation: Operation, key: Key) throws {
        var configuration = Configuration(key: key)
        if operation == .migration { configuration.cipherSettings = CipherSettings(pageSize: 8192) }
        let store = Database(path: directory.file(operation.target), configuration: configuration)
        try store.openVerified()
        defer { store.close() }
        #expect(try store.integers("SELECT count(*) FROM t") == [40])
    }

    @Test func aKeyFileThatIsReplacedBeforeRekeyingInPlace() throws {
        try prepare(.rotation)
        let key = try KeySource.keyFile(directory.file("key")).key()
        try directory.write("key", keyText(3))
        let opening = StoreOpening(path: directory.file("db"), key: try .testing(1))
        let rekey = InPlaceRekey(opening: opening, newKey: key)
        let error = try #require(throws: DatabaseError.self) { try rekey.run() }
        #expect(error.reason == .keySourceFailed)
        #expect(error.message.contains("unchanged under the old key"))
        try expectUnchanged(.rotation, "rekeying in place")
    }

    @Test func aKeyFileThatIsReplacedBeforeANewStoreIsAttached() throws {
        try prepare(.rotation)
        let key = try KeySource.keyFile(directory.file("key")).key()
        let database = try Database.testing(directory.file("db"))
        defer { database.close() }
        try directory.write("key", keyText(3))
        // One that is there is proved by its pages.
        try database.attach(directory.file("copy"), as: "copy", key: key)
        let error = try #require(throws: DatabaseError.self) {
            try database.attach(directory.file("side"), as: "side", key: key)
        }
        #expect(error.reason == .keySourceFailed)
        #expect(!directory.namesOfFiles.contains("side"))
    }

    // MARK: Files

    @Test(arguments: Operation.allCases)
    func aKeyFileThatIsReplacedMeanwhile(_ operation: Operation) throws {
        try prepare(operation)
        let key = try KeySource.keyFile(directory.file("key")).key()
        let error = try #require(throws: DatabaseError.self) {
            try run(operation, key) { state in
                if state.phase == .swap { try directory.write("key", keyText(3)) }
            }
        }
        #expect(error.reason == .keySourceFailed)
        #expect(error.message.contains("key file \(directory.file("key"))"))
        #expect(!error.message.contains("0303"))
        try expectUnchanged(operation, "\(operation)")
    }

    @Test(arguments: Operation.allCases)
    func aKeyFileThatIsGoneOrOpenToOthers(_ operation: Operation) throws {
        try prepare(operation)
        let key = try KeySource.keyFile(directory.file("key")).key()
        let open = try #require(throws: DatabaseError.self) {
            try run(operation, key) { state in
                if state.phase == .swap { #expect(chmod(directory.file("key"), 0o644) == 0) }
            }
        }
        #expect(open.reason == .unsafeKeyFile)
        try expectUnchanged(operation, "\(operation), open to others")
        try directory.write("key", keyText(2))
        let gone = try #require(throws: DatabaseError.self) {
            try run(operation, key) { state in
                if state.phase == .swap { unlink(directory.file("key")) }
            }
        }
        #expect(gone.reason == .noSuchFile)
        #expect(gone.message.contains(directory.file("key")))
        try expectUnchanged(operation, "\(operation), gone")
        // Whoever keeps it elsewhere says so.
        try run(operation, key.detached) { _ in }
        try expectDone(operation, key: .testing(2))
    }

    @Test(arguments: Operation.allCases)
    func aKeyFileThatIsWrittenAnewWithTheSameKey(_ operation: Operation) throws {
        try prepare(operation)
        let key = try KeySource.keyFile(directory.file("key")).key()
        try run(operation, key) { state in
            if state.phase == .swap { try directory.write("key", keyText(2)) }
        }
        try expectDone(operation, key: .testing(2))
    }

    // MARK: Others

    @Test(arguments: Operation.allCases)
    func aSourceThatGivesAnotherKeyEachTime(_ operation: Operation) throws {
        try prepare(operation)
        let calls = Guarded(1 as UInt8)
        let source = KeySource.closure {
            try .testing(
                calls.withLock { calls in
                    calls += 1
                    return calls
                }
            )
        }
        let error = try #require(throws: DatabaseError.self) { try run(operation, try source.key()) { _ in } }
        #expect(error.reason == .keySourceFailed)
        #expect(error.message.contains("key from a closure"))
        try expectUnchanged(operation, "\(operation)")
    }

    @Test func aCommandThatGivesAnotherKeyEachTime() throws {
        try prepare(.rotation)
        let counter = directory.file("count")
        let script = "n=$(cat \(counter) 2>/dev/null); echo x$n >\(counter); printf %064d ${#n}"
        let key = try KeySource.keyCommand(["/bin/sh", "-c", script]).key()
        let error = try #require(throws: DatabaseError.self) { try run(.rotation, key) { _ in } }
        #expect(error.reason == .keySourceFailed)
        #expect(error.message.contains("/bin/sh"))
        unlink(counter)
        try expectUnchanged(.rotation, "command")
    }

    @Test func aPassphraseIsDerivedAnew() throws {
        try prepare(.rotation)
        try directory.write("pass", "correct horse\n".utf8)
        let key = try KeySource.passphraseFile(directory.file("pass")).key()
        try run(.rotation, key) { _ in }
        try expectDone(.rotation, key: .passphrase("correct horse"))
    }

    /// A queue's callers do not wait for a slow source: the closure could not have a turn otherwise.
    @Test func aSlowSourceKeepsNobodyWaiting() throws {
        try prepare(.queueRotation)
        let queue = try DatabaseQueue(path: directory.file("db"), configuration: Configuration(key: .testing(1)))
        let isRotating = Guarded(false)
        let counts = Guarded<[Int]>([])
        // The queue keeps the key, and that the closure.
        let source = KeySource.closure { [weak queue] in
            if let queue, isRotating.withLock({ $0 }) {
                let count = try queue.inDatabase { db in try db.integers("SELECT count(*) FROM t") }
                counts.withLock { $0 += count }
            }
            return try .testing(2)
        }
        let key = try source.key()
        isRotating.withLock { $0 = true }
        try queue.rotateKey(to: key)
        queue.close()
        #expect(counts.withLock { $0 } == [40])
        try expectDone(.queueRotation, key: .testing(2))
    }

    // MARK: Rings

    @Test func aRingThatLosesTheKeyMeanwhile() throws {
        try prepare(.rotation)
        let path = directory.file("ring")
        var ring = try KeyRing(activeID: "old", key: .testing(1))
        try ring.add(.testing(2), id: "new")
        try ring.activate("new")
        try ring.write(toNewFile: path)
        let key = try KeyRing(contentsOfFile: path).activeKey()
        let error = try #require(throws: DatabaseError.self) {
            try run(.rotation, key) { state in
                guard state.phase == .swap else { return }
                try KeyRing.update(file: path) { ring throws(DatabaseError) in
                    try ring.activate("old")
                    try ring.remove("new")
                }
            }
        }
        #expect(error.message.contains(path))
        unlink(path)
        try expectUnchanged(.rotation, "ring")
    }

    /// A ring that names a file is no better than that.
    @Test func aRingWhoseFileIsReplacedMeanwhile() throws {
        try prepare(.rotation)
        let path = directory.file("ring")
        try KeyRing(activeID: "new", source: .keyFile(directory.file("key"))).write(toNewFile: path)
        let key = try KeyRing(contentsOfFile: path).activeKey()
        let error = try #require(throws: DatabaseError.self) {
            try run(.rotation, key) { state in
                if state.phase == .swap { try directory.write("key", keyText(3)) }
            }
        }
        #expect(error.reason == .keySourceFailed)
        unlink(path)
        try expectUnchanged(.rotation, "ring")
    }

    // MARK: New stores

    @Test func aNewStoreOfAKeyThatIsGone() throws {
        let path = try directory.write("key", keyText(2))
        let source = KeySource.closure {
            defer { unlink(path) }
            return try KeySource.keyFile(path).key()
        }
        for configuration in [
            Configuration(keySource: source), Configuration(keyRing: try KeyRing(activeID: "a", source: source)),
        ] {
            try directory.write("key", keyText(2))
            let database = Database(path: directory.file("db"), configuration: configuration)
            let error = try #require(throws: DatabaseError.self) { try database.openVerified() }
            #expect(error.message.contains("Nothing was written"))
            #expect(try directory.bytes("db").isEmpty)
        }
    }

    @Test func aDatabaseInMemoryThatIsSaved() throws {
        try directory.write("key", keyText(2))
        let memory = Database(
            path: nil,
            configuration: Configuration(keySource: .keyFile(directory.file("key")))
        )
        try memory.openVerified()
        try memory.fill(rows: 40)
        try directory.write("key", keyText(3))
        let error = try #require(throws: DatabaseError.self) { try memory.save(toFile: directory.file("db")) }
        #expect(error.reason == .keySourceFailed)
        #expect(directory.names == ["key"])
        try directory.write("key", keyText(2))
        try memory.save(toFile: directory.file("db"))
        memory.close()
        try expectDone(.rotation, key: .testing(2))
    }

    /// What is found done is made to last too.
    @Test func aRotationThatIsFoundDone() throws {
        try prepare(.rotation)
        let key = try KeySource.keyFile(directory.file("key")).key()
        let rotation = try KeyRotation(path: directory.file("db"), from: .testing(1), to: key)
        try rotation.run()
        #expect(try rotation.isDone())
        unlink(directory.file("key"))
        let error = try #require(throws: DatabaseError.self) { try rotation.isDone() }
        #expect(error.message.contains("has the new key"))
    }

    // MARK: Syncing

    @Test func whatCannotBeSyncedIsItsOwners() throws {
        let virtual = open("/proc/self/status", O_RDONLY)
        defer { close(virtual) }
        #expect(fsync(virtual) == -1)
        try FileSystem.synchronizeIfPossible(virtual, "/proc/self/status")
        #expect(throws: DatabaseError.self) { try FileSystem.synchronizeIfPossible(-1, "nothing") }
    }
}
