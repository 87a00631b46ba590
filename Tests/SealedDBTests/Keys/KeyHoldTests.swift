import Foundation
import Testing

@testable import SealedDB

/// From the moment at which a key of a ring was confirmed until a store has it, nobody takes it out of the ring.
@Suite(.hangLimit, .enabled(if: isEncrypting, "needs a codec"))
struct KeyHoldTests {
    private let directory: TemporaryDirectory
    private let path: String
    private let ringPath: String

    init() throws {
        directory = try TemporaryDirectory()
        path = directory.file("db")
        ringPath = directory.file("ring")
        let store = try Database.testing(path, journalMode: .wal)
        try store.fill(rows: 10)
        store.close()
        try KeyRing(activeID: "new", key: .testing(2)).write(toNewFile: ringPath)
    }

    private func newKey() throws -> Key { try KeyRing(contentsOfFile: ringPath).activeKey() }

    private func rotation() throws -> StoreReplacement {
        StoreReplacement(
            path: path,
            old: Sealing(key: try .testing(1)),
            new: Sealing(key: try newKey()),
            busyTimeout: 1,
            words: .init(name: "The rotation", before: "unchanged under the old key", after: "has the new key")
        )
    }

    /// Whether somebody could change the ring now.
    private var isFree: Bool {
        let descriptor = open(ringPath, O_RDONLY | O_CLOEXEC)
        defer { close(descriptor) }
        return flock(descriptor, LOCK_EX | LOCK_NB) == 0
    }

    @Test func aRotationKeepsItsKeyInTheRing() throws {
        var replacement = try rotation()
        var wasAsked = false
        replacement.beforeSwap = { () throws(DatabaseError) in
            wasAsked = true
            #expect(!isFree)
        }
        _ = try replacement.run(progress: nil)
        #expect(wasAsked && isFree)
        try Database.testing(path, key: 2).close()
    }

    @Test func whatFailsLetsTheRingGo() throws {
        var replacement = try rotation()
        replacement.beforeSwap = { () throws(DatabaseError) in throw .notOpen }
        #expect(throws: DatabaseError.self) { try replacement.run(progress: nil) }
        #expect(isFree)
        try Database.testing(path).close()
    }

    /// Who changes the ring looks at stores for as long as that takes. A service does not wait for that.
    @Test func aRingThatIsBeingChangedEndsARotationInService() throws {
        let queue = try DatabaseQueue(path: path, configuration: Configuration(key: .testing(1)))
        defer { queue.close() }
        let key = try newKey()
        try KeyRing.update(file: ringPath) { ring throws(DatabaseError) in
            let error = #expect(throws: DatabaseError.self) { try queue.rotateKey(to: key) }
            #expect(error?.reason == .busy, "\(error as Any)")
            #expect(error?.message.contains("changes the key ring \(ringPath)") == true, "\(error as Any)")
            #expect(error?.message.contains("unchanged") == true, "\(error as Any)")
        }
        try queue.rotateKey(to: key)
        #expect(isFree)
    }

    /// The lock of a ring that was replaced meanwhile is worth nothing.
    @Test func theRingThatIsThereIsTheOneThatIsLocked() throws {
        let hold = KeyHold()
        try hold.add(ring: ringPath, timeout: 0)
        #expect(!isFree)
        hold.release()
        #expect(isFree)
        let next = try Key.testing(3)
        try KeyRing.update(file: ringPath) { ring throws(DatabaseError) in try ring.add(next, id: "next") }
        try hold.add(ring: ringPath, timeout: 0)
        #expect(!isFree)
        hold.release()
        #expect(throws: DatabaseError.self) { try hold.add(ring: directory.file("none"), timeout: 0) }
    }

    /// Two names that are equal to Swift are those of two files.
    @Test func filesWhoseNamesDifferInTheirBytesAlone() throws {
        let names = ["\u{e9}.key", "e\u{301}.key"]
        try directory.write(names[0], String(repeating: "02", count: 32).utf8)
        try directory.write(names[1], String(repeating: "01", count: 32).utf8)
        var ring = try KeyRing(activeID: "a", source: .keyFile(directory.file(names[0])))
        try ring.add(.keyFile(directory.file(names[1])), id: "b")
        unlink(ringPath)
        try ring.write(toNewFile: ringPath)
        let read = try KeyRing(contentsOfFile: ringPath)
        func id(in ring: KeyRing) throws -> String {
            try ring.withKey(toOpen: path) { key, id in
                let database = Database(path: path, configuration: Configuration(key: key))
                try database.openVerified()
                database.close()
                return id
            }
        }
        // The keys are read, and then taken over by a ring that is read again.
        #expect(try id(in: read) == "b")
        #expect(try id(in: read.readAgain()) == "b")
    }
}
