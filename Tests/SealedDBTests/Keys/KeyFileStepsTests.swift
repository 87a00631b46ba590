import Foundation
import Testing

@testable import SealedDB

/// The steps in which a new key file takes the place of an old one: each is on the disk before the next, and nothing is begun
/// that cannot be ended.
@Suite(.hangLimit)
struct KeyFileStepsTests {
    private let directory: TemporaryDirectory
    /// Where the new key is.
    private let other: String

    init() throws {
        directory = try TemporaryDirectory()
        other = directory.file("other")
        try FileManager.default.createDirectory(atPath: other, withIntermediateDirectories: false)
        try write("app.key", 1)
        try write("other/new.key", 2)
    }

    private func write(_ name: String, _ byte: UInt8) throws {
        try directory.write(name, [UInt8](repeating: byte, count: 32))
    }

    private func replacement(ending: String = ".old") throws -> KeyFileReplacement {
        try KeyFileReplacement(
            .keyFile(directory.file("app.key")),
            by: .keyFile(other + "/new.key"),
            ending: ending
        )
    }

    private func calls(_ body: () throws -> Void) throws -> [String] {
        let watch = CallWatch(directory.path)
        let result = Result { try body() }
        let calls = watch.endWithAll()
        try result.get()
        return calls
    }

    /// Whether each call comes after the one before.
    private func expectOrder(_ names: [String], _ calls: [String]) {
        var rest = calls[...]
        for name in names {
            guard let index = rest.firstIndex(of: name) else {
                Issue.record("\(name) is not after what comes before it: \(calls)")
                return
            }
            rest = rest[(index + 1)...]
        }
    }

    // MARK: The order

    @Test func eachStepIsOnTheDiskBeforeTheNext() throws {
        let calls = try calls { try replacement().run(.testing(2)) }
        let place = "fsync \(directory.path)"
        let steps = ["fsync app.key", "link app.key.old", place, "rename app.key", place, "unlink other/new.key"]
        expectOrder(steps, calls)
        expectOrder(["fsync other/new.key", "rename app.key"], calls)
        expectOrder(["unlink other/new.key", "fsync other"], calls)
    }

    /// An earlier run was killed before what it had renamed was on the disk.
    @Test func anInterruptedRunIsFinishedDurably() throws {
        try write("app.key.old", 1)
        try write("app.key", 2)
        let copied = try calls { try replacement().run(.testing(2)) }
        expectOrder(["fsync app.key", "fsync \(directory.path)", "unlink other/new.key", "fsync other"], copied)
        // Or after the last step.
        let complete = try calls { try replacement().run(.testing(2)) }
        #expect(complete.contains("fsync other"), "\(complete)")
    }

    /// The new file may be the only one with the key that the stores have.
    @Test func aNewFileStaysIfTheKeyIsNotInPlace() throws {
        try write("app.key.old", 1)
        try write("app.key", 2)
        let error = #expect(throws: DatabaseError.self) { try replacement().run(.testing(3)) }
        #expect(error?.reason == .keySourceFailed)
        #expect(error?.message.contains("does not hold the key that the stores have now") == true)
        #expect(FileSystem.exists(other + "/new.key"))
    }

    /// What cannot be read at this moment may be another key.
    @Test func aNewFileThatCannotBeReadIsNotRemoved() throws {
        let digits = String(repeating: "02", count: 32).utf8
        let (result, place) = try HeldOperation.run(
            "read app.key",
            number: -1,
            prepare: { directory in
                try directory.write("app.key", [UInt8](repeating: 1, count: 32))
                try directory.write("new.key", digits)
            },
            { directory in
                let new = KeySource.keyFile(directory.file("new.key"))
                try KeyFileReplacement(.keyFile(directory.file("app.key")), by: new, ending: ".old")
                    .run(.testing(2))
            },
            meanwhile: { try #require(chmod($0 + "/new.key", 0o644) == 0) }
        )
        let error = #expect(throws: DatabaseError.self) { try result.get() }
        #expect(error?.reason == .unsafeKeyFile)
        #expect(place.names == ["app.key", "app.key.old", "new.key"])
    }

    /// What a killed run left holds a key.
    @Test func whatAKilledRunLeftIsRemoved() throws {
        for name in ["app.key", "app.key.old"] {
            let leftover = try TemporaryFile.path(beside: directory.file(name))
            try directory.write(FileSystem.name(of: leftover), [UInt8](repeating: 1, count: 32))
        }
        try replacement().run(.testing(2))
        #expect(directory.names == ["app.key", "app.key.old", "other"])
    }

    // MARK: What is refused beforehand

    @Test func namesThatAreRefused() throws {
        let path = directory.file("app.key")
        let same = #expect(throws: DatabaseError.self) {
            _ = try KeyFileReplacement(.keyFile(path), by: .keyFile(path), ending: ".old")
        }
        #expect(same?.reason == .notAllowed && same?.message.contains("both the old and the new") == true)
        let digits = String(repeating: "5a", count: 32)
        let key = #expect(throws: DatabaseError.self) {
            _ = try KeyFileReplacement(.keyFile(digits), by: .keyFile(path), ending: ".old")
        }
        #expect(key?.reason == .malformedKey && key?.message.contains("5a5a") == false)
        // Who uses that store removes its log.
        try directory.write("app.key.db", [])
        let log = #expect(throws: DatabaseError.self) {
            _ = try replacement(ending: ".db-wal").check(isLooking: true)
        }
        #expect(log?.reason == .cannotCreate)
    }

    /// The key would stay under the other name.
    @Test(arguments: ["app.key", "other/new.key"]) func aFileWithAnotherName(name: String) throws {
        try #require(link(directory.file(name), directory.file("second")) == 0)
        let error = #expect(throws: DatabaseError.self) { _ = try replacement().check(isLooking: true) }
        #expect(error?.reason == .hardLinked)
    }

    /// Of either directory: whether it can be written, and whether it can be read and so synced.
    @Test func aDirectoryThatMayNotBeChanged() throws {
        func check() throws { #expect(try replacement().check(isLooking: true) == .pending) }
        let calls = try calls(check)
        let asked = calls.indices.filter { calls[$0].hasPrefix("access ") }
        #expect(asked.map { calls[$0] }.count { $0 == "access other" } == 2, "\(calls)")
        #expect(asked.count == 4, "\(calls)")
        for (number, index) in asked.enumerated() {
            let watch = CallWatch(directory.path, failing: index...index, code: EACCES)
            let result = Result { try check() }
            watch.end()
            let error = #expect(throws: DatabaseError.self, "\(number)") { try result.get() }
            #expect(error?.reason == .cannotCreate)
            #expect(error?.message.contains("durably") == (number % 2 == 1), "\(number): \(error as Any)")
        }
    }

    /// A look writes nothing. Otherwise it is tried whether a new file can have the mode of the old one, and nothing stays.
    @Test func aRehearsal() throws {
        try #require(chmod(directory.file("app.key"), 0o400) == 0)
        func made(isLooking: Bool) throws -> [String] {
            try calls { _ = try replacement().check(isLooking: isLooking) }.filter { $0.contains(".app.key.sealdb-*") }
        }
        #expect(try made(isLooking: true) == [])
        let rehearsed = try made(isLooking: false)
        expectOrder(["open .app.key.sealdb-*", "fchmod .app.key.sealdb-*", "unlink .app.key.sealdb-*"], rehearsed)
        #expect(directory.names == ["app.key", "other"])
    }
}
