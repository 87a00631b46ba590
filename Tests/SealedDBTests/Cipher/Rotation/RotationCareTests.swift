import Foundation
import Testing

@testable import SealedDB

/// What keeps a rotation from beginning is found before anything is copied, and told by its plan, which writes nothing.
@Suite(.hangLimit, .enabled(if: isEncrypting, "needs a codec"))
struct RotationCareTests {
    private let directory: TemporaryDirectory

    init() throws { directory = try TemporaryDirectory() }

    private static func make(_ directory: TemporaryDirectory, _ mode: Configuration.JournalMode = .delete) throws {
        let database = try Database.testing(directory.file("db"), journalMode: mode)
        try database.fill(rows: 300)
        database.close()
    }

    private static func rotation(_ directory: TemporaryDirectory, oldFileSuffix: String? = nil) throws -> KeyRotation {
        KeyRotation(
            path: directory.file("db"),
            from: try .testing(1),
            to: try .testing(2),
            oldFileSuffix: oldFileSuffix
        )
    }

    /// What a plan and a rotation throw, of which neither has told any progress.
    private func refusals(oldFileSuffix: String? = nil) throws -> [DatabaseError] {
        let rotation = try Self.rotation(directory, oldFileSuffix: oldFileSuffix)
        var isBegun = false
        let errors = [
            try #require(throws: DatabaseError.self) { try rotation.plan() },
            try #require(throws: DatabaseError.self) { try rotation.run { _ in isBegun = true } },
        ]
        #expect(!isBegun)
        for error in errors {
            #expect(error.message.hasPrefix("The rotation did not begin, and the store is unchanged: "), "\(error)")
        }
        return errors
    }

    private func expectUnchanged(_ directory: TemporaryDirectory, key: UInt8 = 1) throws {
        let store = try Database.testing(directory.file("db"), key: key)
        defer { store.close() }
        #expect(try store.integers("SELECT count(*) FROM t") == [300])
        #expect(!directory.names.contains { $0.contains(".sealdb-") }, "\(directory.names)")
    }

    // MARK: Refusals

    /// It holds no lock of SQLite and none of ours, as a shell that waits for input.
    @Test func somebodyHasTheFile() throws {
        try Self.make(directory)
        let (holder, input, output) = (Process(), Pipe(), Pipe())
        holder.executableURL = URL(fileURLWithPath: "/bin/sh")
        holder.arguments = ["-c", "exec 9<>'\(directory.file("db"))'; echo ready; read line"]
        holder.standardInput = input
        holder.standardOutput = output
        try holder.run()
        #expect(output.fileHandleForReading.availableData == Data("ready\n".utf8))
        let errors = try refusals()
        #expect(errors.map(\.reason) == [.busy, .busy], "\(errors)")
        let rekey = InPlaceRekey(
            opening: StoreOpening(path: directory.file("db"), key: try .testing(1)),
            newKey: try .testing(2)
        )
        let error = #expect(throws: DatabaseError.self) { try rekey.run() }
        #expect(error?.reason == .busy && error?.message.contains("unchanged under the old key") == true)
        try input.fileHandleForWriting.close()
        holder.waitUntilExit()
        try expectUnchanged(directory)
    }

    /// Another name would keep the old contents under the old key.
    @Test func aStoreWithTwoNames() throws {
        try Self.make(directory)
        #expect(link(directory.file("db"), directory.file("other")) == 0)
        #expect(try refusals().map(\.reason) == [.hardLinked, .hardLinked])
        unlink(directory.file("other"))
        try expectUnchanged(directory)
    }

    /// What stands behind the damage would be missing in the copy.
    @Test func aDamagedLog() throws {
        let service = try Database.testing(directory.file("db"), journalMode: .wal)
        try service.fill(rows: 30)
        for id in 1...20 { try service.executeUpdate("DELETE FROM t WHERE id = ?", values: [id]) }
        try directory.keep("db", "db-wal", of: service)
        var log = try directory.bytes("db-wal")
        log[32 + 24 + 4120 + 100] ^= 1
        try directory.write("db-wal", log)
        let files = try (directory.bytes("db"), directory.bytes("db-wal"))
        #expect(try refusals().map(\.reason) == [.damaged, .damaged])
        #expect(try directory.bytes("db") == files.0 && directory.bytes("db-wal") == files.1)
    }

    /// The name of the lock file belongs to something else.
    @Test func aFileInPlaceOfTheLock() throws {
        try Self.make(directory)
        unlink(directory.file("db-sealdb-lock"))
        try directory.write("db-sealdb-lock", [1])
        let errors = try refusals()
        #expect(errors.map(\.reason) == [.cannotCreate, .cannotCreate], "\(errors)")
        #expect(try directory.bytes("db-sealdb-lock") == Data([1]))
    }

    /// By such a name SQLite or this library would take the old file for a part of the new one.
    @Test(arguments: ["-journal", "-wal", "-shm", ".slots", ".slots.2", "-sealdb-lock"])
    func aNameOfAnotherPart(suffix: String) throws {
        try Self.make(directory)
        let before = directory.namesOfFiles
        let errors = try refusals(oldFileSuffix: suffix)
        #expect(errors.allSatisfy { $0.reason != .alreadyExists }, "\(errors)")
        #expect(directory.namesOfFiles == before)
        try expectUnchanged(directory)
    }

    /// No file can be made beside the store.
    @Test(arguments: [true, false]) func aPlaceThatMayNotBeWrittenTo(isPlan: Bool) throws {
        let call = try FailedCall("access", EACCES, number: isPlan ? 1 : 0, prepare: { try Self.make($0) }) {
            directory in
            let rotation = try Self.rotation(directory)
            if isPlan { _ = try rotation.plan() } else { _ = try rotation.run() }
        }
        #expect(call.error?.reason == .cannotCreate, "\(call.error as Any)")
        #expect(call.error?.message.contains("The copy needs a place beside") == true, "\(call.error as Any)")
        try expectUnchanged(call.directory)
    }

    /// Nor is a copy begun there while the store is in use.
    @Test(arguments: [Configuration.JournalMode.wal, .delete])
    func aPlaceForACopyInService(mode: Configuration.JournalMode) throws {
        try Self.make(directory, mode)
        let database = try Database.testing(directory.file("db"), journalMode: mode)
        let all = CallWatch(directory.path)
        try database.liveCopy(for: .testing(2)).discard()
        let index = try #require(all.endWithAll().firstIndex { $0 == "access \(directory.path)" })
        let watch = CallWatch(directory.path, failing: index...index, code: EACCES)
        let error = #expect(throws: DatabaseError.self) { try database.liveCopy(for: .testing(2)).discard() }
        #expect(watch.end(describing: index)?.hasPrefix("access") == true)
        #expect(error?.reason == .cannotCreate, "\(error as Any)")
        database.close()
        try expectUnchanged(directory)
    }

    // MARK: The end

    /// They would not have the new key, so the swap would make all of them useless.
    @Test func slotsThatComeMeanwhile() throws {
        try Self.make(directory)
        let error = #expect(throws: DatabaseError.self) {
            try Self.rotation(directory).run { state in
                if state.phase == .swap { try directory.write("db.slots", [1]) }
            }
        }
        #expect(error?.reason == .unsupported, "\(error as Any)")
        #expect(error?.message.contains("got them meanwhile") == true, "\(error as Any)")
        unlink(directory.file("db.slots"))
        try expectUnchanged(directory)
    }

    /// The new store is in its place, and whether it opens is not known.
    @Test func aNewStoreThatCannotBeReopened() throws {
        let model = try TemporaryDirectory()
        try Self.make(model)
        let count = CallWatch(model.path)
        _ = try Self.rotation(model).run()
        let last = count.endWithAll().count { $0.hasPrefix("pread db") } - 1
        try #require(last > 0)
        let call = try FailedCall("pread db", number: last, prepare: { try Self.make($0) }) { directory in
            _ = try Self.rotation(directory).run()
        }
        let told = "The store has the new key, which was verified before the swap, but could not be reopened: "
        #expect(call.error?.message.hasPrefix(told) == true, "\(call.error as Any)")
        try expectUnchanged(call.directory, key: 2)
    }

    /// Who finds the rotation done may remove the old key, so a power failure must not bring the old store back.
    @Test func whatIsDoneIsDurable() throws {
        try Self.make(directory)
        try Self.rotation(directory).run()
        let watch = CallWatch(directory.path)
        #expect(try Self.rotation(directory).isDone())
        let calls = watch.endWithAll()
        #expect(calls.contains("fsync \(directory.path)"), "\(calls)")
        let failed = try FailedCall(
            "fsync",
            prepare: { directory in
                try Self.make(directory)
                try Self.rotation(directory).run()
            }
        ) { directory in try Self.rotation(directory).isDone() }
        #expect(failed.value == nil && failed.error?.reason == .ioError, "\(failed.error as Any)")
    }

    /// A journal that a power failure brings back would bring the old key back, too.
    @Test func theJournalOfARekeyIsGoneForGood() throws {
        try Self.make(directory)
        let opening = StoreOpening(path: directory.file("db"), key: try .testing(1))
        let watch = CallWatch(directory.path)
        try InPlaceRekey(opening: opening, newKey: .testing(2)).run()
        let calls = watch.endWithAll()
        let removed = try #require(calls.lastIndex { $0.hasPrefix("unlink db-journal") }, "\(calls)")
        #expect(calls[removed...].contains { $0.hasSuffix("sync \(directory.path)") }, "\(calls)")
        try expectUnchanged(directory, key: 2)
    }
}
