import Foundation
import Testing

@testable import SealedDB

@Suite(.hangLimit)
struct BusyWaitTests {
    @Test func delaysBeginShortAndFallWithTheTimeWaited() {
        let delays = (0..<100).map { BusyWait.delay(attempt: $0, waited: Double($0) / 50, timeout: 2) }
        #expect(delays.prefix(6).allSatisfy { $0 <= 0.001 })
        #expect(delays.max()! <= 0.010)
        #expect(delays[90] < delays[10] && delays[99] >= 0.001)
    }

    /// Calls that fail one after the other may be so slow that nobody sees the lock for longer than it is remembered.
    @Test func whatIsKnownOfALockCountsForAllWhoWaited() {
        var taken = TakenTimes()
        let gap = TakenTimes.memory
        #expect(taken.duration(since: 0) == 0)
        taken.note(1000, waitsOn: false)
        taken.note(1000 + 5 * gap, waitsOn: true)
        // Within the memory, it is one time.
        taken.note(1000 + 6 * gap - 1, waitsOn: false)
        #expect(taken.duration(since: 0) == 6 * gap - 1)
        #expect(taken.duration(since: 1000 + gap) == 5 * gap - 1)
        // Beyond it, the gap does not count, and what was before still does.
        let second = 1000 + 10 * gap
        taken.note(second, waitsOn: false)
        #expect(taken.duration(since: 0) == 6 * gap - 1)
        taken.note(second + 3, waitsOn: true)
        #expect(taken.duration(since: 0) == 6 * gap + 2)
        #expect(taken.duration(since: 1000 + 7 * gap) == 3)
        #expect(taken.duration(since: second + 1) == 2)
        #expect(taken.duration(since: second + 3) == 0)
        #expect(taken.duration(since: second + 4) == 0)
        // Of many times, the oldest are forgotten.
        for number in 1...UInt64(100) {
            taken.note(second + number * 2 * gap, waitsOn: false)
            taken.note(second + number * 2 * gap + 1, waitsOn: true)
        }
        #expect(taken.duration(since: 0) == 64)
    }

    /// To ask who has the lock may take long, and others wait for it.
    @Test func callsThatFailTogetherShareTheAnswerWhoHasTheLock() throws {
        let directory = try TemporaryDirectory()
        let path = directory.file("db")
        let other = try Database.testing(path)
        #expect(other.beginImmediateTransaction())
        let wait = BusyWait(timeout: 1, supervision: nil)
        let names = wait.holders(of: path)
        #expect(names == ["another connection of this process"])
        // Of another file, which shows that nobody is asked.
        #expect(wait.holders(of: directory.file("absent")) == names)
        wait.lockWasTaken()
        #expect(wait.holders(of: directory.file("absent")) == [])
        #expect(other.rollback())
    }

    @Test func theErrorSaysWhoAndHowLong() throws {
        let directory = try TemporaryDirectory()
        let path = directory.file("db")
        var configuration = Configuration(key: isEncrypting ? try .testing(1) : nil)
        configuration.busyTimeout = .milliseconds(20)
        for mode in [Configuration.JournalMode.wal, .delete] {
            configuration.journalMode = mode
            let queue = try DatabaseQueue(path: path, configuration: configuration)
            let other = try Database.testing(path)
            #expect(other.beginImmediateTransaction())
            let error = #expect(throws: DatabaseError.self) { try queue.write { _ in } }
            #expect(error?.reason == .busy)
            #expect(error?.message.contains("of 0.02 s") == true, "\(error?.message ?? "")")
            #expect(error?.message.contains("another connection of this process") == true, "\(error?.message ?? "")")
            #expect(other.rollback())
            try queue.write { _ in }
            other.close()
            queue.close()
        }
    }

    /// SQLite does not wait where that could not end, and says nothing of an earlier wait.
    @Test func theErrorTellsOfItsOwnWaitOnly() throws {
        let directory = try TemporaryDirectory()
        var configuration = Configuration(key: isEncrypting ? try .testing(1) : nil)
        configuration.busyTimeout = .milliseconds(20)
        configuration.journalMode = .delete
        let queue = try DatabaseQueue(path: directory.file("db"), configuration: configuration)
        try queue.write { db in
            try db.executeUpdate("CREATE TABLE t (n)", values: nil)
            try db.executeUpdate("INSERT INTO t VALUES (1), (2)", values: nil)
        }
        let other = try Database.testing(directory.file("db"))
        #expect(other.beginImmediateTransaction())
        let waited = #expect(throws: DatabaseError.self) { try queue.write { _ in } }
        #expect(waited?.message.contains("of 0.02 s") == true, "\(waited?.message ?? "")")
        try queue.inDatabase { db in
            let rows = try db.executeQuery("SELECT n FROM t", values: nil)
            #expect(rows.next())
            let error = #expect(throws: DatabaseError.self) { try db.executeUpdate("INSERT INTO t VALUES (3)") }
            #expect(error?.reason == .busy)
            let message = error?.message ?? ""
            #expect(message.contains("SQLite did not wait") && !message.contains("of 0.02 s"), "\(message)")
        }
        #expect(other.rollback())
    }

    /// A retry of what waits for itself never ends.
    @Test func locksOfOnesOwnAreTold() throws {
        let directory = try TemporaryDirectory()
        let configuration = Configuration(key: isEncrypting ? try .testing(1) : nil)
        let queue = try DatabaseQueue(path: directory.file("db"), configuration: configuration)
        try queue.write { db in
            try db.executeUpdate("CREATE TABLE t (n)", values: nil)
            try db.executeUpdate("INSERT INTO t VALUES (1), (2)", values: nil)
        }
        let other = try Database.testing(directory.file("db"), journalMode: .wal)
        try queue.inDatabase { db in
            // A result set on the table.
            let rows = try db.executeQuery("SELECT n FROM t", values: nil)
            #expect(rows.next())
            let table = #expect(throws: DatabaseError.self) { try db.executeUpdate("DROP TABLE t") }
            #expect(table?.code == SQLITE_LOCKED && table?.reason == .locked)
            // The state that it sees is not the last.
            try other.executeUpdate("INSERT INTO t VALUES (3)")
            let state = #expect(throws: DatabaseError.self) { try db.executeUpdate("INSERT INTO t VALUES (4)") }
            #expect(state?.extendedCode == SQLITE_BUSY_SNAPSHOT && state?.reason == .locked)
            #expect(state?.message.contains("begin anew") == true, "\(state?.message ?? "")")
            rows.close()
            try db.executeUpdate("INSERT INTO t VALUES (4)")

            // A statement that writes and has not ended.
            #expect(db.beginTransaction())
            let written = try db.executeQuery("INSERT INTO t VALUES (5), (6) RETURNING n", values: nil)
            #expect(written.next())
            #expect(!db.commit())
            let commit = db.lastError() as? DatabaseError
            #expect(commit?.code == SQLITE_BUSY && commit?.reason == .locked, "\(commit as Any)")
            #expect(commit?.message.contains("this connection's own") == true, "\(commit?.message ?? "")")
            written.close()
            #expect(db.commit())
        }
        #expect(try queue.read { db in try db.integers("SELECT n FROM t") } == [1, 2, 3, 4, 5, 6])
    }

    /// A writer does not wait for those who only read, as long as somebody writes.
    @Test func readersAreNotNamedBesideAWriter() throws {
        let directory = try TemporaryDirectory()
        let file = directory.file("read")
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
        process.arguments = ["sqlcipher", file]
        let (input, output) = (Pipe(), Pipe())
        (process.standardInput, process.standardOutput) = (input, output)
        try process.run()
        let limit = ChildLimit(of: process.processIdentifier, named: "sqlcipher")
        defer { limit.end() }
        let sql = "CREATE TABLE t (n); INSERT INTO t VALUES ('read'); BEGIN; SELECT n FROM t;\n"
        input.fileHandleForWriting.write(Data(sql.utf8))
        #expect(output.fileHandleForReading.availableData == Data("read\n".utf8))
        let reader = "process \(process.processIdentifier) (sqlcipher)"
        #expect(LockHolders.of(file) == [reader])
        let writer = Database(path: file)
        #expect(writer.open() && writer.beginImmediateTransaction())
        // The kernel may leave out a line of its table, but not each time.
        func isNamed(_ names: [String], isForAlone: Bool = false) -> Bool {
            (0..<100).contains { _ in LockHolders.of(file, isForAlone: isForAlone) == names }
        }
        #expect(isNamed(["another connection of this process"]))
        #expect(isNamed([reader], isForAlone: true))
        writer.close()
        input.fileHandleForWriting.closeFile()
        process.waitUntilExit()
    }

    @Test func anotherProcessIsNamed() throws {
        let directory = try TemporaryDirectory()
        let file = directory.file("locked")
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
        process.arguments = ["sqlcipher", file]
        let output = Pipe()
        let input = Pipe()
        process.standardOutput = output
        process.standardInput = input
        try process.run()
        let limit = ChildLimit(of: process.processIdentifier, named: "sqlcipher")
        defer { limit.end() }
        input.fileHandleForWriting.write(Data("CREATE TABLE t (n); BEGIN EXCLUSIVE; SELECT 'locked';\n".utf8))
        #expect(output.fileHandleForReading.availableData == Data("locked\n".utf8))
        #expect(LockHolders.of(file) == ["process \(process.processIdentifier) (sqlcipher)"])
        input.fileHandleForWriting.closeFile()
        process.waitUntilExit()
        #expect(LockHolders.of(file) == [])
        #expect(LockHolders.of(directory.file("absent")) == [])
    }

    /// By this somebody decides how long to wait the next time.
    @Test func theErrorSaysHowLongItWaited() throws {
        let directory = try TemporaryDirectory()
        var configuration = Configuration(key: isEncrypting ? try .testing(1) : nil)
        configuration.busyTimeout = .milliseconds(20)
        let queue = try DatabaseQueue(path: directory.file("db"), configuration: configuration)
        let other = try Database.testing(directory.file("db"))
        #expect(other.beginImmediateTransaction())
        let error = #expect(throws: DatabaseError.self) { try queue.write { _ in } }
        let waited = error?.message.firstMatch(of: /waited ([0-9.e-]+) s of 0\.02 s/)?.1
        let seconds = try #require(waited.flatMap { Double($0) }, "\(error as Any)")
        #expect(seconds >= 0.02)
        #expect(other.rollback())
    }
}
