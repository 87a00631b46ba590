import Foundation
import Testing

@testable import SealedDB

/// What an operation on a whole store says that it did, or that it would do, is what it did.
@Suite(.hangLimit, .enabled(if: isEncrypting, "needs a codec"))
struct OperationReportTests {
    private let directory: TemporaryDirectory

    /// Leads to the directory, so that a name below it is not the absolute path of anything.
    private var link: String { directory.file("link") }

    init() throws {
        directory = try TemporaryDirectory()
        try FileManager.default.createSymbolicLink(atPath: link, withDestinationPath: directory.path)
    }

    private func make(_ name: String = "db", key: UInt8? = 1, mode: Configuration.JournalMode = .delete) throws {
        var configuration = Configuration(key: try key.map { try .testing($0) })
        configuration.journalMode = mode
        let database = Database(path: directory.file(name), configuration: configuration)
        try database.openVerified()
        try database.fill(rows: 500)
        try #require(database.close())
    }

    enum Operation: CaseIterable, Sendable {
        case rotation, backup, encryption, decryption, migration

        var isInPlace: Bool { self == .rotation || self == .migration }
        var pageSize: Int { self == .migration ? 8192 : 4096 }
    }

    private func run(_ operation: Operation) throws -> KeyRotation.Report {
        let (path, new, key) = (link + "/db", link + "/new", try Key.testing(1))
        switch operation {
        case .rotation: return try KeyRotation(path: path, from: key, to: .testing(2)).run()
        case .backup: return try StoreBackup(path: path, key: key, to: new).run()
        case .encryption: return try StoreEncryption(plaintextPath: path, path: new, key: key).run()
        case .decryption: return try StoreDecryption(path: path, key: key, plaintextPath: new).run()
        case .migration:
            return try StoreMigration(path: path, key: key, from: .init(), to: CipherSettings(pageSize: 8192)).run()
        }
    }

    @Test(arguments: Operation.allCases) func whatItSaysThatItDid(operation: Operation) throws {
        try make(key: operation == .encryption ? nil : 1)
        let name = operation.isInPlace ? "db" : "new"
        let start = DispatchTime.now().uptimeNanoseconds
        let report = try run(operation)
        let most = Double(DispatchTime.now().uptimeNanoseconds - start) / 1e9
        #expect(report.path == FileSystem.resolve(directory.file(name)))
        #expect(report.pageSize == operation.pageSize)
        #expect(try Int(report.pageCount) * report.pageSize == directory.bytes(name).count)
        #expect(report.seconds > 0 && report.seconds <= most)
    }

    @Test(arguments: [false, true]) func whatARestoreSaysThatItDid(isReplaced: Bool) throws {
        try make("backup")
        if isReplaced { try make(key: 7) }
        let report = try StoreRestore(backupPath: directory.file("backup"), key: .testing(1), to: link + "/db").run()
        #expect(report.path == FileSystem.resolve(directory.file("db")) && report.pageSize == 4096)
        #expect(try Int(report.pageCount) * 4096 == directory.bytes("db").count)
        let kept = directory.names.filter { $0.hasPrefix("db.replaced-") }
        #expect(report.replacedPath.map { FileSystem.name(of: $0) } == kept.first)
        #expect(kept.count == (isReplaced ? 1 : 0) && directory.names.count == 3 + kept.count)
    }

    @Test(arguments: [Configuration.JournalMode.delete, .wal], [false, true])
    func whatAPlanSays(mode: Configuration.JournalMode, migrates: Bool) throws {
        try make(mode: mode)
        let size = Int64(try directory.bytes("db").count)
        let (path, key) = (directory.file("db"), try Key.testing(1))
        let start = DispatchTime.now().uptimeNanoseconds
        let plan =
            if migrates {
                try StoreMigration(path: path, key: key, from: .init(), to: CipherSettings(pageSize: 8192)).plan()
            } else { try KeyRotation(path: path, from: key, to: .testing(2)).plan() }
        let elapsed = Double(DispatchTime.now().uptimeNanoseconds - start) / 1e9
        #expect(plan.path == FileSystem.resolve(path) && plan.journalMode == mode.rawValue)
        #expect(plan.fileSize == size && plan.pageSize == 4096 && plan.pageCount * 4096 == size)
        #expect((size * 109 / 100...size * 111 / 100).contains(plan.neededSpace))
        var status = statvfs()
        try #require(statvfs(directory.path, &status) == 0)
        #expect(plan.freeSpace > 0 && UInt64(plan.freeSpace) <= UInt64(status.f_blocks) * UInt64(status.f_frsize))
        // All pages were read for it once, and the copy takes some times as long: four times, or thirty row by row.
        let estimate = try #require(plan.estimatedSeconds)
        #expect(estimate > 0 && estimate <= elapsed * (migrates ? 30 : 4))
        #expect(plan.removedSlots == nil)
    }

    /// A rotation that has copied everything, and cannot remove a journal that SQLite would take for the new file's, leaves
    /// the store as it is.
    @Test(arguments: ["-journal", "-wal", "-shm"]) func aJournalThatCannotBeRemoved(suffix: String) throws {
        try make()
        let sealing = Sealing(key: try .testing(1))
        let source = try RotationSource(path: directory.file("db"), sealing: sealing, busyTimeout: 0)
        defer { source.connection.close() }
        func names() -> [String] { directory.namesOfFiles.filter { $0 != "link" } }
        let suffixes = JournalName.suffixes
        for other in suffixes { try directory.write("db" + other, []) }
        let all = CallWatch(directory.path)
        try source.requireNoJournal()
        let calls = all.endWithAll()
        #expect(names() == ["db"])
        // Removed for good.
        let lastRemoval = try #require(calls.lastIndex { $0.hasPrefix("unlink") })
        #expect(calls[lastRemoval...].contains { $0.hasPrefix("fsync") }, "\(calls)")
        for other in suffixes { try directory.write("db" + other, []) }
        let index = try #require(calls.firstIndex(of: "unlink db" + suffix))
        let failing = CallWatch(directory.path, failing: index...index)
        let error = #expect(throws: DatabaseError.self) { try source.requireNoJournal() }
        failing.end()
        #expect(error?.reason == .ioError && error?.message.contains("db\(suffix)") == true)
        let left = suffixes.drop { $0 != suffix }
        #expect(names() == (["db"] + left.map { "db" + $0 }).sorted())
        try source.requireNoJournal()
        #expect(names() == ["db"])
    }

    /// Whoever had to leave WAL mode and cannot return to it says so, and why.
    @Test func aStoreThatCannotReturnToWALMode() throws {
        try make()
        let (path, key) = (directory.file("db"), try Key.testing(1))
        let source = try RotationSource(path: path, sealing: Sealing(key: key), busyTimeout: 0)
        defer { source.connection.close() }
        let cause = DatabaseError(extendedCode: SQLITE_FULL, message: "It is full.")
        let told = "The store is left with a rollback journal; \"PRAGMA journal_mode = WAL\" brings "
        func expectTold() {
            let error = source.returnedToWAL(cause)
            #expect(error.code == SQLITE_FULL && error.message.hasPrefix(told), "\(error)")
            #expect(error.message.hasSuffix(": It is full."), "\(error)")
        }
        // Somebody reads it.
        let other = try StoreOpening(path: path, key: key, takesLock: false).open()
        try other.run("BEGIN")
        #expect(try other.integer("SELECT count(*) FROM t") == 500)
        expectTold()
        try other.run("ROLLBACK")
        #expect(other.close())
        #expect(source.returnedToWAL(cause) == cause)
        #expect(try source.connection.text("PRAGMA journal_mode") == "wal")
        source.connection.close()
        expectTold()
    }
}
