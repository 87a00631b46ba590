import Foundation
import Testing

@testable import SealedDB

/// Whatever call of the system fails while a new key file takes the place of an old one, both keys are in files with known
/// names, and the same again completes it.
@Suite(.hangLimit)
struct KeyFileReplacementCallTests {
    private static func digits(_ byte: UInt8) -> String { String(repeating: String(format: "%02x", byte), count: 32) }

    private static func prepare(_ directory: TemporaryDirectory) throws {
        try directory.write("app.key", Array(digits(1).utf8))
        try directory.write("new.key", Array((digits(2) + "\n").utf8))
    }

    private static func replacement(_ directory: TemporaryDirectory) throws -> KeyFileReplacement {
        try KeyFileReplacement(
            .keyFile(directory.file("app.key")),
            by: .keyFile(directory.file("new.key")),
            ending: ".old"
        )
    }

    private static func run(_ directory: TemporaryDirectory) throws {
        let replacement = try replacement(directory)
        _ = try replacement.check(isLooking: false)
        try replacement.run(Key.testing(2))
    }

    private static func holders(of byte: UInt8, _ directory: TemporaryDirectory) -> [String] {
        ["app.key", "app.key.old", "new.key"].filter { name in
            (try? directory.bytes(name)).map { String(decoding: $0, as: UTF8.self).hasPrefix(digits(byte)) } ?? false
        }
    }

    private static func requireDone(_ directory: TemporaryDirectory) throws {
        try #require(holders(of: 1, directory) == ["app.key.old"])
        try #require(holders(of: 2, directory) == ["app.key"])
        // What could not be removed is removed by the next run.
        try run(directory)
        try #require(directory.names == ["app.key", "app.key.old"])
    }

    @Test(arguments: CallSweep.Manner.files) func eachCallFails(_ manner: CallSweep.Manner) throws {
        let sweep = CallSweep(
            prepare: Self.prepare,
            run: Self.run,
            check: { directory, state in
                if state == .done { return try Self.requireDone(directory) }
                try #require(!Self.holders(of: 2, directory).isEmpty)
                try #require(Self.holders(of: 1, directory) != [] && Self.holders(of: 1, directory) != ["new.key"])
            },
            isComplete: true
        )
        let told = try sweep(manner)
        for call in ["link", "rename", "unlink", "fsync"] {
            #expect(told.contains { $0.call.hasPrefix(call) }, "\(call) is never called")
        }
        // The steps on which the next ones rely.
        #expect(told.contains { $0.call.hasPrefix("link") && $0.error != nil })
        #expect(told.contains { $0.call.hasPrefix("fsync .") && $0.error != nil })
    }

    /// Otherwise it would be kept as the key that the stores had.
    @Test func aFileThatAnotherRunHasReplaced() throws {
        let directory = try TemporaryDirectory()
        try Self.prepare(directory)
        let replacement = try Self.replacement(directory)
        let error = #expect(throws: DatabaseError.self) { try replacement.run(.testing(2), replacing: .testing(3)) }
        #expect(error?.message.contains("holds another key by now than the stores had") == true, "\(error as Any)")
        #expect(directory.names == ["app.key", "new.key"])
        try replacement.run(.testing(2), replacing: .testing(1))
        try Self.requireDone(directory)
    }

    /// The file that is to be replaced holds that key, too. A power failure must not leave the copy empty.
    @Test func aFormerFileThatIsThereAlreadyIsSynced() throws {
        let directory = try TemporaryDirectory()
        try Self.prepare(directory)
        try directory.write("app.key.old", Array(Self.digits(1).utf8))
        let watch = CallWatch(directory.path)
        try Self.run(directory)
        let calls = watch.endWithAll()
        let synced = try #require(calls.firstIndex(of: "fsync app.key.old"), "\(calls)")
        let replaced = try #require(calls.firstIndex { $0.hasPrefix("rename") }, "\(calls)")
        #expect(synced < replaced)
    }

    /// A file system without hard links has a copy of the old file.
    @Test(arguments: [EPERM, EOPNOTSUPP]) func withoutHardLinks(code: Int32) throws {
        let directory = try TemporaryDirectory()
        try Self.prepare(directory)
        let count = CallWatch(directory.path)
        try Self.run(directory)
        let calls = count.endWithAll()
        let index = try #require(calls.firstIndex { $0.hasPrefix("link") })
        let other = try TemporaryDirectory()
        try Self.prepare(other)
        guard chmod(other.file("app.key"), 0o400) == 0 else { throw CocoaError(.fileWriteUnknown) }
        let watch = CallWatch(other.path, failing: index...index, code: code)
        #expect(throws: Never.self) { try Self.run(other) }
        #expect(watch.end(describing: index)?.hasPrefix("link") == true)
        var status = stat()
        for name in ["app.key", "app.key.old"] {
            #expect(stat(other.file(name), &status) == 0 && status.st_mode & 0o777 == 0o400 && status.st_nlink == 1)
        }
        try Self.requireDone(other)
    }

    /// A key that somebody else puts there meanwhile is neither used nor overwritten.
    @Test func filesThatChangeMeanwhile() throws {
        let directory = try TemporaryDirectory()
        try Self.prepare(directory)
        let replacement = try Self.replacement(directory)
        #expect(try replacement.check(isLooking: false) == .pending)
        let other = #expect(throws: DatabaseError.self) { try replacement.run(Key.testing(3)) }
        #expect(other?.reason == .keySourceFailed)
        #expect(Self.holders(of: 1, directory) == ["app.key", "app.key.old"])
        try directory.write("app.key.old", Array(Self.digits(4).utf8))
        let taken = #expect(throws: DatabaseError.self) { try replacement.run(Key.testing(2)) }
        #expect(taken?.reason == .alreadyExists)
        #expect(Self.holders(of: 4, directory) == ["app.key.old"] && Self.holders(of: 1, directory) == ["app.key"])
    }

    @Test func passphraseFilesToo() throws {
        let directory = try TemporaryDirectory()
        try directory.write("word", Array("old words\n".utf8))
        try directory.write("new", Array("new words".utf8))
        let source = KeySource.passphraseFile(directory.file("new"))
        let replacement = try KeyFileReplacement(.passphraseFile(directory.file("word")), by: source, ending: ".1")
        try replacement.run(source.key())
        #expect(try directory.bytes("word") == Data("new words".utf8))
        #expect(try directory.bytes("word.1") == Data("old words\n".utf8))
        #expect(directory.names == ["word", "word.1"])
        let mixed = #expect(throws: DatabaseError.self) {
            _ = try KeyFileReplacement(.keyFile(directory.file("word")), by: source, ending: ".1")
        }
        #expect(mixed?.reason == .notAllowed)
    }

    // MARK: Stages

    private static func replacement(by name: String, _ directory: TemporaryDirectory) throws -> KeyFileReplacement {
        try KeyFileReplacement(.keyFile(directory.file("app.key")), by: .keyFile(directory.file(name)), ending: ".old")
    }

    /// A signal came while it waited for the lock of either file.
    @Test func aSignalDoesNotEndAReplacement() throws {
        let first = try TemporaryDirectory()
        try Self.prepare(first)
        let count = CallWatch(first.path)
        try Self.run(first)
        let locks = count.endWithAll().enumerated().filter { $0.element.hasPrefix("flock") }
        #expect(locks.count == 2)
        for (index, call) in locks {
            let directory = try TemporaryDirectory()
            try Self.prepare(directory)
            let watch = CallWatch(directory.path, failing: index...index, code: EINTR)
            #expect(throws: Never.self, "\(call)") { try Self.run(directory) }
            watch.end()
            #expect(Self.holders(of: 2, directory) == ["app.key"] && Self.holders(of: 1, directory) == ["app.key.old"])
        }
    }

    /// What is left of the three files tells how far it came, and nothing else is taken for done.
    @Test func whatTheFilesTell() throws {
        let directory = try TemporaryDirectory()
        let replacement = try Self.replacement(directory)
        func stage(_ old: UInt8, _ new: UInt8?, _ former: UInt8?) -> KeyFileReplacement.Stage? {
            for (name, byte) in [("app.key", old), ("new.key", new), ("app.key.old", former)] as [(String, UInt8?)] {
                unlink(directory.file(name))
                // A file that cannot be written is missing, and so another stage is found.
                if let byte { _ = try? directory.write(name, Array(Self.digits(byte).utf8)) }
            }
            // What is none of the stages is refused.
            return try? replacement.stage()
        }
        #expect(stage(1, 2, nil) == .pending && stage(1, 2, 1) == .pending)
        #expect(stage(2, 2, 1) == .copied)
        #expect(stage(2, nil, 1) == .complete)
        #expect(stage(1, 2, 3) == nil && stage(2, 2, nil) == nil && stage(2, 2, 2) == nil)
        #expect(stage(1, nil, nil) == nil && stage(1, nil, 1) == nil)
    }

    /// The stores have another key by now than the file that is in its place.
    @Test func aReplacementThatIsDoneWithAnotherKey() throws {
        let directory = try TemporaryDirectory()
        try Self.prepare(directory)
        let replacement = try Self.replacement(directory)
        try replacement.run(Key.testing(2))
        let error = #expect(throws: DatabaseError.self) { try replacement.run(Key.testing(3)) }
        #expect(error?.reason == .keySourceFailed && error?.message.contains("the stores have now") == true)
        try replacement.run(Key.testing(2))
        try Self.requireDone(directory)
    }

    @Test func namesOfTheFormerKey() throws {
        let directory = try TemporaryDirectory()
        try Self.prepare(directory)
        let replacement = try Self.replacement(by: "app.key.new", directory)
        let file = replacement.file
        #expect(replacement.formerFile == file + ".old")
        #expect(replacement.keeping(formerFile: file + ".2026")?.formerFile == file + ".2026")
        for name in [file, file + ".new", file + "/x", directory.file("other.key"), "/elsewhere/app.key.old"] {
            #expect(replacement.keeping(formerFile: name) == nil, "\(name)")
        }
        let error = #expect(throws: DatabaseError.self) { _ = try Self.replacement(by: "app.key.old", directory) }
        #expect(error?.reason == .notAllowed && error?.message.contains("is to be kept") == true)
    }
}
