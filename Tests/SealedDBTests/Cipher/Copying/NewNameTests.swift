import Foundation
import Testing

@testable import SealedDB

/// How whatever makes a new file, or puts one in the place of another, treats the names in its directory.
@Suite(.hangLimit, .enabled(if: isEncrypting, "needs a codec"))
struct NewNameTests {
    private let directory: TemporaryDirectory

    init() throws { directory = try TemporaryDirectory() }

    enum Operation: CaseIterable, Sendable {
        case rotate, migrate, backup, restore, restoreAnew, encrypt, decrypt, recover, make, save, saveAnew

        static let making: [Operation] = [.backup, .restoreAnew, .encrypt, .decrypt, .recover, .make]
        /// Those that tell how far they are.
        static let telling = making.filter { $0 != .make }

        /// The file that gets its name.
        var target: String { Operation.making.contains(self) || self == .saveAnew ? "new" : "db" }
    }

    private func prepare(_ operation: Operation) throws {
        for name in ["db", "copy"] {
            let key = operation == .encrypt ? nil : try Key.testing(1)
            let database = Database(path: directory.file(name), configuration: Configuration(key: key))
            try database.openVerified()
            try database.fill(rows: 100)
            // Of which a recovery writes the schema alone, when all else is done.
            try database.execute(script: "CREATE VIRTUAL TABLE f USING fts5(x)")
            database.close()
        }
    }

    private func run(_ operation: Operation, _ progress: ((KeyRotation.Progress) throws -> Void)? = nil) throws {
        let (db, copy, new) = (directory.file("db"), directory.file("copy"), directory.file("new"))
        let key = try Key.testing(1)
        switch operation {
        case .rotate: try KeyRotation(path: db, from: key, to: .testing(2)).run(progress: progress)
        case .migrate:
            try StoreMigration(path: db, key: key, from: .init(), to: CipherSettings(pageSize: 8192))
                .run(progress: progress)
        case .backup: try StoreBackup(path: db, key: key, to: new).run(progress: progress)
        case .restore: try StoreRestore(backupPath: copy, key: key, to: db).run(progress: progress)
        case .restoreAnew:
            try StoreRestore(backupPath: copy, key: key, to: new, replaces: false).run(progress: progress)
        case .encrypt: try StoreEncryption(plaintextPath: db, path: new, key: key).run(progress: progress)
        case .decrypt: try StoreDecryption(path: db, key: key, plaintextPath: new).run(progress: progress)
        case .recover: try StoreRecovery(path: db, key: key, to: new).run(progress: progress)
        case .make: _ = try KeySlots.create(path: new, [.init(.key(key), label: "ops")])
        case .save, .saveAnew:
            let memory = Database(path: nil, configuration: Configuration(key: key))
            try memory.openVerified()
            try memory.fill(rows: 100)
            try memory.save(toFile: operation == .save ? db : new)
            memory.close()
        }
    }

    /// Whoever is told that it is done may remove what the new file was made of, or the key that it had.
    @Test(arguments: Operation.allCases) func theNewNameIsSynced(operation: Operation) throws {
        try prepare(operation)
        let watch = CallWatch(directory.path)
        try run(operation)
        let calls = watch.endWithAll()
        let named = try #require(
            calls.lastIndex { $0.hasPrefix("rename") && $0.hasSuffix(operation.target) }
                ?? calls.lastIndex { $0.hasPrefix("rename") },
            "\(calls)"
        )
        #expect(calls[named...].contains { $0.hasSuffix("sync \(directory.path)") }, "\(calls[named...])")
    }

    /// A file that has its name before its contents are on the disk may be empty after a power failure.
    @Test(arguments: Operation.allCases) func theContentsAreSyncedBefore(operation: Operation) throws {
        try prepare(operation)
        let watch = CallWatch(directory.path)
        try run(operation)
        let calls = watch.endWithAll()
        let copy = ".\(operation.target).sealdb-"
        let written = try #require(calls.lastIndex { $0.hasPrefix("pwrite") && $0.contains(copy) }, "\(calls)")
        let named = try #require(
            calls.firstIndex { $0.hasPrefix("rename") && $0.hasSuffix(operation.target) },
            "\(calls)"
        )
        try #require(written < named)
        #expect(calls[written..<named].contains { $0.contains("sync " + copy) }, "\(calls[written...named])")
    }

    /// SQLite would take a log for one of the new file, and slots would not open it. Nothing is copied beside them.
    @Test(arguments: Operation.making, ["-wal", "-journal", ".slots"])
    func whatIsInTheWay(operation: Operation, suffix: String) throws {
        try prepare(operation)
        try directory.write("new" + suffix, [1, 2, 3])
        var isCopied = false
        let error = #expect(throws: DatabaseError.self) {
            try run(operation) { state in if state.phase == .copy { isCopied = true } }
        }
        #expect(error?.reason == .alreadyExists && !isCopied, "\(error as Any)")
        #expect(try directory.bytes("new" + suffix) == Data([1, 2, 3]))
        #expect(directory.namesOfFiles == ["copy", "db", "new" + suffix])
    }

    /// Nor is the file left when they come while it is made.
    @Test(arguments: Operation.telling, ["-wal", "-journal", ".slots"])
    func whatComesMeanwhile(operation: Operation, suffix: String) throws {
        try prepare(operation)
        let error = #expect(throws: DatabaseError.self) {
            try run(operation) { state in if state.phase == .swap { try directory.write("new" + suffix, [1, 2, 3]) } }
        }
        #expect(error?.reason == .alreadyExists, "\(error as Any)")
        #expect(try directory.bytes("new" + suffix) == Data([1, 2, 3]))
        #expect(directory.namesOfFiles == ["copy", "db", "new" + suffix])
    }

    /// A log without contents belongs to nothing, and one with a second name is safe under that.
    @Test(arguments: ["-wal", "-journal"]) func logsOfNothing(suffix: String) throws {
        let (path, log) = (directory.file("new"), directory.file("new" + suffix))
        try directory.write("new" + suffix, [])
        try StoreCopy.requireNoLog(of: path)
        #expect(!FileSystem.mayExist(log))
        try directory.write("new" + suffix, [1])
        let error = #expect(throws: DatabaseError.self) { try StoreCopy.requireNoLog(of: path) }
        #expect(error?.reason == .alreadyExists && error?.message.hasPrefix(log) == true, "\(error as Any)")
        #expect(link(log, directory.file("old" + suffix)) == 0)
        try StoreCopy.requireNoLog(of: path)
        #expect(directory.names == ["old" + suffix])
    }

    /// Nothing is read or copied for a file that cannot get its name.
    @Test(arguments: Operation.making) func aNameThatIsTaken(operation: Operation) throws {
        try prepare(operation)
        try directory.write("new", [1, 2, 3])
        var isCopied = false
        let watch = CallWatch(directory.path)
        let error = #expect(throws: DatabaseError.self) {
            try run(operation) { state in if state.phase == .copy { isCopied = true } }
        }
        let calls = watch.endWithAll()
        #expect(error?.reason == .alreadyExists && !isCopied, "\(error as Any)")
        #expect(!calls.contains { $0.contains(".new.sealdb-") }, "\(calls)")
        #expect(try directory.bytes("new") == Data([1, 2, 3]))
        #expect(directory.namesOfFiles == ["copy", "db", "new"])
    }

    /// What a process has left that was killed takes as much space as the store.
    @Test(arguments: Operation.allCases) func whatWasLeftIsRemoved(operation: Operation) throws {
        try prepare(operation)
        let path = directory.file(operation.target)
        let mark = operation == .make ? SlotFiles.markOfNew : nil
        let leftover =
            try mark.map { try TemporaryFile.path(beside: path, mark: $0) } ?? TemporaryFile.path(beside: path)
        try directory.write(FileSystem.name(of: leftover), [1, 2, 3])
        try run(operation)
        #expect(!directory.names.contains { $0.contains(".sealdb-") }, "\(directory.names)")
    }
}
