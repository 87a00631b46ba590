import Foundation
import Testing

@testable import SealedDB

/// What a key ring believes of its file, and what it says of its keys.
@Suite(.hangLimit)
struct RingCareTests {
    private let directory: TemporaryDirectory
    private let path: String

    init() throws {
        directory = try TemporaryDirectory()
        path = directory.file("ring")
    }

    private func ring(_ text: String) throws -> KeyRing {
        try KeyRing(contentsOfFile: directory.write("ring", text.utf8))
    }

    private func writeKey(_ name: String, _ byte: UInt8) throws -> String {
        try directory.write(name, [UInt8](repeating: byte, count: 32))
    }

    /// The rest of the path may be missing, and the path of another file be left.
    @Test func aFileThatIsCutOff() throws {
        let whole = "sealdb-keyring 1\nactive a\na key-file /k/one\n"
        #expect(try ring(whole).ids == ["a"])
        for count in 1...4 {
            let error = #expect(throws: DatabaseError.self) { try ring(String(whole.dropLast(count))) }
            #expect(error?.reason == .malformedKeyRing, "\(count)")
        }
    }

    /// Each key that is tried costs time, above all a passphrase.
    @Test(arguments: ["a", "b", "c", "d"]) func theActiveKeyIsTriedFirst(active: String) throws {
        var ring = try KeyRing(activeID: "b", key: .testing(2))
        for (id, byte) in [("d", 4), ("a", 1), ("c", 3)] as [(String, UInt8)] { try ring.add(.testing(byte), id: id) }
        try ring.activate(active)
        #expect(ring.entriesToTry.map(\.id) == [active] + ["a", "b", "c", "d"].filter { $0 != active })
    }

    /// What is shown of a ring must not show a key that was given as its name.
    @Test func aKeyIsNoName() throws {
        let digits = String(repeating: "5a", count: 32)
        var ring = try KeyRing(activeID: "a", key: .testing(1))
        for error in [
            #expect(throws: DatabaseError.self) { try ring.add(.testing(2), id: digits) },
            #expect(throws: DatabaseError.self) { _ = try KeyRing(activeID: digits, key: .testing(2)) },
        ] {
            #expect(error?.reason == .malformedKey && error?.message.contains("5a5a") == false)
        }
        #expect(ring.ids == ["a"])
    }

    /// A store that no key opens may be under one that was retired, and whoever reads the message is told.
    @Test func aRingThatIsReadAgainKeepsItsRetiredKeys() throws {
        var ring = try KeyRing(activeID: "a", key: .testing(1))
        try ring.add(.testing(2), id: "old")
        try ring.retire("old", until: Date())
        try ring.write(toNewFile: path)
        let again = try KeyRing(contentsOfFile: path).readAgain()
        #expect(again.retiredKeys.map(\.id) == ["old"])
        #expect(try again.retiredKey("old") == .testing(2))
        let error = #expect(throws: DatabaseError.self) {
            try again.withKey(toOpen: directory.file("db")) { _, _ in
                throw DatabaseError(extendedCode: 1, reason: .wrongKey, message: "")
            }
        }
        #expect(error?.message.contains("Not tried were its retired keys: old.") == true)
    }

    /// If no key could be read, none is wrong.
    @Test func aRingOfWhichNothingCanBeRead() throws {
        var ring = try KeyRing(activeID: "b", source: .keyFile(directory.file("b")))
        try ring.add(.keyFile(directory.file("a")), id: "a")
        let error = #expect(throws: DatabaseError.self) { try ring.withKey(toOpen: path) { _, _ in } }
        #expect(error?.reason == .noSuchFile)
        #expect(error?.message.hasPrefix("No key of the ring could be read. b: ") == true)
    }

    /// The names of two files may be equal to Swift.
    @Test func keysAreNotTakenOverFromAnotherFile() throws {
        let (composed, decomposed) = ("k\u{e9}", "ke\u{301}")
        #expect(composed == decomposed)
        let first = try ring("sealdb-keyring 1\nactive a\na key-file \(try writeKey(composed, 1))\n")
        #expect(try first.keyAsGiven("a") == .testing(1))
        _ = try ring("sealdb-keyring 1\nactive a\na key-file \(try writeKey(decomposed, 2))\n")
        #expect(try first.readAgain().keyAsGiven("a") == .testing(2))
    }

    /// Its other names would keep a key that was removed.
    @Test func aRingWithTwoNamesIsNotChanged() throws {
        try KeyRing(activeID: "a", key: .testing(1)).write(toNewFile: path)
        let whole = try directory.bytes("ring")
        let second = directory.file("second")
        try #require(link(path, second) == 0)
        func add() throws {
            try KeyRing.update(file: path) { ring throws(DatabaseError) in
                try ring.add(.keyFile("/k"), id: "b")
            }
        }
        let error = #expect(throws: DatabaseError.self) { try add() }
        #expect(error?.reason == .unsafeKeyFile)
        #expect(try directory.bytes("ring") == whole)
        #expect(directory.names == ["ring", "second"])
        unlink(second)
        try add()
        #expect(try KeyRing(contentsOfFile: path).ids == ["a", "b"])
    }

    /// A key file holds no salt.
    @Test func aKeyFileWithASalt() throws {
        let file = try directory.write("key", String(repeating: "5a", count: 48).utf8)
        let error = #expect(throws: DatabaseError.self) { try KeySource.keyFile(file).key() }
        #expect(error?.reason == .malformedKey && error?.message.contains("holds 96 bytes") == true)
    }

    /// That the file cannot be read says nothing of a store that is busy, or damaged.
    @Test(.enabled(if: isEncrypting, "needs a codec")) func anotherErrorThanAWrongKey() throws {
        try KeyRing(activeID: "a", key: .testing(1)).write(toNewFile: path)
        let origin = KeyOrigin.ring(.init(try KeyRing(contentsOfFile: path)))
        unlink(path)
        func error(_ reason: DatabaseError.Reason) -> DatabaseError? {
            #expect(throws: DatabaseError.self) {
                _ = try origin.open("the store", adopted: nil) { _ throws(DatabaseError) -> Int in
                    throw DatabaseError(extendedCode: 1, reason: reason, message: "of the store")
                }
            }
        }
        #expect(error(.busy)?.reason == .busy && error(.busy)?.message == "of the store")
        let wrong = error(.wrongKey)
        #expect(wrong?.reason == .noSuchFile)
        #expect(wrong?.message.contains("does not open with the keys that were read before") == true)
    }
}
