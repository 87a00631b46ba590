import Foundation
import Testing

@testable import SealedDB

/// Files of slots that somebody has damaged, changed, exchanged or put back.
@Suite(.hangLimit, .enabled(if: isEncrypting, "the plain build has no keys"))
struct SlotTamperingTests {
    private let store: SlotStore

    init() throws {
        store = try SlotStore()
    }

    /// One damaged file is no loss, and the next opening repairs it.
    @Test(arguments: [0, 1], ["missing", "empty", "cut off", "changed", "foreign", "a directory"])
    func oneFileIsEnough(number: Int, how: String) throws {
        let whole = try store.bytes()
        let file = store.files[number]
        switch how {
        case "missing": unlink(file)
        case "empty": try store.write([], to: [number])
        case "cut off": try store.write(Array(whole.prefix(100)), to: [number])
        case "changed":
            let text = try store.text.replacingOccurrences(of: "generation 1", with: "generation 2")
            try store.write(Array(text.utf8), to: [number])
        case "foreign": try store.write(SlotStore().bytes(), to: [number])
        default:
            unlink(file)
            mkdir(file, 0o700)
        }
        #expect(KeySlots.problems(path: store.path).count == 1)
        let reader = try IntegrityReport.verify(path: store.path, key: .testing(2))
        #expect(reader.isSound)
        #expect(try store.count(1) == 20)
        #expect(try store.bytes(0) == whole)
        #expect(try store.bytes(1) == whole)
        let problems = KeySlots.problems(path: store.path)
        #expect(problems.count == (how == "missing" ? 0 : 1) && problems.allSatisfy { $0.contains("put aside") })
    }

    @Test func withoutEitherFileNothingOpens() throws {
        let key = try Key.testing(1)
        #expect(try store.count(key) == 20)
        for file in store.files { unlink(file) }
        #expect(try store.refusal(.testing(1)).reason == .wrongKey)
        // Nor by a key that knows the data key from before.
        let error = try store.refusal(key)
        #expect(error.reason == .wrongKey && error.message.contains("bring them"))
        #expect(try StoreDiagnosis.examine(path: store.path, key: key).finding == .wrongKey)
    }

    /// What the data key of the store did not write is not lost when the file is repaired.
    @Test(arguments: ["foreign", "a store", "changed"])
    func strangersStay(how: String) throws {
        let whole = try store.bytes()
        let stranger =
            switch how {
            case "foreign": try SlotStore().bytes()
            case "changed": Array(try store.text.replacingOccurrences(of: "generation 1", with: "generation 9").utf8)
            default:
                try { () throws in
                    let other = try SlotStore()
                    return Array(try Data(contentsOf: URL(fileURLWithPath: other.path)))
                }()
            }
        for number in [0, 1] {
            try store.write(stranger, to: [number])
            #expect(try store.count() == 20)
            #expect(try store.bytes(number) == whole)
            let kept = store.directory.names.filter { $0.contains(".kept-") }
            #expect(kept.count == 1)
            for name in kept {
                #expect(try Array(store.directory.bytes(name)) == stranger)
                unlink(store.directory.file(name))
            }
        }
    }

    /// What a later version wrote is left alone by openings. The other file serves, unless the store remembers newer slots.
    @Test(arguments: [0, 1])
    func laterVersionsAreLeftAlone(number: Int) throws {
        let whole = try store.bytes()
        let later = Array(try store.text.replacingOccurrences(of: "sealdb-slots 1\n", with: "sealdb-slots 2\n").utf8)
        try store.write(later, to: [number])
        #expect(try store.count() == 20)
        #expect(try store.bytes(number) == later && store.bytes(1 - number) == whole)
        try store.write(later)
        #expect(try store.refusal(.testing(1)).reason == .unsupported)
        try store.write(whole)
        _ = try store.slots().rename("ops", to: "x")
        try store.write(later, to: [number])
        try store.write(whole, to: [1 - number])
        #expect(try store.refusal(.testing(1)).reason == .olderSlots)
    }

    @Test func costsAreLimitedTogether() throws {
        let costly = try SlotStore(slots: [.init(.key(.testing(1)), label: "ops"), .quick("a", label: "a")])
        let text = try costly.text.replacingOccurrences(of: "scrypt 32768 ", with: "scrypt 1048576 ")
        try costly.write(text)
        // The code is wrong, but nothing was derived to find that out with a raw key.
        #expect(try costly.refusal(.testing(1)).reason == .malformedSlots)
        let lines = text.split(separator: "\n").map(String.init)
        let again = [lines[6].replacingOccurrences(of: "slot 2 ", with: "slot 3 ") + "b", lines[7]]
        try costly.write((lines[..<8] + again + lines[8...]).joined(separator: "\n") + "\n")
        let error = try costly.refusal(.testing(1))
        #expect(error.reason == .unsupported && error.message.contains("together"))
    }

    @Test func changesOfBothAreRefused() throws {
        let text = try store.text
        // A slot of somebody else, who knows neither key nor data key.
        let lines = text.split(separator: "\n", omittingEmptySubsequences: false).map(String.init)
        let foreign = try SlotStore(slots: [
            .init(.key(.testing(7)), label: "ops"), .init(.key(.testing(1)), label: "own"),
        ])
        let foreignLines = try foreign.text.split(separator: "\n").map(String.init)
        var exchanged = lines
        exchanged[5] = foreignLines[5]
        try store.write(exchanged.joined(separator: "\n"))
        #expect(try store.refusal(.testing(2)).reason == .malformedSlots)
        #expect(try store.refusal(.testing(7)).reason == .wrongKey)
        #expect(try store.refusal(.testing(1)).reason == .wrongKey)
        // The wraps of two slots, exchanged.
        var swapped = lines
        swapped.swapAt(5, 7)
        try store.write(swapped.joined(separator: "\n"))
        #expect(try store.refusal(.testing(1)).reason == .wrongKey)
        // A slot left out; a label and a generation changed.
        var without = lines
        without.removeSubrange(6...7)
        for changed in [
            without.joined(separator: "\n"), text.replacingOccurrences(of: " safe", with: " spare"),
            text.replacingOccurrences(of: "generation 1", with: "generation 3"),
            text.replacingOccurrences(of: "recovery", with: "use"),
        ] {
            try store.write(changed)
            #expect(try store.refusal(.testing(1)).reason == .malformedSlots)
        }
        try store.write(text)
        #expect(try store.count() == 20)
    }

    @Test func aStrangersSlots() throws {
        let other = try SlotStore()
        try store.write(other.text)
        let error = try store.refusal(.testing(1))
        #expect(error.reason == .malformedSlots && error.message.contains("another salt"))
        // Beside a store that never had any.
        let path = store.directory.file("plain.db")
        let database = try Database.testing(path)
        try database.fill(rows: 1)
        database.close()
        try Data(other.bytes()).write(to: URL(fileURLWithPath: path + ".slots"))
        let plain = Database(path: path, configuration: Configuration(key: try .testing(1)))
        #expect(try #require(throws: DatabaseError.self) { try plain.openVerified() }.reason == .malformedSlots)
        unlink(path + ".slots")
        try plain.openVerified()
        plain.close()
    }

    @Test func olderSlotsAreRefused() throws {
        let old = try store.text
        _ = try store.slots(2).remove("ops")
        let removed = try store.text
        try store.write(old)
        for byte in [1, 2] as [UInt8] {
            #expect(try store.refusal(.testing(byte)).reason == .olderSlots)
            #expect(throws: DatabaseError.self) { try store.slots(byte).list() }
        }
        // Accepted, they become the newest; those that were the newest are then refused.
        #expect(try store.slots(1, acceptsOlder: true).test().label == "ops")
        #expect(try store.count(1) == 20)
        try store.write(removed)
        #expect(try store.refusal(.testing(2)).reason == .olderSlots)
    }

    @Test func configurationsAcceptOlderSlots() throws {
        let old = try store.text
        let key = try Key.testing(1)
        _ = try store.slots(2).rename("ops", to: "x")
        let pin = try store.slots().pin()
        #expect(pin.generation == 2)
        var configuration = Configuration(key: key)
        func opens() throws {
            let database = Database(path: store.path, configuration: configuration)
            try database.openVerified()
            #expect(try database.integers("SELECT count(*) FROM t") == [20])
            database.close()
        }
        configuration.slotPin = pin
        try opens()
        try store.write(old)
        #expect(try #require(throws: DatabaseError.self) { try opens() }.reason == .olderSlots)
        configuration.slotPin = nil
        #expect(try #require(throws: DatabaseError.self) { try opens() }.reason == .olderSlots)
        configuration.isReadOnly = true
        #expect(try #require(throws: DatabaseError.self) { try opens() }.reason == .olderSlots)
        configuration.acceptsOlderSlots = true
        try opens()
        configuration.isReadOnly = false
        try opens()
        // A pin is not about what the store remembers.
        configuration.slotPin = pin
        #expect(try #require(throws: DatabaseError.self) { try opens() }.reason == .olderSlots)
    }

    /// Who puts the store and its slots back together, or another store in its place, is found out by the pin alone.
    @Test func pins() throws {
        let copy = store.directory.file("copy")
        for ending in ["", ".slots", ".slots.2"] {
            try FileManager.default.copyItem(atPath: store.path + ending, toPath: copy + ending)
        }
        let first = try store.slots().pin()
        _ = try store.slots(2).rename("ops", to: "x")
        let second = try store.slots().pin()
        #expect(first.store == second.store && first.dataKey == second.dataKey)
        func refusal(_ path: String, _ pin: KeySlots.Pin) -> DatabaseError? {
            var configuration = Configuration(keySource: .closure { try .testing(1) })
            configuration.slotPin = pin
            let database = Database(path: path, configuration: configuration)
            defer { database.close() }
            do throws(DatabaseError) {
                try database.openVerified()
                return nil
            } catch { return error }
        }
        #expect(refusal(copy, first) == nil && refusal(store.path, first) == nil && refusal(store.path, second) == nil)
        #expect(refusal(copy, second)?.reason == .olderSlots)
        let other = try SlotStore()
        #expect(refusal(other.path, first)?.message.contains("another store's") == true)
        _ = try store.slots().reencrypt()
        #expect(refusal(store.path, second)?.message.contains("another data key") == true)
        for ending in [".slots", ".slots.2"] { unlink(copy + ending) }
        #expect(refusal(copy, first)?.reason == .olderSlots)
    }

    /// The table is one that SQL can change.
    @Test func whatTheStoreRemembersMayBeAnything() throws {
        for generation in [Int64.max, .max >> 1] {
            try store.tamper("UPDATE sealdb_slots SET generation = \(generation)")
            #expect(try store.refusal(.testing(1)).reason == .olderSlots)
            #expect(try store.slots(1, acceptsOlder: true).test().label == "ops")
            #expect(try store.count() == 20)
        }
        try store.tamper("DROP TABLE sealdb_slots", "CREATE TABLE sealdb_slots (mine)")
        #expect(try store.count() == 20)
        let bytes = try store.bytes()
        let error = try #require(throws: DatabaseError.self) { try self.store.slots().rename("ops", to: "x") }
        #expect(error.reason == .alreadyExists)
        #expect(try store.bytes() == bytes)
    }

    @Test func nothingElseChangesWhatTheStoreRemembers() throws {
        let database = try store.open(.testing(1))
        for sql in [
            "UPDATE sealdb_slots SET generation = 9", "DELETE FROM main.Sealdb_Slots", "DROP TABLE sealdb_slots",
            "INSERT INTO sealdb_slots VALUES ('x', 9)", "ALTER TABLE sealdb_slots RENAME TO x",
            "CREATE TRIGGER x AFTER INSERT ON sealdb_slots BEGIN DELETE FROM t; END",
            "CREATE INDEX x ON sealdb_slots (store)",
            "WITH a AS (SELECT 1) REPLACE INTO sealdb_slots VALUES ('x', 9)",
        ] {
            #expect(!database.executeStatements(sql), "\(sql)")
            #expect("\(database.lastError())".contains("remembers its key slots"), "\(sql): \(database.lastError())")
        }
        #expect(try database.integers("SELECT generation FROM sealdb_slots") == [1])
        #expect(database.executeStatements("VACUUM; REINDEX; ANALYZE"), "\(database.lastError())")
        database.close()
        // One that is there all the same is not run.
        try store.tamper("CREATE TRIGGER x AFTER INSERT ON sealdb_slots BEGIN DELETE FROM t; END")
        let bytes = try store.bytes()
        #expect(throws: DatabaseError.self) { try self.store.slots().rename("ops", to: "x") }
        #expect(try store.bytes() == bytes)
        #expect(try store.count() == 20)
    }

    /// If the newest file is spoilt, it is not said that somebody has put older ones there, nor to accept them.
    @Test func olderSlotsBesideSpoiltOnes() throws {
        let old = try store.bytes()
        _ = try store.slots().rename("ops", to: "x")
        try store.write(old, to: [1])
        try store.write([], to: [0])
        let error = try store.refusal(.testing(1))
        #expect(error.reason == .olderSlots && error.message.contains("newline"))
        #expect(!error.message.contains("accept-older"))
    }

    /// Older slots are no false alarm while others change them.
    @Test func readersAndWritersAtOnce() async throws {
        let path = store.path
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask {
                for number in 0..<20 {
                    let slots = KeySlots(path: path, key: try .testing(1), busyTimeout: .seconds(60))
                    _ = try slots.rename(number % 2 == 0 ? "ops" : "x", to: number % 2 == 0 ? "x" : "ops")
                }
            }
            for isReadOnly in [true, false] {
                group.addTask {
                    for _ in 0..<60 {
                        var configuration = Configuration(key: try .testing(2))
                        configuration.isReadOnly = isReadOnly
                        configuration.busyTimeout = .seconds(60)
                        let database = Database(path: path, configuration: configuration)
                        try database.openVerified()
                        database.close()
                        _ = try StoreInfo.inspect(path: path, key: .testing(2))
                    }
                }
            }
            try await group.waitForAll()
        }
        #expect(try store.slots().list().generation == 21)
    }

    /// The file that is written first counts: a slot that was removed does not open by the second one.
    @Test func theSecondFileDoesNotBringSlotsBack() throws {
        let old = try store.bytes()
        _ = try store.slots(2).remove("ops")
        try store.write(old, to: [1])
        #expect(try store.refusal(.testing(1)).reason == .wrongKey)
        #expect(try store.count(2) == 20)
        #expect(try store.bytes(1) == store.bytes(0))
    }

    @Test func everyChangedByteOfBothIsNoticed() throws {
        let whole = try store.bytes()
        let header = try { () throws in
            let connection = try Connection(path: store.path, flags: SQLITE_OPEN_READONLY)
            defer { connection.close() }
            return try connection.mainFileHeader()
        }()
        let files = SlotFiles(store: store.path)
        for position in stride(from: 0, to: whole.count, by: 3) {
            var bytes = whole
            bytes[position] ^= 1
            try store.write(bytes)
            #expect(throws: DatabaseError.self, "byte \(position)") { try files.open(with: .testing(2), salt: header) }
        }
    }

    @Test func linksAreNotFollowed() throws {
        let elsewhere = store.directory.file("elsewhere")
        for file in store.files {
            rename(file, elsewhere)
            symlink(elsewhere, file)
        }
        #expect(throws: DatabaseError.self) { try self.store.count() }
    }
}
