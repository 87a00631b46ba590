import Foundation
import Testing

@testable import SealedDB

/// A key is on the disk, and is the same one, before it becomes the only key of some data.
@Suite(.hangLimit)
struct ConfirmedKeyTests {
    private let directory: TemporaryDirectory
    private let ringPath: String

    init() throws {
        directory = try TemporaryDirectory()
        ringPath = directory.file("ring")
    }

    private func writeKey(_ name: String, _ byte: UInt8) throws -> String {
        try directory.write(name, [UInt8](repeating: byte, count: 32))
    }

    /// The calls that confirm a key.
    private func calls(_ key: Key) throws -> [String] {
        let watch = CallWatch(directory.path)
        let result = Result { try key.confirm() }
        let calls = watch.endWithAll()
        try result.get()
        return calls
    }

    private func requireSynced(_ names: [String], _ calls: [String]) throws {
        for name in names {
            let file = try #require(calls.firstIndex(of: "fsync \(name)"), "\(name): \(calls)")
            // Its bytes are read after that, and then its name is made durable.
            let read = try #require(calls[file...].firstIndex(of: "read \(name)"), "\(name): \(calls)")
            #expect(calls[read...].contains("fsync \(directory.path)"), "\(name): \(calls)")
        }
    }

    @Test func filesAreSynced() throws {
        let key = try KeySource.keyFile(writeKey("key", 1)).key()
        try requireSynced(["key"], calls(key))
        let passphrase = try KeySource.passphraseFile(directory.write("passphrase", "secret\n".utf8)).key()
        try requireSynced(["passphrase"], calls(passphrase))
    }

    /// A ring is not enough if it only names the file of the key.
    @Test func theFileThatARingNamesIsSynced() throws {
        let file = try writeKey("key", 1)
        try KeyRing(activeID: "a", source: .keyFile(file)).write(toNewFile: ringPath)
        let key = try KeyRing(contentsOfFile: ringPath).activeKey()
        try requireSynced(["ring", "key"], calls(key))
    }

    @Test func anotherKeyIsNotConfirmed() throws {
        let key = try KeySource.keyFile(writeKey("key", 1)).key()
        _ = try writeKey("key", 2)
        let error = #expect(throws: DatabaseError.self) { try key.confirm() }
        #expect(error?.reason == .keySourceFailed)
        #expect(error?.message.contains("Another key was read the second time") == true)
    }

    /// A ring may be longer than the file of one key.
    @Test func aLongRing() throws {
        var ring = try KeyRing(activeID: "a", key: .testing(1))
        for number in 0..<80 { try ring.add(.testing(UInt8(number + 2)), id: "key-\(number)") }
        try ring.write(toNewFile: ringPath)
        #expect(try directory.bytes("ring").count > KeyFile.sizeLimit)
        try KeyRing(contentsOfFile: ringPath).activeKey().confirm()
    }

    /// While others wait, no program runs: it was confirmed before.
    @Test func whileOthersWaitNoClosureIsCalled() throws {
        let count = Guarded(0)
        let source = KeySource.closure {
            count.withLock { $0 += 1 }
            return try .testing(1)
        }
        let key = try source.key()
        #expect(try key.confirmed(isBrief: true) == nil)
        #expect(count.withLock { $0 } == 1)
        #expect(try key.confirmed() == key)
        #expect(count.withLock { $0 } == 2)
    }

    /// Only a key of a ring is kept in it. That of a file was confirmed before, and is not read again while others wait.
    @Test func aKeyThatIsInNoRingIsNotReadAgain() throws {
        let key = try KeySource.keyFile(writeKey("key", 1)).key()
        unlink(directory.file("key"))
        let hold = KeyHold()
        try key.keepInRing(hold)
        #expect(throws: DatabaseError.self) { try key.confirm() }
    }

    /// The former key may have left its ring, but not at this moment: who changes the ring may be about to put it back.
    @Test func theFormerKeyIsKeptIfItIsThere() throws {
        var ring = try KeyRing(activeID: "a", key: .testing(1))
        try ring.add(.testing(2), id: "b")
        try ring.write(toNewFile: ringPath)
        let key = try KeyRing(contentsOfFile: ringPath).key("b")
        let hold = KeyHold()
        try KeyRing.update(file: ringPath) { ring throws(DatabaseError) in
            let error = #expect(throws: DatabaseError.self) { try key.keepInRingIfThere(hold) }
            #expect(error?.reason == .busy)
            try ring.remove("b")
        }
        try key.keepInRingIfThere(hold)
        #expect(throws: DatabaseError.self) { try key.keepInRing(hold) }
    }

    /// Otherwise nobody could change the ring until the process ends.
    @Test func aHoldThatIsForgottenLetsTheRingGo() throws {
        try KeyRing(activeID: "a", key: .testing(1)).write(toNewFile: ringPath)
        let descriptor = open(ringPath, O_RDONLY | O_CLOEXEC)
        defer { close(descriptor) }
        var hold: KeyHold? = KeyHold()
        try hold?.add(ring: ringPath, timeout: 0)
        #expect(flock(descriptor, LOCK_EX | LOCK_NB) != 0)
        hold = nil
        #expect(flock(descriptor, LOCK_EX | LOCK_NB) == 0)
    }

    // MARK: Keys that are read when they are needed

    /// What is read once is not asked for again: others may have opened a file of that number by then.
    @Test func aDescriptorIsNotReadAgain() throws {
        let descriptor = open(try writeKey("key", 1), O_RDONLY | O_CLOEXEC)
        let source = SourcedKey(.keyDescriptor(descriptor))
        let key = try source.key()
        #expect(try source.newKey(insteadOf: key) == nil)
    }

    /// Several threads may find the same key stale. One of them reads its source again.
    @Test func theKeyThatAnotherThreadHasReadIsTaken() throws {
        let count = Guarded(UInt8(0))
        let source = SourcedKey(
            .closure {
                try .testing(
                    count.withLock { count in
                        count += 1
                        return count
                    }
                )
            }
        )
        let first = try source.key()
        let second = try Key.testing(2)
        #expect(try source.newKey(insteadOf: first) == second)
        #expect(try source.newKey(insteadOf: first) == second)
        #expect(try source.key() == second)
        #expect(count.withLock { $0 } == 2)
    }

    // MARK: Names of key files

    /// A user of that store removes such a file, even by opening the store with this key.
    @Test func aKeyFileIsNoneOfTheFilesOfAStore() throws {
        try directory.write("db", [])
        let file = try writeKey("db-journal", 1)
        let error = #expect(throws: DatabaseError.self) { try KeySource.keyFile(file).key() }
        #expect(error?.reason == .unsafeKeyFile)
        unlink(directory.file("db"))
        // Then there is no such store.
        #expect(try KeySource.keyFile(file).key() == .testing(1))
    }

    /// The store would look for its slots there.
    @Test(arguments: ["db.slots", "db.slots.2"]) func aKeyFileIsNotWhereSlotsAre(name: String) throws {
        try directory.write("db", [])
        let error = #expect(throws: DatabaseError.self) { try KeyFile.create(atPath: directory.file(name)) }
        #expect(error?.reason == .cannotCreate)
        #expect(directory.names == ["db"])
    }

    // MARK: Rings

    @Test func theSecondLineOfARing() throws {
        for line in ["activ a", "Active a", "inactive a"] {
            let path = try directory.write("ring", "sealdb-keyring 1\n\(line)\na key-file /k\n".utf8)
            #expect(throws: DatabaseError.self, "\(line)") { _ = try KeyRing(contentsOfFile: path) }
        }
    }

    /// The program of a key is in no ring, which holds keys and the names of files.
    @Test func aProgramIsNotWrittenIntoARing() throws {
        let ring = try KeyRing(activeID: "a", key: KeySource.unwrapCommand(["/bin/cat"]).key())
        let error = #expect(throws: DatabaseError.self) { try ring.write(toNewFile: ringPath) }
        #expect(error?.reason == .malformedKeyRing)
        #expect(directory.names == [])
    }

    /// A path with such a character is shown as another one.
    @Test func aRingNamesNoFileWithADeleteCharacter() throws {
        let path = try directory.write("ring", "sealdb-keyring 1\nactive a\na key-file /k\u{7f}\n".utf8)
        #expect(throws: DatabaseError.self) { _ = try KeyRing(contentsOfFile: path) }
        let ring = try KeyRing(activeID: "a", source: .keyFile("/k\u{7f}"))
        #expect(throws: DatabaseError.self) { try ring.write(toNewFile: directory.file("other")) }
    }

    /// A day with something behind it is none.
    @Test func theDayOfARetiredKey() throws {
        var ring = try KeyRing(activeID: "a", key: .testing(1))
        try ring.add(.testing(2), id: "old")
        try ring.retire("old", until: Date())
        try ring.write(toNewFile: ringPath)
        let text = String(decoding: try directory.bytes("ring"), as: UTF8.self)
        let day = try #require(text.firstMatch(of: /\d\d\d\d-\d\d-\d\d/)?.output)
        for ending in ["0", "x", "-"] {
            let path = try directory.write("other", text.replacing(day, with: "\(day)\(ending)").utf8)
            #expect(throws: DatabaseError.self, "\(ending)") { _ = try KeyRing(contentsOfFile: path) }
        }
    }

    /// A passphrase costs time each time it is tried.
    @Test func aRingThatIsNotChangedIsTriedOnce() throws {
        try KeyRing(activeID: "a", key: .testing(1)).write(toNewFile: ringPath)
        try directory.write("db", [])
        var count = 0
        let error = #expect(throws: DatabaseError.self) {
            try KeyRing(contentsOfFile: ringPath).withKey(toOpen: directory.file("db")) { _, _ in
                count += 1
                throw DatabaseError(extendedCode: 1, reason: .wrongKey, message: "")
            }
        }
        #expect(error?.reason == .wrongKey)
        #expect(count == 1)
    }

    /// If a ring is changed and cannot be looked at after that, its new text may be in place or not.
    @Test func aChangedRingThatCannotBeLookedAt() throws {
        var ring = try KeyRing(activeID: "one", key: .testing(1))
        try ring.add(.testing(2), id: "two")
        try ring.write(toNewFile: ringPath)
        let before = try directory.bytes("ring")
        func change() throws {
            try KeyRing.update(file: ringPath) { ring throws(DatabaseError) in try ring.activate("two") }
        }
        let counting = CallWatch(directory.path)
        let counted = Result { try change() }
        let calls = counting.endWithAll()
        try counted.get()
        let renamed = try #require(calls.firstIndex(of: "rename ring"), "\(calls)")
        try directory.write("ring", before)
        let watch = CallWatch(directory.path, failing: (renamed + 1)...Int.max, code: EIO)
        let result = Result { try change() }
        watch.end()
        let error = #expect(throws: DatabaseError.self) { try result.get() }
        #expect(error?.message.contains("is probably changed") == true, "\(error as Any)")
        #expect(error?.message.contains("Somebody else") == false, "\(error as Any)")
    }
}
