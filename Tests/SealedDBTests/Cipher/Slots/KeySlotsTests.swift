import Foundation
import Testing

@testable import SealedDB

@Suite(.hangLimit, .enabled(if: isEncrypting, "the plain build has no keys"))
struct KeySlotsTests {
    @Test func anySlotOpens() throws {
        let store = try SlotStore()
        #expect(try store.count(1) == 20)
        #expect(try store.count(2) == 20)
        #expect(try store.refusal(.testing(3)).reason == .wrongKey)
        #expect(try store.refusal(.passphrase("open sesame")).reason == .wrongKey)
        #expect(try store.bytes(0) == store.bytes(1))
        let report = try store.slots(2).list()
        #expect(report.generation == 1 && report.slots.map(\.label) == ["ops", "safe"] && report.hasRecovery)
        #expect(report == (try KeySlots.unverifiedList(path: store.path)))
        #expect(KeySlots.problems(path: store.path).isEmpty)
    }

    /// What the article tells to do without this library.
    @Test func stockShellOpensWithTheDataKey() throws {
        let store = try SlotStore()
        let key = try store.dataKey()
        let lines = try StockShell.run(store.path, "PRAGMA key = \"x'\(key)'\"; SELECT count(*) FROM t;")
        #expect(lines == ["20"])
        for file in store.directory.names {
            let bytes = try store.directory.bytes(file)
            #expect(bytes.range(of: Data(key.utf8)) == nil, "\(file)")
        }
    }

    @Test func storesWithoutSlotsAreWhatTheyWere() throws {
        let directory = try TemporaryDirectory()
        let database = try Database.testing(directory.file("app.db"))
        try database.fill(rows: 3)
        database.close()
        #expect(directory.namesOfFiles == ["app.db"])
        #expect(
            try StockShell.run(directory.file("app.db"), FixtureKey.pragma(1) + "SELECT name FROM sqlite_schema;") == [
                "t"
            ]
        )
        #expect(throws: DatabaseError.self) { try KeySlots(path: directory.file("app.db"), key: .testing(1)).list() }
    }

    @Test func addedSlotsAreTried() throws {
        let store = try SlotStore()
        let file = try store.directory.write("new.key", String(repeating: "05", count: 32).utf8)
        let report = try store.slots().add(.init(.key(KeySource.keyFile(file).key()), label: "new"))
        #expect(report.slots.map(\.label) == ["ops", "safe", "new"] && report.generation == 2)
        #expect(try store.count(5) == 20)
        let same = try #require(throws: DatabaseError.self) {
            try store.slots().add(.init(.key(.testing(6)), label: "new"))
        }
        #expect(same.reason == .alreadyExists)
        let twice = try #require(throws: DatabaseError.self) {
            try store.slots().add(.init(.key(.testing(2)), label: "again"))
        }
        #expect(twice.reason == .alreadyExists && twice.message.contains("safe"))
        for label in ["", "a b", "ä", String(repeating: "x", count: 65), String(repeating: "a", count: 64)] {
            #expect(throws: DatabaseError.self) { try store.slots().add(.init(.key(.testing(6)), label: label)) }
        }
        #expect(try store.slots().list().generation == 2)
    }

    /// A source that gives another key the second time would lock its holder out.
    @Test func sourcesThatGiveAnotherKeyAreRefused() throws {
        let store = try SlotStore()
        let calls = Guarded(UInt8(20))
        let key = try KeySource.closure {
            try .testing(
                calls.withLock {
                    $0 += 1; return $0
                }
            )
        }.key()
        let error = try #require(throws: DatabaseError.self) { try store.slots().add(.init(.key(key), label: "new")) }
        #expect(error.reason == .keySourceFailed)
        #expect(try store.slots().list().slots.map(\.label) == ["ops", "safe"])
    }

    /// The key was right when the slot was made, and another one when it was tried.
    @Test func slotsThatDoNotOpenAreRemovedAgain() throws {
        let store = try SlotStore()
        let calls = Guarded(0)
        let key = try KeySource.closure {
            try .testing(
                calls.withLock {
                    $0 += 1; return $0
                } < 3 ? 5 : 6
            )
        }.key()
        let error = try #require(throws: DatabaseError.self) { try store.slots().add(.init(.key(key), label: "new")) }
        #expect(error.message.contains("removed again"))
        #expect(try store.slots().list().slots.map(\.label) == ["ops", "safe"])
        #expect(try store.refusal(.testing(5)).reason == .wrongKey)
    }

    /// The store remembers a later generation of slots whose files are gone.
    @Test func newSlotsBesideWhatIsRemembered() throws {
        let store = try SlotStore()
        for label in ["a", "b", "c"] {
            let number = try #require(label.utf8.first) - 90
            _ = try store.slots().add(.init(.key(.testing(number)), label: label))
        }
        let key = try Array(store.dataKey().utf8).withUnsafeBytes { try Key.raw(hexadecimal: $0) }
        for file in store.files { #expect(unlink(file) == 0) }
        let report = try KeySlots(path: store.path, key: key).initialize([
            .init(.key(.testing(1)), label: "ops"), .init(.key(.testing(2)), label: "safe", isRecovery: true),
        ])
        #expect(report.generation == 1)
        for number: UInt8 in [1, 2] { #expect(try store.count(number) == 20) }
    }

    @Test func removedSlotsOpenNothing() throws {
        let store = try SlotStore()
        let own = try #require(throws: DatabaseError.self) { try store.slots(1).remove("ops") }
        #expect(own.reason == .notAllowed && own.message.contains("this key opens"))
        #expect(try store.slots(2).remove("ops").slots.map(\.label) == ["safe"])
        #expect(try store.refusal(.testing(1)).reason == .wrongKey)
        #expect(try store.count(2) == 20)
        let last = try #require(throws: DatabaseError.self) { try store.slots(2).remove("safe") }
        #expect(last.reason == .notAllowed)
        let none = try #require(throws: DatabaseError.self) { try store.slots(2).remove("ops") }
        #expect(none.reason == .noSuchFile)
        #expect(try store.count(2) == 20)
    }

    @Test func renaming() throws {
        let store = try SlotStore()
        #expect(try store.slots().rename("ops", to: "operations").slots.map(\.label) == ["operations", "safe"])
        #expect(throws: DatabaseError.self) { try store.slots().rename("operations", to: "safe") }
        #expect(throws: DatabaseError.self) { try store.slots().rename("ops", to: "x") }
        #expect(try store.count() == 20)
    }

    @Test func passphrasesAreDerivedOnce() throws {
        let store = try SlotStore(slots: [
            .init(.key(.testing(1)), label: "ops"), .quick("open sesame", label: "on-call"),
        ])
        let key = try Key.passphrase("open sesame")
        for _ in 0..<3 { #expect(try store.count(key) == 20) }
        let pool = DatabasePool(path: store.path, configuration: Configuration(key: key))
        #expect(try pool.inDatabase { try $0.integers("SELECT count(*) FROM t") } == [20])
        pool.releaseAllDatabases()
        #expect(key.slotKeys.derivationCount == 1 && key.derivedKeys?.derivationCount == 0)
        #expect(try store.refusal(.passphrase("open sesam")).reason == .wrongKey)
        #expect(try store.slots().list().slots[1].derivation == "scrypt 32768 8 1")
    }

    @Test func usualPassphrases() throws {
        let store = try SlotStore()
        let key = try Key.passphrase("open sesame")
        #expect(try store.slots().add(.init(.key(key), label: "on-call")).slots[2].derivation == "scrypt 131072 8 1")
        #expect(try store.count(.passphrase("open sesame")) == 20)
    }

    @Test func ringsAndSources() throws {
        let store = try SlotStore()
        var ring = try KeyRing(activeID: "new", key: .testing(7))
        try ring.add(.testing(2), id: "old")
        let database = Database(path: store.path, configuration: Configuration(keyRing: ring))
        try database.openVerified()
        #expect(database.keyID == "old" && database.needsRotation)
        try database.rotateKey(to: .testing(7))
        #expect(database.keyID == "new" && !database.needsRotation)
        #expect(try database.integers("SELECT count(*) FROM t") == [20])
        database.close()
        #expect(try store.slots(7).list().slots.map(\.label) == ["ops", "safe"])
        #expect(try store.refusal(.testing(2)).reason == .wrongKey)
        let file = try store.directory.write("ops.key", String(repeating: "01", count: 32).utf8)
        let queue = try DatabaseQueue(path: store.path, configuration: Configuration(keySource: .keyFile(file)))
        #expect(try queue.inDatabase { try $0.integers("SELECT count(*) FROM t") } == [20])
        queue.close()
    }

    @Test func attaching() throws {
        let store = try SlotStore()
        let database = try Database.testing(store.directory.file("main.db"), key: 9)
        try database.attach(store.path, as: "other", key: .testing(2))
        #expect(try database.integers("SELECT count(*) FROM other.t") == [20])
        #expect(throws: DatabaseError.self) { try database.attach(store.path, as: "third", key: .testing(3)) }
        database.close()
    }

    @Test func theDataKeyItselfOpens() throws {
        let store = try SlotStore()
        let connection = try Connection(path: store.path, flags: SQLITE_OPEN_READONLY)
        let opened = try SlotFiles(store: store.path).open(with: .testing(1), salt: connection.mainFileHeader())
        connection.close()
        #expect(try store.count(opened.fixedKey()) == 20)
        #expect(throws: DatabaseError.self) {
            try KeySlots(path: store.path, key: opened.fixedKey()).replace(with: .testing(5))
        }
    }

    @Test func storesThatExistGetSlots() throws {
        let directory = try TemporaryDirectory()
        let path = directory.file("app.db")
        let database = try Database.testing(path, journalMode: .wal)
        try database.fill(rows: 5)
        // Whoever uses it meanwhile goes on.
        let slots = try KeySlots(path: path, key: .testing(1)).initialize([
            .init(.key(.testing(1)), label: "main"), .init(.key(.testing(2)), label: "safe", isRecovery: true),
        ])
        #expect(slots.slots.count == 2)
        #expect(try database.integers("SELECT count(*) FROM t") == [5])
        database.close()
        for byte in [1, 2] as [UInt8] {
            let database = try Database.testing(path, key: byte)
            #expect(try database.integers("SELECT count(*) FROM t") == [5])
            database.close()
        }
        let again = try #require(throws: DatabaseError.self) {
            try KeySlots(path: path, key: .testing(1)).initialize([.init(.key(.testing(1)), label: "main")])
        }
        #expect(again.reason == .alreadyExists)
        #expect(throws: DatabaseError.self) { try KeySlots(path: path, key: .testing(1)).initialize([]) }
    }

    @Test func passphraseStoresGetSlots() throws {
        let directory = try TemporaryDirectory()
        let path = directory.file("app.db")
        let key = try Key.passphrase("open sesame")
        let database = Database(path: path, configuration: Configuration(key: key))
        try database.openVerified()
        try database.fill(rows: 5)
        database.close()
        _ = try KeySlots(path: path, key: key).initialize([
            .quick("open sesame", label: "main"), .init(.key(.testing(2)), label: "ops"),
        ])
        for key in [try Key.testing(2), try .passphrase("open sesame")] {
            let database = Database(path: path, configuration: Configuration(key: key))
            try database.openVerified()
            #expect(try database.integers("SELECT count(*) FROM t") == [5])
            #expect(key.derivedKeys?.derivationCount ?? 0 == 0)
            database.close()
        }
    }

    @Test func nothingIsMadeOverAnything() throws {
        let store = try SlotStore()
        let first = try #require(throws: DatabaseError.self) {
            try KeySlots.create(path: store.path, [.init(.key(.testing(1)), label: "ops")])
        }
        #expect(first.reason == .alreadyExists)
        #expect(try store.count() == 20)
        unlink(store.path)
        let bytes = try store.bytes()
        let second = try #require(throws: DatabaseError.self) {
            try KeySlots.create(path: store.path, [.init(.key(.testing(1)), label: "ops")])
        }
        #expect(second.reason == .alreadyExists)
        // Nor does a store without slots come into being beside them.
        let database = Database(path: store.path, configuration: Configuration(key: try .testing(1)))
        let third = try #require(throws: DatabaseError.self) { try database.openVerified() }
        #expect(third.reason == .alreadyExists)
        #expect(try store.bytes() == bytes)
    }
}

extension FixtureKey {
    static func pragma(_ byte: UInt8) -> String {
        "PRAGMA key = \"x'\(Hexadecimal.string([UInt8](repeating: byte, count: 32)))'\";"
    }
}
