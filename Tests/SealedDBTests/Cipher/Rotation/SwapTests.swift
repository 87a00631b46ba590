import Foundation
import Testing

@testable import SealedDB

/// What happens between the copy of a store and the moment at which it takes its place: whatever comes then, the copy is
/// only used if it holds what its source holds, and nobody loses a store that is in use.
@Suite(.enabled(if: isEncrypting, "needs a codec"), .hangLimit)
struct SwapTests {
    private let directory: TemporaryDirectory
    /// The contents of a log, a journal and an index of others.
    private let theirs = [UInt8](repeating: 0xd9, count: 32768)

    init() throws {
        directory = try TemporaryDirectory()
    }

    /// All that makes a copy of a store, or of a database in plaintext.
    enum Operation: CaseIterable, Sendable {
        case rotate, migrate, backup, restore, restoreAnew, encrypt, decrypt

        /// Those that put it in the place of another file.
        static let replacing: [Operation] = [.rotate, .migrate, .restore]

        var hasSealedSource: Bool { self != .encrypt }
        /// What the copy is beside.
        var target: String { Operation.replacing.contains(self) ? "db" : "new" }
        var targetKey: UInt8? { self == .decrypt ? nil : self == .rotate ? 2 : 1 }
        var targetSettings: CipherSettings { self == .migrate ? CipherSettings(pageSize: 8192) : .init() }
    }

    private func make(_ operation: Operation) throws {
        func make(_ name: String, _ body: String) throws {
            let database = Database(
                path: directory.file(name),
                configuration: Configuration(key: operation.hasSealedSource ? try .testing(1) : nil)
            )
            try database.openVerified()
            try database.executeUpdate("CREATE TABLE t (id INTEGER PRIMARY KEY, body TEXT)")
            try database.executeUpdate(
                """
                WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 200)
                INSERT INTO t (body) SELECT ? FROM n
                """,
                body
            )
            database.close()
        }
        try make("db", "right")
        if [.restore, .restoreAnew].contains(operation) { try make("source", "right") }
    }

    private func run(_ operation: Operation, progress: @escaping (KeyRotation.Progress) throws -> Void) throws {
        let (path, key) = (directory.file("db"), try Key.testing(1))
        switch operation {
        case .rotate: try KeyRotation(path: path, from: key, to: .testing(2)).run(progress: progress)
        case .migrate:
            let migration = StoreMigration(path: path, key: key, from: .init(), to: operation.targetSettings)
            _ = try migration.run(progress: progress)
        case .backup: try StoreBackup(path: path, key: key, to: directory.file("new")).run(progress: progress)
        case .restore, .restoreAnew:
            let restore = StoreRestore(
                backupPath: directory.file("source"),
                key: key,
                to: directory.file(operation.target)
            )
            try restore.run(progress: progress)
        case .encrypt:
            let encryption = StoreEncryption(plaintextPath: path, path: directory.file("new"), key: key)
            _ = try encryption.run(progress: progress)
        case .decrypt:
            let decryption = StoreDecryption(path: path, key: key, plaintextPath: directory.file("new"))
            _ = try decryption.run(progress: progress)
        }
    }

    private func database(_ name: String, key: UInt8?, _ settings: CipherSettings = .init()) throws -> Database {
        var configuration = Configuration(key: try key.map { try .testing($0) })
        configuration.cipherSettings = settings
        let database = Database(path: directory.file(name), configuration: configuration)
        try database.openVerified()
        return database
    }

    /// Runs the operation with something that happens once the copy is complete, and is to make it fail.
    private func failure(_ operation: Operation, _ event: @escaping () throws -> Void) throws -> DatabaseError? {
        try make(operation)
        var (hasCopied, hasHappened) = (false, false)
        let error = #expect(throws: DatabaseError.self) {
            try run(operation) { state in
                if state.phase == .copy { hasCopied = true }
                guard hasCopied, state.phase != .copy, !hasHappened else { return }
                hasHappened = true
                try event()
            }
        }
        #expect(hasHappened)
        return error
    }

    private func expectUnchanged(_ operation: Operation) throws {
        let store = try database("db", key: operation.hasSealedSource ? 1 : nil)
        #expect(try store.executeQuery("SELECT count(*) FROM t WHERE body = 'right'").scalar(Int.self) == 200)
        store.close()
        #expect(!directory.names.contains { $0 == "new" || $0.contains(".sealdb-") || $0.contains("replaced") })
    }

    /// The copy is authentic and sound, and is not what was copied.
    @Test(arguments: Operation.allCases)
    func aCopyThatHoldsSomethingElseIsNotUsed(operation: Operation) throws {
        let error = try failure(operation) {
            let name = try #require(directory.names.first { $0.hasPrefix(".\(operation.target).sealdb-") })
            let copy = try database(name, key: operation.targetKey, operation.targetSettings)
            try copy.executeUpdate("UPDATE t SET body = 'wrong' WHERE id = 100")
            #expect(copy.changes == 1)
            copy.close()
        }
        #expect(error?.reason == .unverified, "\(error as Any)")
        try expectUnchanged(operation)
    }

    /// They hold no lock of SQLite and none of ours, as a shell that waits for input.
    @Test(arguments: Operation.replacing)
    func whoComesMeanwhileKeepsTheStore(operation: Operation) throws {
        let (holder, input, output) = (Process(), Pipe(), Pipe())
        let error = try failure(operation) {
            holder.executableURL = URL(fileURLWithPath: "/bin/sh")
            holder.arguments = ["-c", "exec 9<>'\(directory.file("db"))'; echo ready; read line"]
            holder.standardInput = input
            holder.standardOutput = output
            try holder.run()
            #expect(output.fileHandleForReading.availableData == Data("ready\n".utf8))
        }
        #expect(error?.reason == .busy, "\(error as Any)")
        #expect(error?.message.contains("process \(holder.processIdentifier)") == true, "\(error as Any)")
        try input.fileHandleForWriting.close()
        holder.waitUntilExit()
        try expectUnchanged(operation)
    }

    /// It cannot be the store's, whose lock nobody else has had.
    @Test(arguments: [Operation.rotate, .migrate], ["-journal", "-wal"])
    func aJournalThatComesMeanwhileStays(operation: Operation, suffix: String) throws {
        let error = try failure(operation) { try directory.write("db\(suffix)", theirs) }
        #expect(error?.reason == .busy && error?.message.contains("db\(suffix) came") == true, "\(error as Any)")
        #expect(try directory.bytes("db\(suffix)") == Data(theirs))
        unlink(directory.file("db\(suffix)"))
        try expectUnchanged(operation)
    }

    /// Somebody puts another file in place: what is in that must not be replaced by a copy of what was there before.
    @Test(arguments: [Operation.rotate, .migrate])
    func aFileThatWasPutInPlaceMeanwhileStays(operation: Operation) throws {
        let error = try failure(operation) {
            try FileManager.default.copyItem(atPath: directory.file("db"), toPath: directory.file("other"))
            let other = try database("other", key: 1)
            try other.executeUpdate("CREATE TABLE theirs (a)")
            other.close()
            #expect(rename(directory.file("other"), directory.file("db")) == 0)
            for suffix in JournalName.suffixes { try directory.write("db\(suffix)", theirs) }
        }
        #expect(error?.reason == .busy, "\(error as Any)")
        // What they have not yet stored elsewhere.
        for suffix in JournalName.suffixes {
            #expect(try directory.bytes("db\(suffix)") == Data(theirs))
            unlink(directory.file("db\(suffix)"))
        }
        try expectUnchanged(operation)
        let store = try database("db", key: 1)
        #expect(store.tableExists("theirs"))
    }
}

/// The file that has lost its name to another.
@Suite(.hangLimit, .enabled(if: isEncrypting, "needs a codec"))
struct SpoiltFileTests {
    private let directory: TemporaryDirectory

    init() throws {
        directory = try TemporaryDirectory()
    }

    /// What has another name is somebody's backup.
    @Test(arguments: [true, false]) func isUselessUnlessItHasAName(hasName: Bool) throws {
        let path = directory.file("db")
        try Database.testing(path).fill(rows: 5)
        let bytes = try directory.bytes("db")
        let sealing = Sealing(key: try .testing(1), settings: .init())
        let source = try RotationSource(path: path, sealing: sealing, busyTimeout: 0)
        defer { source.connection.close() }
        // To look at it when it has no name any more.
        let descriptor = open(path, O_RDONLY)
        defer { close(descriptor) }
        if hasName { #expect(link(path, directory.file("backup")) == 0) }
        #expect(unlink(path) == 0)
        if hasName {
            let error = #expect(throws: DatabaseError.self) { try source.spoil("The store has the new key") }
            #expect(error?.reason == .hardLinked)
            #expect(try directory.bytes("backup") == bytes)
        } else {
            try source.spoil("The store has the new key")
            var start = [UInt8](repeating: 0, count: 4096)
            #expect(pread(descriptor, &start, 4096, 0) == 4096)
            #expect(start.allSatisfy { $0 == 0xff })
        }
    }
}
