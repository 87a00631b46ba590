import Foundation
import Testing

@testable import SealedDB

/// A store that something emptied is not a new one.
@Suite(.hangLimit, .enabled(if: isEncrypting, "needs a codec"))
struct EmptiedStoreTests {
    private let directory: TemporaryDirectory
    private let path: String

    init() throws {
        directory = try TemporaryDirectory()
        path = try directory.write("db", [])
    }

    private func open(createsFile: Bool = false, isReadOnly: Bool = false) throws {
        var configuration = Configuration(key: try .testing(1))
        configuration.createsFile = createsFile
        configuration.isReadOnly = isReadOnly
        let database = Database(path: path, configuration: configuration)
        try database.openVerified()
        database.close()
    }

    private func expectRefusal(
        _ names: [String] = ["db"],
        contents: [UInt8] = [],
        sourceLocation: SourceLocation = #_sourceLocation,
        _ body: () throws -> Void
    ) throws {
        let error = #expect(throws: DatabaseError.self, sourceLocation: sourceLocation) { try body() }
        #expect(error?.reason == .truncated, "\(error as Any)", sourceLocation: sourceLocation)
        #expect(error?.message.contains("\(path) is empty") == true, "\(error as Any)", sourceLocation: sourceLocation)
        #expect(directory.names == names, sourceLocation: sourceLocation)
        #expect(try directory.bytes("db") == Data(contents), sourceLocation: sourceLocation)
    }

    /// SQLite takes a file of one byte for an empty one.
    @Test(arguments: [[], [0x0a]] as [[UInt8]]) func everyUseIsRefused(contents: [UInt8]) throws {
        func expectRefusal(sourceLocation: SourceLocation = #_sourceLocation, _ body: () throws -> Void) throws {
            try self.expectRefusal(contents: contents, sourceLocation: sourceLocation, body)
        }
        try directory.write("db", contents)
        let key = try Key.testing(1)
        let new = try Key.testing(2)
        try expectRefusal { try open() }
        try expectRefusal { try open(isReadOnly: true) }
        try expectRefusal { _ = try IntegrityReport.verify(path: path, key: key) }
        try expectRefusal { _ = try IntegrityReport.verify(path: path, key: nil) }
        try expectRefusal { _ = try KeyRotation(path: path, from: key, to: new).plan() }
        try expectRefusal { _ = try KeyRotation(path: path, from: key, to: new).run() }
        try expectRefusal { _ = try KeyRotation(path: path, from: key, to: new).isDone() }
        try expectRefusal { _ = try StoreMigration(path: path, key: key).run() }
        try expectRefusal { _ = try StoreBackup(path: path, key: key, to: directory.file("copy")).run() }
        try expectRefusal {
            _ = try StoreRestore(backupPath: path, key: key, to: directory.file("copy")).run()
        }
        try expectRefusal {
            try StoreDecryption(path: path, key: key, plaintextPath: directory.file("plain")).run()
        }
        let diagnosis = try StoreDiagnosis.examine(path: path, key: key)
        #expect(diagnosis.finding == .emptyFile && diagnosis.error.reason == .truncated)
        guard !contents.isEmpty else { return }
        // No creation that was killed leaves a byte.
        try expectRefusal { try open(createsFile: true) }
        let memory = try Database.testing(nil)
        let error = #expect(throws: DatabaseError.self) { try memory.load(fromFile: path) }
        #expect(error?.reason == .notADatabase, "\(error as Any)")
    }

    @Test func attachingIsRefused() throws {
        try Database.testing(directory.file("main")).close()
        var configuration = Configuration(key: try .testing(1))
        configuration.createsFile = false
        let database = Database(path: directory.file("main"), configuration: configuration)
        try database.openVerified()
        defer { database.close() }
        let error = #expect(throws: DatabaseError.self) { try database.attach(path, as: "other", key: .testing(1)) }
        #expect(error?.reason == .truncated)
    }

    /// What a creation that was killed leaves.
    @Test func newStoreThatIsAskedFor() throws {
        try open(createsFile: true)
        #expect(try directory.bytes("db").count == 4096)
    }

    /// SQLite deletes a log that lies beside an empty file, and the last commits of the store with it.
    @Test(arguments: [nil, [], [0x0a]] as [[UInt8]?], [true, false])
    func logIsKept(contents: [UInt8]?, hasKey: Bool) throws {
        let exists = contents != nil
        let owner = try Database.testing(directory.file("owned"), journalMode: .wal)
        try owner.fill(rows: 30)
        let log = try directory.bytes("owned-wal")
        owner.close()
        try directory.write("db-wal", log)
        if let contents { try directory.write("db", contents) } else { unlink(path) }
        let names = exists ? ["db", "db-wal", "owned"] : ["db-wal", "owned"]
        for createsFile in [true, false] where exists || createsFile {
            var configuration = Configuration(key: hasKey ? try .testing(1) : nil)
            configuration.createsFile = createsFile
            let error = #expect(throws: DatabaseError.self) {
                try Database(path: path, configuration: configuration).openVerified()
            }
            #expect(error?.reason == (exists ? .truncated : .alreadyExists))
            #expect(error?.message.contains("-wal") == true, "\(error as Any)")
            #expect(directory.names == names)
            #expect(try directory.bytes("db-wal") == log)
        }
    }

    /// That the log cannot be examined does not mean that there is none.
    @Test func logThatCannotBeExamined() throws {
        try directory.write("db-wal", Array(repeating: 1, count: 5000))
        let count = CallWatch(directory.path)
        try expectRefusal(["db", "db-wal"]) { try open(createsFile: true) }
        for (index, call) in count.endWithAll().enumerated() where call.hasSuffix("stat db-wal") {
            let watch = CallWatch(directory.path, failing: index...index)
            #expect(throws: DatabaseError.self, "\(call)") { try open(createsFile: true) }
            watch.end()
            #expect(directory.names == ["db", "db-wal"])
        }
    }

    /// A log without a frame holds nothing of a store. One byte more may be the last that there is of it.
    @Test(arguments: [0, 32, 33]) func aLogOfSomeBytes(size: Int) throws {
        try directory.write("db-wal", [UInt8](repeating: 1, count: size))
        let flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE
        let opening = StoreOpening(path: path, key: try .testing(1), flags: flags)
        guard size > 32 else {
            #expect(throws: Never.self) { try opening.refuseEmptied() }
            return
        }
        let error = #expect(throws: DatabaseError.self) { try opening.refuseEmptied() }
        #expect(error?.reason == .truncated && error?.message.contains("-wal") == true, "\(error as Any)")
    }

    @Test func journalIsKept() throws {
        let owner = try Database.testing(directory.file("owned"))
        try owner.fill(rows: 300)
        #expect(owner.beginImmediateTransaction())
        try owner.spillChanges()
        try owner.executeUpdate("UPDATE t SET body = body || 'x'", values: nil)
        let journal = try directory.bytes("owned-journal")
        #expect(owner.rollback())
        owner.close()
        try directory.write("db-journal", journal)
        try expectRefusal(["db", "db-journal", "owned"]) { try open(createsFile: true) }
        #expect(try directory.bytes("db-journal") == journal)
        // Of a creation that was killed: the file had no pages.
        var begun = journal
        begun.replaceSubrange(16..<20, with: Data(count: 4))
        try directory.write("db-journal", begun)
        try open(createsFile: true)
        #expect(directory.names == ["db", "owned"])
    }

    /// Everything can be "read" from it, and "written" to it.
    @Test(arguments: ["/dev/null", "/dev/zero"])
    func deviceIsNoStore(path: String) throws {
        let key = try Key.testing(1)
        for createsFile in [true, false] {
            var configuration = Configuration(key: key)
            configuration.createsFile = createsFile
            let error = #expect(throws: DatabaseError.self) {
                try Database(path: path, configuration: configuration).openVerified()
            }
            #expect(error?.reason == .notRegularFile)
        }
        let error = #expect(throws: DatabaseError.self) { try IntegrityReport.verify(path: path, key: key) }
        #expect(error?.reason == .notRegularFile)
    }

    /// A pipe would make SQLite wait for ever.
    @Test
    func pipeIsNoStore() throws {
        unlink(path)
        #expect(mkfifo(path, 0o600) == 0)
        for isReadOnly in [true, false] {
            let error = #expect(throws: DatabaseError.self) { try open(isReadOnly: isReadOnly) }
            #expect(error?.reason == .notRegularFile)
        }
        unlink(path)
        try Database.testing(path).fill(rows: 3)
        for suffix in ["-journal", "-wal"] { #expect(mkfifo(path + suffix, 0o600) == 0) }
        #expect(try StoreDiagnosis.examine(path: path, key: .testing(1)).finding == .opens)
    }

    /// It is no emptied store.
    @Test func aDirectory() throws {
        let database = Database(path: directory.path, configuration: Configuration(key: try .testing(1)))
        let error = #expect(throws: DatabaseError.self) { try database.openVerified() }
        #expect(error?.code == SQLITE_CANTOPEN, "\(error as Any)")
    }
}
