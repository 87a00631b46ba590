import Foundation
import Testing

@testable import SealedDB

/// Another file is put in the place of a store that another process has open, or this one together with the new file.
@Suite(.hangLimit)
struct ReplacedUnderOthersTests {
    private let directory: TemporaryDirectory
    private var path: String { directory.file("db") }

    init() throws {
        directory = try TemporaryDirectory()
    }

    private func configuration(isWAL: Bool = true) throws -> Configuration {
        var configuration = Configuration(key: isEncrypting ? try .testing(1) : nil)
        configuration.journalMode = isWAL ? .wal : nil
        configuration.busyTimeout = .zero
        return configuration
    }

    /// Makes stores, and closes them.
    private func make(_ names: String..., journalMode: Configuration.JournalMode = .wal) throws {
        for name in names {
            var configuration = try configuration()
            configuration.journalMode = journalMode
            let queue = try DatabaseQueue(path: directory.file(name), configuration: configuration)
            try queue.write { db in try db.fill(rows: 30) }
            queue.close()
        }
    }

    private func copy(_ name: String, to other: String) throws {
        try directory.write(other, directory.bytes(name))
    }

    private func rename(_ name: String, to other: String) {
        #expect(Foundation.rename(directory.file(name), directory.file(other)) == 0)
    }

    private func requireRefusal(_ text: String) throws {
        let before = try directory.bytes("db")
        let database = Database(path: path, configuration: try configuration())
        let error = #expect(throws: DatabaseError.self) { try database.openVerified() }
        #expect(error?.reason == .busy, "\(error as Any)")
        #expect(
            error?.message.contains(text) == true && error?.message.contains("the log beside") == true,
            "\(error as Any)"
        )
        #expect(try directory.bytes("db") == before)
    }

    private func requireOpening(_ name: String = "db", rows: Int = 30) throws {
        let database = Database(path: directory.file(name), configuration: try configuration())
        try database.openVerified()
        #expect(try database.integers("SELECT count(*) FROM t") == [rows])
        #expect(database.close())
    }

    /// SQLCipher's own shell, which goes on until it is told to end.
    private final class Shell {
        let process = Process()
        private let (input, output) = (Pipe(), Pipe())
        private let limit: ChildLimit
        static let key = isEncrypting ? "KEY \"x'\(String(repeating: "01", count: 32))'\"" : ""

        /// - Parameter reads: a file that the process has open besides, to read it.
        init(_ path: String, reads: String = "/dev/null") throws {
            process.executableURL = URL(fileURLWithPath: "/bin/sh")
            process.arguments = ["-c", "exec 9<'\(reads)'; exec sqlcipher -batch '\(path)'"]
            (process.standardInput, process.standardOutput) = (input, output)
            try process.run()
            limit = ChildLimit(of: process.processIdentifier, named: "sqlcipher")
            if isEncrypting { try run("PRAGMA key = \"x'\(String(repeating: "01", count: 32))'\"") }
        }

        var name: String { "process \(process.processIdentifier) (sqlcipher)" }

        func run(_ sql: String) throws {
            try input.fileHandleForWriting.write(contentsOf: Data((sql + ";\nSELECT 'it is done';\n").utf8))
            var answer = ""
            while !answer.hasSuffix("it is done\n") {
                let some = output.fileHandleForReading.availableData
                try #require(!some.isEmpty, "The shell has ended: \(answer)")
                answer += String(decoding: some, as: UTF8.self)
            }
        }

        func end() throws {
            try input.fileHandleForWriting.close()
            process.waitUntilExit()
            limit.end()
        }
    }

    /// A connection that keeps everybody else out has no index with locks.
    @Test(arguments: [true, false])
    func aStoreThatSomebodyKeepsForHimself(writes: Bool) throws {
        try make("db")
        try copy("db", to: "copy")
        let shell = try Shell(path)
        try shell.run("PRAGMA locking_mode = EXCLUSIVE; SELECT count(*) FROM t")
        if writes { try shell.run("UPDATE t SET body = upper(body)") }
        #expect(directory.namesOfFiles == ["copy", "db", "db-wal"])
        rename("copy", to: "db")
        try requireRefusal(shell.name)
        try shell.end()
        // As the message says.
        rename("db-wal", to: "log")
        try requireOpening()
    }

    /// A journal of the former file would be taken for one of a transaction that was cut off.
    @Test(arguments: NewFile.allCases) func aTransactionWithAJournal(newFile: NewFile) throws {
        try make("db", journalMode: .delete)
        try copy("db", to: "copy")
        // The process may also have the new file open, to read it or as a store.
        let shell = try Shell(path, reads: newFile == .isRead ? directory.file("copy") : "/dev/null")
        if newFile == .isUsed {
            try shell.run("ATTACH '\(directory.file("copy"))' AS copy \(Shell.key); SELECT count(*) FROM copy.t")
        }
        try shell.run(
            """
            PRAGMA cache_size = 1; BEGIN; UPDATE t SET body = upper(body);
            WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 3000)
            INSERT INTO t (body) SELECT hex(randomblob(100)) FROM n
            """
        )
        #expect(try RollbackJournal.isBegun(path + "-journal"))
        // Whoever writes to the file itself keeps others out.
        let other = Database(path: path, configuration: try configuration(isWAL: false))
        let busy = #expect(throws: DatabaseError.self) {
            try other.openVerified()
            _ = try other.integers("SELECT count(*) FROM t")
        }
        #expect(busy?.reason == .busy && busy?.message.contains("another file") == false, "\(busy as Any)")
        other.close()
        rename("copy", to: "db")
        let before = try (directory.bytes("db"), directory.bytes("db-journal"))
        for isReadOnly in [true, false] {
            var configuration = try configuration(isWAL: false)
            configuration.isReadOnly = isReadOnly
            let database = Database(path: path, configuration: configuration)
            let error = #expect(throws: DatabaseError.self) { try database.openVerified() }
            #expect(error?.reason == .busy, "\(error as Any)")
            #expect(error?.message.contains("another file than the one that \(shell.name)") == true, "\(error as Any)")
        }
        #expect(try (directory.bytes("db"), directory.bytes("db-journal")) == before)
        try shell.end()
        try requireOpening()
    }

    /// SQLite looks whether the store was moved when it opens a journal, and not when it begins to write to it.
    @Test(arguments: [true, false]) func aJournalThatIsBegunLater(isBetweenTransactions: Bool) throws {
        try make("db", journalMode: .delete)
        try copy("db", to: "copy")
        let shell = try Shell(path)
        try shell.run(isBetweenTransactions ? "PRAGMA locking_mode = EXCLUSIVE" : "BEGIN IMMEDIATE")
        try shell.run("UPDATE t SET body = upper(body) WHERE id = 1")
        #expect(try FileSystem.exists(path + "-journal") && !RollbackJournal.isBegun(path + "-journal"))
        rename("copy", to: "db")
        let database = Database(path: path, configuration: try configuration(isWAL: false))
        let error = #expect(throws: DatabaseError.self) { try database.openVerified() }
        #expect(error?.message.contains("another file than the one that \(shell.name)") == true, "\(error as Any)")
        try shell.end()
        try requireOpening()
    }

    /// The kernel tells that somebody has the log open, and not who.
    @Test func aProcessThatCannotBeLookedAt() throws {
        try make("db")
        try copy("db", to: "copy")
        let shell = try Shell(path)
        try shell.run("PRAGMA locking_mode = EXCLUSIVE; UPDATE t SET body = upper(body)")
        rename("copy", to: "db")
        let watch = CallWatch("/proc/\(shell.process.processIdentifier)", failing: 0...1000, code: EACCES)
        try requireRefusal("a process that this user may not look into, or one of another container")
        #expect(!watch.endWithAll().isEmpty)
        try shell.end()
    }

    /// As above, with a connection of this process.
    @Test func aStoreThatThisProcessKeepsForItself() throws {
        try make("db", journalMode: .delete)
        try copy("db", to: "copy")
        var configuration = try configuration()
        configuration.journalMode = nil
        let database = Database(path: path, configuration: configuration)
        try database.openVerified()
        #expect(try database.executeQuery("PRAGMA locking_mode = EXCLUSIVE").scalar(String.self) == "exclusive")
        #expect(try database.executeQuery("PRAGMA journal_mode = WAL").scalar(String.self) == "wal")
        try database.fill(rows: 1)
        #expect(directory.namesOfFiles == ["copy", "db", "db-wal"])
        rename("copy", to: "db")
        try requireRefusal("this process")
        #expect(database.close())
    }

    enum NewFile: CaseIterable, Sendable { case isUsed, isRead, isUnknown }

    /// The process that uses the log also has the new file open, and the former one has a name still.
    @Test(arguments: NewFile.allCases, [true, false])
    func whoHasBothFilesOpen(newFile: NewFile, isDeleted: Bool) throws {
        try make("db")
        try copy("db", to: "copy")
        let shell = try Shell(path, reads: newFile == .isRead ? directory.file("copy") : "/dev/null")
        try shell.run("PRAGMA wal_autocheckpoint = 0; UPDATE t SET body = upper(body)")
        if newFile == .isUsed {
            try shell.run("ATTACH '\(directory.file("copy"))' AS copy \(Shell.key); SELECT count(*) FROM copy.t")
        }
        if !isDeleted { rename("db", to: "former") }
        rename("copy", to: "db")
        try requireRefusal(shell.name)
        try shell.end()
    }

    /// The kernel's table tells of the one who uses the new file, and at times lacks the other one.
    @Test func whoIsBesideOneWhoUsesTheNewFile() throws {
        try make("db")
        try copy("db", to: "copy")
        let former = try Shell(path)
        try former.run("PRAGMA wal_autocheckpoint = 0; UPDATE t SET body = upper(body)")
        rename("db", to: "former")
        rename("copy", to: "db")
        let new = try Shell(path)
        try new.run("BEGIN; SELECT count(*) FROM t")
        let error = #expect(throws: DatabaseError.self) {
            try StoreOpening.isLogInUse(ofStore: path, log: try StoreOpening.file("-wal", beside: path)) {
                let lines = LockTable()?.lines(with: "POSIX") ?? []
                return LockTable(lines: lines.filter { !$0.contains(" \(former.process.processIdentifier) ") })
            }
        }
        #expect(error?.message.contains(former.name) == true, "\(error as Any)")
        try former.end()
        try new.end()
    }

    /// As with systemd's `ProcSubset=pid`.
    @Test func whereTheKernelHidesItsTable() throws {
        try make("db")
        try copy("db", to: "copy")
        let shell = try Shell(path)
        try shell.run("PRAGMA wal_autocheckpoint = 0; UPDATE t SET body = upper(body)")
        func isInUse() throws -> Bool {
            try StoreOpening.isLogInUse(ofStore: path, log: try StoreOpening.file("-wal", beside: path)) { nil }
        }
        #expect(try isInUse())
        rename("db", to: "former")
        rename("copy", to: "db")
        let error = #expect(throws: DatabaseError.self) { try isInUse() }
        #expect(error?.message.contains(shell.name) == true, "\(error as Any)")
        try shell.end()
    }

    /// Its own folder in /proc shows no descriptors any more.
    @Test(.enabled(if: isEncrypting, "the program opens stores with keys"))
    func aProcessWhoseFirstThreadHasEnded() throws {
        try make("db")
        try copy("db", to: "copy")
        let (process, input, errors) = (Process(), Pipe(), Pipe())
        process.executableURL = try Probe.url("CipherProbe")
        process.arguments = ["headless", directory.path]
        (process.standardInput, process.standardError) = (input, errors)
        try process.run()
        #expect(errors.fileHandleForReading.availableData == Data("ready\n".utf8))
        #expect(try FileUsers.others(path) == [process.processIdentifier])
        rename("db", to: "former")
        rename("copy", to: "db")
        try requireRefusal("process \(process.processIdentifier) (CipherProbe)")
        try input.fileHandleForWriting.close()
        process.waitUntilExit(minutes: 10)
    }

    /// Without a log the new file has no index that would tell.
    @Test func whoHasBothFilesOpenInDifferentModes() throws {
        try make("db")
        try copy("db", to: "copy")
        let shell = try Shell(path)
        try shell.run("UPDATE t SET body = upper(body)")
        try shell.run("ATTACH '\(directory.file("copy"))' AS copy \(Shell.key); PRAGMA copy.journal_mode = DELETE")
        try shell.run("BEGIN; SELECT count(*) FROM copy.t")
        rename("copy", to: "db")
        try requireRefusal(shell.name)
        try shell.end()
    }

    /// The locks of a process belong to its files, and not to its connections.
    @Test func thisProcessHasBothFilesOpen() throws {
        try make("db")
        try copy("db", to: "copy")
        let former = try DatabaseQueue(path: path, configuration: configuration())
        try former.write { db in try db.fill(rows: 1) }
        let new = try DatabaseQueue(path: directory.file("copy"), configuration: configuration())
        try new.write { db in try db.executeUpdate("DELETE FROM t WHERE id < 10") }
        try new.writeWithoutTransaction { db in _ = try db.checkpoint(.truncate) }
        rename("db", to: "former")
        rename("copy", to: "db")
        try requireRefusal("this process")
        let error = #expect(throws: DatabaseError.self) { try former.write { db in try db.fill(rows: 1) } }
        #expect(error?.reason == .damaged, "\(error as Any)")
        #expect(error?.message.contains("log of the former file") == true, "\(error as Any)")
        former.close()
        new.close()
    }

    /// Stores are no former files of each other, whatever the journal mode, and whatever became of them.
    @Test(arguments: [true, false])
    func otherStoresOfTheProcess(isInPlace: Bool) throws {
        try make("db", "log", "gone")
        try make("journal", "alone", journalMode: .delete)
        try copy("db", to: "copy")
        let shell = try Shell(path)
        for name in ["log", "gone", "journal", "alone", "copy"] {
            try shell.run("ATTACH '\(directory.file(name))' AS '\(name)' \(Shell.key)")
        }
        try shell.run("PRAGMA alone.locking_mode = EXCLUSIVE")
        for name in ["main", "log", "gone", "alone", "copy"] { try shell.run("DELETE FROM '\(name)'.t WHERE id = 1") }
        try shell.run("BEGIN; SELECT count(*) FROM journal.t; SELECT count(*) FROM main.t")
        if !isInPlace { for suffix in ["", "-wal", "-shm"] { unlink(directory.file("gone") + suffix) } }
        for name in ["db", "log", "copy"] { try requireOpening(name, rows: 29) }
        try shell.end()
    }

    /// What becomes of a store elsewhere makes no former file of this one.
    @Test func aStoreElsewhereThatIsRenamed() throws {
        try make("db")
        let elsewhere = try TemporaryDirectory()
        try elsewhere.write("db", directory.bytes("db"))
        let shell = try Shell(path)
        try shell.run("ATTACH '\(elsewhere.file("db"))' AS other \(Shell.key)")
        for name in ["main", "other"] { try shell.run("DELETE FROM '\(name)'.t WHERE id = 1") }
        #expect(Foundation.rename(elsewhere.file("db"), elsewhere.file("former")) == 0)
        try requireOpening(rows: 29)
        try shell.end()
    }

    /// A process that opens and closes the file by itself loses its lock on it.
    @Test func anotherProcessThatLostItsLock() throws {
        try make("db")
        let shell = try Shell(path)
        try shell.run("DELETE FROM t WHERE id = 1; SELECT length(readfile('\(path)')) > 0")
        #expect(!LockHolders.hasLocks(on: path, ifUnknown: true))
        try requireOpening(rows: 29)
        try shell.end()
    }

    /// Other stores of such a process come and go. One that stays may be the former file.
    @Test func whatEachLookTells() {
        let first: [Int32: Set<String>] = [1: ["a", "b"], 2: ["a"], 3: [], 4: ["a"], 5: [], 6: ["c"]]
        let second: [Int32: Set<String>] = [1: ["b", "c"], 2: ["b"], 3: ["a"], 4: [], 5: [], 7: ["c"]]
        #expect(StoreOpening.inCommon(first, second) == [1: ["b"], 3: ["a"], 4: ["a"], 5: []])
    }

    /// What a process has left is looked at as before, also while a program copies it.
    @Test func aLogThatIsOnlyRead() throws {
        try make("db")
        let queue = try DatabaseQueue(path: path, configuration: configuration())
        try queue.write { db in try db.fill(rows: 1) }
        for suffix in ["", "-wal"] { try copy("db" + suffix, to: "left" + suffix) }
        queue.close()
        let reader = try Shell(directory.file("other"), reads: directory.file("left-wal"))
        try requireOpening("left", rows: 31)
        try reader.end()
    }

    /// Whoever reads from the former file for a while is in nobody's way once its log and index are moved away.
    @Test func aReaderWhoseLogIsElsewhere() throws {
        try make("db")
        try copy("db", to: "copy")
        let reader = Database(path: path, configuration: try configuration())
        try reader.openVerified()
        try reader.execute(script: "BEGIN")
        #expect(try reader.integers("SELECT count(*) FROM t") == [30])
        rename("copy", to: "db")
        try requireRefusal("this process")
        for suffix in ["-wal", "-shm"] { rename("db" + suffix, to: "former" + suffix) }
        let new = Database(path: path, configuration: try configuration())
        try new.openVerified()
        try new.fill(rows: 1)
        try requireOpening(rows: 31)
        #expect(try reader.integers("SELECT count(*) FROM t") == [30])
        #expect(reader.rollback() && reader.close() && new.close())
    }
}
