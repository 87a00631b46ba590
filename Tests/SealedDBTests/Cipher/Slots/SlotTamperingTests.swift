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
        #expect(KeySlots.problems(path: store.path).count == (how == "foreign" || how == "changed" ? 1 : 1))
        let reader = try IntegrityReport.verify(path: store.path, key: .testing(2))
        #expect(reader.isSound)
        #expect(try store.count(1) == 20)
        guard how != "a directory" else { return }
        #expect(try store.bytes(0) == whole)
        #expect(try store.bytes(1) == whole)
        #expect(KeySlots.problems(path: store.path).isEmpty)
    }

    @Test func withoutEitherFileNothingOpens() throws {
        for file in store.files { unlink(file) }
        #expect(try store.refusal(.testing(1)).reason == .wrongKey)
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
