import FailingCalls
import Foundation
import Testing

@testable import SealedDB

/// What is done with a file of keys, call by call: its bytes are on the disk before they get its name, and nothing that holds
/// a key is left where they do not get it.
@Suite(.hangLimit)
struct SecretFileCallTests {
    private let directory: TemporaryDirectory

    init() throws {
        directory = try TemporaryDirectory()
    }

    private func calls(_ body: () throws -> Void) throws -> [String] {
        let watch = CallWatch(directory.path)
        do {
            try body()
        } catch {
            watch.end()
            throw error
        }
        return watch.endWithAll()
    }

    /// What is thrown while one call fails.
    private func failure(_ index: Int, _ code: Int32, _ body: () throws -> Void) -> DatabaseError? {
        let watch = CallWatch(directory.path, failing: index...index, code: code)
        defer { watch.end() }
        do {
            try body()
            return nil
        } catch {
            return error as? DatabaseError
        }
    }

    private func create() throws { try KeyFile.create(atPath: directory.file("key")) }

    private func makeRing() throws {
        var ring = try KeyRing(activeID: "one", key: .testing(1))
        try ring.add(.testing(2), id: "two")
        try ring.write(toNewFile: directory.file("ring"))
    }

    private func change() throws {
        try KeyRing.update(file: directory.file("ring")) { ring throws(DatabaseError) in try ring.activate("two") }
    }

    @Test func theBytesAreOnTheDiskBeforeTheName() throws {
        for (name, rename, body) in [
            ("key", "renameat2 key", create), ("ring", "renameat2 ring", makeRing), ("ring", "rename ring", change),
        ] as [(String, String, () throws -> Void)] {
            let calls = try calls(body)
            let written = try #require(calls.lastIndex(of: "write .\(name).sealdb-*"), "\(rename): \(calls)")
            let synced = try #require(calls.lastIndex(of: "fsync .\(name).sealdb-*"), "\(rename): \(calls)")
            let named = try #require(calls.firstIndex(of: rename), "\(calls)")
            let last = try #require(calls.lastIndex(of: "fsync \(directory.path)"), "\(rename): \(calls)")
            #expect(written < synced && synced < named && named < last, "\(rename): \(calls)")
        }
    }

    /// The next run would remove what is left. But there may be none.
    @Test func whatFailsLeavesNoKeyBehind() throws {
        let steps = ["write", "fsync", "pread"]
        let creation = try calls(create)
        unlink(directory.file("key"))
        var count = 0
        for (index, call) in creation.enumerated()
        where call == "renameat2 key" || steps.contains(where: { call == "\($0) .key.sealdb-*" }) {
            #expect(failure(index, EIO, create)?.message.contains("was not written") == true, "\(call)")
            #expect(directory.names == [], "\(call)")
            count += 1
        }
        #expect(count >= 4, "\(creation)")
        try makeRing()
        let before = try directory.bytes("ring")
        let changing = try calls(change)
        count = 0
        for (index, call) in changing.enumerated()
        where call == "rename ring" || (steps + ["flock"]).contains(where: { call == "\($0) .ring.sealdb-*" }) {
            try directory.write("ring", before)
            #expect(failure(index, EIO, change)?.message.contains("is unchanged") == true, "\(call)")
            #expect(directory.names == ["ring"], "\(call)")
            #expect(try directory.bytes("ring") == before, "\(call)")
            count += 1
        }
        #expect(count >= 5, "\(changing)")
    }

    /// A signal that the process handles comes while it reads, writes or waits.
    @Test func signalsChangeNothing() throws {
        func interrupted(_ counted: [String], _ body: () throws -> Void) -> Set<String> {
            var names: Set<String> = []
            for (index, call) in counted.enumerated() {
                let name = String(call.prefix { $0 != " " })
                guard ["read", "write", "pread", "flock"].contains(name) else { continue }
                names.insert(name)
                let error = failure(index, EINTR, body)
                #expect(error == nil, "\(call)")
            }
            return names
        }
        let keyFile = directory.file("key")
        let create = {
            unlink(keyFile)
            try KeyFile.create(atPath: keyFile)
        }
        #expect(try interrupted(calls(create), create) == ["write", "pread"])
        #expect(try directory.bytes("key").count == 65)
        try makeRing()
        let changing = try calls(change)
        // That of the ring, and that of the one which takes its place.
        #expect(changing.count { $0.hasPrefix("flock") } == 2, "\(changing)")
        #expect(interrupted(changing, change) == ["read", "write", "pread", "flock"])
        #expect(try KeyRing(contentsOfFile: directory.file("ring")).activeID == "two")
    }

    /// A disk that gives back another byte than was written.
    @Test func whatIsWrittenIsReadBack() throws {
        let creation = try calls(create)
        let index = try #require(creation.firstIndex { $0 == "pread .key.sealdb-*" })
        unlink(directory.file("key"))
        let error = failure(index, Int32(failing_calls_changing), create)
        #expect(error?.reason == .ioError && error?.message.contains("read back") == true, "\(error as Any)")
        #expect(directory.names == [])
        // Or a part of it at first.
        let short = failure(index, Int32(failing_calls_shortening), create)
        #expect(short == nil)
        #expect(try directory.bytes("key").count == 65)
        unlink(directory.file("key"))
        try makeRing()
        let before = try directory.bytes("ring")
        let changing = try calls(change)
        let second = try #require(changing.firstIndex { $0 == "pread .ring.sealdb-*" })
        try directory.write("ring", before)
        #expect(failure(second, Int32(failing_calls_changing), change)?.reason == .ioError)
        #expect(try directory.bytes("ring") == before)
        #expect(directory.names == ["ring"])
    }

    /// A user may enter a directory and not read it. Then the whole file system is to be synced, and not after any other error.
    @Test(arguments: [EACCES, EMFILE]) func aDirectoryThatMayNotBeRead(code: Int32) throws {
        try create()
        let key = try KeySource.keyFile(directory.file("key")).key()
        let confirming = try calls { try key.confirm() }
        let index = try #require(confirming.firstIndex(of: "open \(directory.path)"), "\(confirming)")
        // That of the file system fails too.
        let watch = CallWatch(directory.path, failing: index...Int.max, code: code)
        let result = Result { try key.confirm() }
        let made = watch.endWithAll()
        #expect(made.contains("syncfs key") == (code == EACCES), "\(made)")
        let error = #expect(throws: DatabaseError.self) { try result.get() }
        #expect(error?.message.contains("Cannot sync") == true, "\(error as Any)")
    }
}
