import Foundation
import Testing

@testable import SealedDB

/// Somebody puts another file in the place of one that holds a key, just when that is read, written or replaced.
@Suite(.hangLimit)
struct HeldKeyFileTests {
    /// Where the files of somebody else are before they take the place of others.
    private let outside: TemporaryDirectory

    init() throws {
        outside = try TemporaryDirectory()
    }

    private static func digits(_ byte: UInt8) -> [UInt8] {
        Array((String(repeating: String(format: "%02x", byte), count: 32) + "\n").utf8)
    }

    private static func makeRing(_ directory: TemporaryDirectory) throws {
        var ring = try KeyRing(activeID: "one", key: .testing(1))
        try ring.add(.testing(2), id: "two")
        try ring.write(toNewFile: directory.file("ring"))
    }

    private static func change(_ directory: TemporaryDirectory) throws {
        try KeyRing.update(file: directory.file("ring")) { ring throws(DatabaseError) in try ring.activate("two") }
    }

    /// The name of the file that is being written. The directory itself cannot be read while calls fail.
    private func temporary(in directory: String) throws -> String {
        let own = try FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd").compactMap { descriptor in
            try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/fd/\(descriptor)")
        }
        let file = try #require(own.first { ("/" + $0).hasPrefix(directory + "/.") && $0.contains(".sealdb-") })
        return "/" + file
    }

    private func replace(_ file: String, by bytes: [UInt8]) throws {
        let other = try outside.write("other", bytes)
        try #require(rename(other, file) == 0)
    }

    private func error(_ result: Result<some Any, any Error>) -> DatabaseError? {
        #expect(throws: DatabaseError.self) { _ = try result.get() }
    }

    // MARK: Reading

    /// What was read may be in no file any more.
    @Test func aFileThatIsReplacedWhileItIsConfirmed() throws {
        let (result, _) = try HeldOperation.run(
            "read key",
            prepare: { try $0.write("key", Self.digits(1)) },
            { try SecretFile.durableContents(atPath: $0.file("key"), what: "key file").count },
            meanwhile: { try replace($0 + "/key", by: Self.digits(1)) }
        )
        let error = error(result)
        #expect(error?.reason == .keySourceFailed, "\(error as Any)")
        #expect(error?.message.contains("was replaced while it was read") == true, "\(error as Any)")
    }

    // MARK: Writing

    @Test func aNewFileThatIsCutOff() throws {
        let (result, directory) = try HeldOperation.run(
            "pread .key.sealdb-*",
            prepare: { _ in },
            { try KeyFile.create(atPath: $0.file("key")) },
            meanwhile: { try #require(truncate(temporary(in: $0), 10) == 0) }
        )
        #expect(error(result)?.message.contains("read back") == true)
        #expect(directory.names == [])
    }

    /// Before the new ring has its name, and at the moment in which it gets it.
    @Test(arguments: ["write .ring.sealdb-*", "flock .ring.sealdb-*"]) func aNewRingThatIsExchanged(call: String) throws
    {
        let model = try TemporaryDirectory()
        try Self.makeRing(model)
        let before = try model.bytes("ring")
        let (result, directory) = try HeldOperation.run(
            call,
            prepare: { try $0.write("ring", before) },
            Self.change,
            meanwhile: { try replace(temporary(in: $0), by: Array("somebody else's".utf8)) }
        )
        let error = error(result)
        #expect(error?.reason == .unsafeKeyFile, "\(error as Any)")
        #expect(error?.message.contains("is unchanged") == true, "\(error as Any)")
        // If it is noticed before, the other file does not get the name of the ring even for a moment.
        #expect(error?.message.contains("ring.sealdb-") == call.hasPrefix("write"), "\(error as Any)")
        #expect(try directory.bytes("ring") == before)
        #expect(directory.names == ["ring"])
    }

    /// Without the old ring there is nothing that could take its place again.
    @Test func aNewRingThatIsExchangedAfterTheOldOneIsGone() throws {
        let (result, directory) = try HeldOperation.run(
            "flock .ring.sealdb-*",
            prepare: Self.makeRing,
            Self.change,
            meanwhile: { directory in
                try replace(temporary(in: directory), by: Array("somebody else's".utf8))
                try #require(unlink(directory + "/ring") == 0)
            }
        )
        let error = error(result)
        #expect(error?.reason == .unsafeKeyFile, "\(error as Any)")
        #expect(error?.message.contains("Somebody else's file is") == true, "\(error as Any)")
        #expect(try Array(directory.bytes("ring")) == Array("somebody else's".utf8))
    }

    // MARK: Replacements of key files

    private static func prepareReplacement(_ directory: TemporaryDirectory) throws {
        try directory.write("app.key", digits(1))
        try directory.write("new.key", digits(2))
    }

    private static func replaceKeyFile(_ directory: TemporaryDirectory) throws {
        try KeyFileReplacement(
            .keyFile(directory.file("app.key")),
            by: .keyFile(directory.file("new.key")),
            ending: ".old"
        ).run(.testing(2))
    }

    /// The lock of the former file is worth nothing: it begins anew with the present one.
    @Test func anotherProcessHasReplacedTheKeyFile() throws {
        let (result, directory) = try HeldOperation.run(
            "flock app.key",
            prepare: Self.prepareReplacement,
            Self.replaceKeyFile,
            meanwhile: { try replace($0 + "/app.key", by: Self.digits(1)) }
        )
        try result.get()
        #expect(directory.names == ["app.key", "app.key.old"])
        #expect(try Array(directory.bytes("app.key")) == Self.digits(2))
        #expect(try Array(directory.bytes("app.key.old")) == Self.digits(1))
    }

    /// Somebody has locked the file that is there by now.
    @Test func theLockOfThePresentKeyFileIsWaitedFor() throws {
        let runs = Guarded(0)
        let hasWaited = Guarded(false)
        let (result, directory) = try HeldOperation.run(
            "flock app.key",
            prepare: Self.prepareReplacement,
            { directory in
                defer { runs.withLock { $0 += 1 } }
                try Self.replaceKeyFile(directory)
            },
            meanwhile: { directory in
                let other = try outside.write("other", Self.digits(1))
                let descriptor = open(other, O_RDONLY | O_CLOEXEC)
                try #require(flock(descriptor, LOCK_EX) == 0)
                let name = LockTable.name(of: try FileSystem.status(other), at: other)
                try #require(rename(other, directory + "/app.key") == 0)
                Thread.detachNewThread {
                    // The first run is the one whose calls are counted.
                    while runs.withLock({ $0 < 2 }) {
                        let lines = LockTable()?.lines(with: name) ?? []
                        guard lines.contains(where: { $0.contains("-> FLOCK") }) else { continue }
                        hasWaited.withLock { $0 = true }
                        break
                    }
                    close(descriptor)
                }
            }
        )
        try result.get()
        #expect(hasWaited.withLock { $0 })
        #expect(directory.names == ["app.key", "app.key.old"])
    }

    /// It may be the only copy of that key.
    @Test func anotherNewKeyIsNotRemoved() throws {
        let (result, directory) = try HeldOperation.run(
            "read app.key",
            number: -1,
            prepare: Self.prepareReplacement,
            Self.replaceKeyFile,
            meanwhile: { try replace($0 + "/new.key", by: Self.digits(3)) }
        )
        let error = error(result)
        #expect(error?.message.contains("holds another key by now, so it is not removed") == true, "\(error as Any)")
        #expect(try Array(directory.bytes("new.key")) == Self.digits(3))
        #expect(try Array(directory.bytes("app.key")) == Self.digits(2))
        #expect(try Array(directory.bytes("app.key.old")) == Self.digits(1))
    }

    @Test func aNewKeyThatIsGoneAlready() throws {
        let (result, directory) = try HeldOperation.run(
            "read app.key",
            number: -1,
            prepare: Self.prepareReplacement,
            Self.replaceKeyFile,
            meanwhile: { try #require(unlink($0 + "/new.key") == 0) }
        )
        try result.get()
        #expect(directory.names == ["app.key", "app.key.old"])
        // Also between the look and the removal.
        let call = try FailedCall("unlink new.key", ENOENT, prepare: Self.prepareReplacement, Self.replaceKeyFile)
        #expect(call.error == nil)
        let other = try FailedCall("unlink new.key", EPERM, prepare: Self.prepareReplacement, Self.replaceKeyFile)
        #expect(other.error?.message.contains("which holds it too, cannot be removed") == true)
    }

    @Test func aFormerKeyThatComesAtTheLastMoment() throws {
        let call = try FailedCall("link app.key.old", EEXIST, prepare: Self.prepareReplacement, Self.replaceKeyFile)
        #expect(call.error?.reason == .alreadyExists, "\(call.error as Any)")
        let other = try FailedCall("link app.key.old", EIO, prepare: Self.prepareReplacement, Self.replaceKeyFile)
        #expect(other.error?.reason == .cannotCreate, "\(other.error as Any)")
    }

    @Test func namesOfReplacements() throws {
        let inRoot = try KeyFileReplacement(.keyFile("/app.key"), by: .keyFile("/new.key"), ending: ".old")
        #expect(inRoot.file == "/app.key" && inRoot.newFile == "/new.key" && inRoot.formerFile == "/app.key.old")
        guard case .keyFile("/app.key") = inRoot.source else {
            Issue.record("\(inRoot.source)")
            return
        }
        let passphrase = try KeyFileReplacement(.passphraseFile("/pass"), by: .passphraseFile("/new"), ending: ".old")
        guard case .passphraseFile("/pass") = passphrase.source else {
            Issue.record("\(passphrase.source)")
            return
        }
    }
}
