import Foundation
import Testing

@testable import SealedDB

/// Whatever call of the system fails while a key is made, read or kept, no key is lost, and none is used that is not safe.
@Suite(.hangLimit)
struct KeyCallTests {
    typealias Manner = CallSweep.Manner

    private static func makeKeyFile(_ directory: TemporaryDirectory, _ name: String, _ byte: UInt8) throws {
        try directory.write(name, Array(String(repeating: String(format: "%02x", byte), count: 32).utf8))
    }

    private static func makeRing(_ directory: TemporaryDirectory) throws {
        var ring = try KeyRing(activeID: "one", key: .testing(1))
        try ring.add(.testing(2), id: "two")
        try ring.write(toNewFile: directory.file("ring"))
    }

    /// Files that a call that failed could not remove go with the next success.
    private static func requireOnly(_ names: [String], _ directory: TemporaryDirectory) throws {
        try #require(directory.names == names)
    }

    @Test(arguments: Manner.files) func creationOfAKeyFile(_ manner: Manner) throws {
        let sweep = CallSweep(
            prepare: { _ in },
            run: { try KeyFile.create(atPath: $0.file("key")) },
            check: { directory, state in
                if state == .undone { return try #require(!directory.names.contains("key")) }
                _ = try KeySource.keyFile(directory.file("key")).key()
                try Self.requireOnly(["key"], directory)
            },
            state: { $0.message.contains("is complete") ? .done : .undone },
            isComplete: true
        )
        try sweep(manner)
    }

    @Test(arguments: Manner.files) func readingAndConfirmingAKeyFile(_ manner: Manner) throws {
        let sweep = CallSweep(
            prepare: { try Self.makeKeyFile($0, "key", 1) },
            run: { directory in
                let key = try KeySource.keyFile(directory.file("key")).key()
                let expected = try Key.testing(1)
                try #require(key == expected)
                try key.confirm()
            },
            check: { directory, _ in try Self.requireOnly(["key"], directory) },
            isComplete: true
        )
        try sweep(manner)
    }

    @Test(arguments: Manner.files) func creationOfARing(_ manner: Manner) throws {
        let sweep = CallSweep(
            prepare: { _ in },
            run: { try Self.makeRing($0) },
            check: { directory, state in
                if state == .undone { return try #require(!directory.names.contains("ring")) }
                let second = try KeyRing(contentsOfFile: directory.file("ring")).key("two")
                let expected = try Key.testing(2)
                try #require(second == expected)
                try Self.requireOnly(["ring"], directory)
            },
            state: { $0.message.contains("is complete") ? .done : .undone },
            isComplete: true
        )
        try sweep(manner)
    }

    @Test(arguments: Manner.files) func changeOfARing(_ manner: Manner) throws {
        let sweep = CallSweep(
            prepare: { try Self.makeRing($0) },
            run: { directory in
                let third = try Key.testing(3)
                try KeyRing.update(file: directory.file("ring")) { ring throws(DatabaseError) in
                    // An earlier run may have done it, and said so.
                    if !ring.ids.contains("three") { try ring.add(third, id: "three") }
                    try ring.activate("three")
                }
            },
            check: { directory, state in
                let ring = try KeyRing(contentsOfFile: directory.file("ring"))
                let (first, expected) = (try ring.key("one"), try Key.testing(1))
                try #require(first == expected)
                if state != .either { try #require(ring.activeID == (state == .done ? "three" : "one")) }
                // An old ring that could not be removed goes with the next change.
                _ = try KeyRing.update(file: directory.file("ring")) { _ in }
                try Self.requireOnly(["ring"], directory)
            },
            state: { error in
                for words in ["is probably changed", "may be"] where error.message.contains(words) { return .either }
                return .undone
            },
            isComplete: true
        )
        try sweep(manner)
    }

    /// A signal that comes while a key file is read changes nothing.
    @Test func aSignalDoesNotEndTheReadingOfAKeyFile() throws {
        let directory = try TemporaryDirectory()
        try Self.makeKeyFile(directory, "key", 1)
        let expected = try Key.testing(1)
        func read() throws { #expect(try KeySource.keyFile(directory.file("key")).key() == expected) }
        let count = CallWatch(directory.path)
        try read()
        let calls = count.endWithAll()
        // The last one finds the end of the file.
        #expect(calls.filter { $0 == "read key" }.count > 1)
        for (index, call) in calls.enumerated() where call == "read key" {
            let watch = CallWatch(directory.path, failing: index...index, code: EINTR)
            defer { watch.end() }
            try read()
        }
    }

    /// What cannot be locked is not changed: somebody else's change would be lost.
    @Test(arguments: [ENOLCK, EINTR]) func aRingThatCannotBeLocked(code: Int32) throws {
        let directory = try TemporaryDirectory()
        try Self.makeRing(directory)
        func change() throws {
            _ = try KeyRing.update(file: directory.file("ring")) { ring throws(DatabaseError) in
                try ring.activate("two")
            }
        }
        let count = CallWatch(directory.path)
        try KeyRing.update(file: directory.file("ring")) { _ in }
        let index = try #require(count.endWithAll().firstIndex { $0.hasPrefix("flock") })
        let watch = CallWatch(directory.path, failing: index...index, code: code)
        defer { watch.end() }
        if code == EINTR {
            // A signal came while it waited.
            try change()
        } else {
            let error = #expect(throws: DatabaseError.self) { try change() }
            #expect(error?.reason == .ioError && error?.message.contains("Cannot lock the key ring") == true)
        }
        let activeID = try KeyRing(contentsOfFile: directory.file("ring")).activeID
        #expect(activeID == (code == EINTR ? "two" : "one"))
    }

    @Test(.enabled(if: isEncrypting, "needs a codec"), arguments: Manner.all)
    func openingWithARing(_ manner: Manner) throws {
        let sweep = CallSweep(
            prepare: { directory in
                try Self.makeRing(directory)
                try StoreCallTests.make(directory, key: 2)
            },
            run: { directory in
                let ring = try KeyRing(contentsOfFile: directory.file("ring"))
                let id = try ring.withKey(toOpen: directory.file("db")) { key, id in
                    let database = Database(path: directory.file("db"), configuration: Configuration(key: key))
                    try database.openVerified()
                    database.close()
                    return id
                }
                try #require(id == "two")
            },
            check: { directory, _ in try StoreCallTests.requireRows(directory, key: 2) }
        )
        try sweep(manner)
    }

    // MARK: Calls without a file

    /// Each call that this makes on its own thread fails once.
    /// - Returns: the calls, and what was thrown.
    private func failEach(_ code: Int32, _ body: () throws -> Void) throws -> [(call: String, error: (any Error)?)] {
        let count = CallWatch(nil)
        try body()
        return count.endWithAll().indices.map { index in
            let watch = CallWatch(nil, failing: index...index, code: code)
            var failure: (any Error)?
            do { try body() } catch { failure = error }
            return (watch.end(describing: index) ?? "a call that was not made", failure)
        }
    }

    @Test func memoryAndRandomNumbersForKeys() throws {
        let told = try failEach(ENOMEM) {
            let (one, other) = (try Key.random(), try Key.random())
            #expect(one != other)
        }
        for (call, error) in told where ["getrandom", "mmap", "madvise"].contains(call) {
            #expect(error is DatabaseError, "\(call)")
        }
        #expect(Set(told.map(\.call)).isSuperset(of: ["getrandom", "mmap", "madvise", "mlock"]))
        // Random bytes may come in parts; the rest is asked for again.
        #expect(try failEach(EINTR) { _ = try Key.random() }.contains { $0.call == "getrandom" && $0.error == nil })
    }

    private func runProgram() throws {
        let digits = String(repeating: "01", count: 32)
        let (key, expected) = (try KeySource.keyCommand(["/bin/echo", digits]).key(), try Key.testing(1))
        #expect(key == expected)
    }

    @Test func programsThatPrintAKey() throws {
        for (call, error) in try failEach(ENOMEM, runProgram) {
            #expect(error == nil || error is DatabaseError, "\(call)")
            let error = error as? DatabaseError
            switch call {
            case "posix_spawn", "read", "waitpid": #expect(error?.reason == .keySourceFailed, "\(call)")
            case "pipe2": #expect(error != nil)
            default: break
            }
        }
    }

    /// A signal that the process handles interrupts calls, and changes nothing.
    @Test func aSignalDoesNotEndAProgramThatPrintsAKey() throws {
        let told = try failEach(EINTR, runProgram)
        for call in ["poll", "read", "waitpid"] {
            let errors = told.filter { $0.call == call }
            #expect(!errors.isEmpty && errors.allSatisfy { $0.error == nil }, "\(call): \(errors)")
        }
    }
}
