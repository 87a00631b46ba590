import Foundation
import Testing

@testable import SealedDB

/// A ring is asked for keys while a rotation puts the store under one that was tried already.
@Suite(.hangLimit, .enabled(if: isEncrypting, "needs a codec"))
struct KeyRingRaceTests {
    private let directory: TemporaryDirectory
    private let path: String
    private let ringPath: String

    init() throws {
        directory = try TemporaryDirectory()
        path = directory.file("db")
        ringPath = directory.file("ring")
        let store = try Database.testing(path)
        try store.fill(rows: 10)
        store.close()
    }

    /// A ring of the key 2, which is active, and 1, which the store has until somebody asks for it: then it gets the next
    /// key of the list, and so on.
    private func racingRing(_ keys: [UInt8]) throws -> KeyRing {
        let state = Guarded((current: 1 as UInt8, next: keys))
        let path = path
        var ring = try KeyRing(activeID: "new", key: .testing(2))
        let source = KeySource.closure {
            let (from, to) = state.withLock { state in
                defer { if !state.next.isEmpty { state.current = state.next.removeFirst() } }
                return (state.current, state.next.first)
            }
            if let to { try KeyRotation(path: path, from: .testing(from), to: .testing(to)).run() }
            return try .testing(1)
        }
        try ring.add(source, id: "old")
        return ring
    }

    private func census(_ configuration: Configuration) throws -> [Int] {
        let database = Database(path: path, configuration: configuration)
        try database.openVerified()
        defer { database.close() }
        return try database.integers("SELECT count(*) FROM t")
    }

    @Test func aStoreThatIsRotatedBetweenTwoKeys() throws {
        let ring = try racingRing([2])
        let id = try ring.withKey(toOpen: path) { key, id in
            let rows = try census(Configuration(key: key))
            #expect(rows == [10])
            return id
        }
        #expect(id == "new")
    }

    @Test func aDatabaseWithSuchARing() throws {
        let database = Database(path: path, configuration: Configuration(keyRing: try racingRing([2])))
        try database.openVerified()
        #expect(database.keyID == "new" && !database.needsRotation)
        database.close()
    }

    /// The ring gets its new key while the old one is being tried.
    @Test func aRingThatIsChangedBetweenTwoKeys() throws {
        try KeyRing(activeID: "old", key: .testing(1)).write(toNewFile: ringPath)
        var isFirst = true
        let id = try KeyRing(contentsOfFile: ringPath).withKey(toOpen: path) { key, id in
            if isFirst {
                isFirst = false
                let third = try Key.testing(3)
                try KeyRing.update(file: ringPath) { ring throws(DatabaseError) in
                    try ring.add(third, id: "new")
                    try ring.activate("new")
                }
                try KeyRotation(path: path, from: .testing(1), to: .testing(3)).run()
            }
            let rows = try census(Configuration(key: key))
            #expect(rows == [10])
            return id
        }
        #expect(id == "new")
    }

    /// Somebody who never stops rotating keeps nobody waiting for ever.
    @Test func theRoundsHaveAnEnd() throws {
        let ring = try KeyRing(activeID: "a", key: .testing(9))
        var calls = 0
        let error = try #require(throws: DatabaseError.self) {
            try ring.withKey(toOpen: path) { key, _ in
                calls += 1
                try Data("\(calls)".utf8).write(to: URL(fileURLWithPath: path), options: .atomic)
                throw DatabaseError(extendedCode: SQLITE_NOTADB, reason: .wrongKey, message: "no")
            }
        }
        #expect(error.reason == .wrongKey && error.message.contains("tried were a"))
        #expect(calls == KeyRing.maximumRounds)
    }

    @Test func nothingIsTriedAgainWhereNothingHasChanged() throws {
        let ring = try KeyRing(activeID: "a", key: .testing(9))
        var calls = 0
        #expect(throws: DatabaseError.self) {
            try ring.withKey(toOpen: path) { key, _ in
                calls += 1
                _ = try census(Configuration(key: key))
            }
        }
        #expect(calls == 1)
    }

    // MARK: A ring that cannot be read

    @Test(arguments: ["gone", "open to others", "garbage"])
    func aKnownKeyOpensWithoutTheFile(_ state: String) throws {
        try KeyRing(activeID: "a", key: .testing(1)).write(toNewFile: ringPath)
        let configuration = Configuration(keyRing: try KeyRing(contentsOfFile: ringPath))
        let database = Database(path: path, configuration: configuration)
        try database.openVerified()
        let pool = DatabasePool(path: path, configuration: configuration)
        let text = try directory.bytes("ring")
        switch state {
        case "gone": unlink(ringPath)
        case "open to others": #expect(chmod(ringPath, 0o644) == 0)
        default: try directory.write("ring", "nonsense".utf8)
        }
        database.close()
        try database.openVerified()
        #expect(try database.integers("SELECT count(*) FROM t") == [10])
        #expect(database.keyID == "a")
        let counted = try pool.read { db in try db.integers("SELECT count(*) FROM t") }
        #expect(counted == [10])
        pool.releaseAllDatabases()
        // After a rotation in the service too, whose key the file does not tell.
        try database.rotateKey(to: .testing(2))
        database.close()
        try database.openVerified()
        #expect(database.keyID == nil && database.needsRotation)
        database.close()
        // A program that starts now has no other keys, and says what the matter is.
        let error = try #require(throws: DatabaseError.self) { try census(configuration) }
        #expect(error.message.contains(ringPath), "\(error.message)")
        #expect(error.reason != .wrongKey)
        try directory.write("ring", text)
        let wrong = try #require(throws: DatabaseError.self) { try census(configuration) }
        #expect(wrong.reason == .wrongKey)
    }
}
