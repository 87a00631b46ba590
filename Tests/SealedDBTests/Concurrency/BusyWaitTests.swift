import Foundation
import Testing

@testable import SealedDB

struct BusyWaitTests {
    @Test func delaysBeginShortAndFallWithTheTimeWaited() {
        let delays = (0..<100).map { BusyWait.delay(attempt: $0, waited: Double($0) / 50, timeout: 2) }
        #expect(delays.prefix(6).allSatisfy { $0 <= 0.001 })
        #expect(delays.max()! <= 0.010)
        #expect(delays[90] < delays[10] && delays[99] >= 0.001)
    }

    @Test func theErrorSaysWhoAndHowLong() throws {
        let directory = try TemporaryDirectory()
        let path = directory.file("db")
        var configuration = Configuration(key: isEncrypting ? try .testing(1) : nil)
        configuration.busyTimeout = 0.02
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
        input.fileHandleForWriting.write(Data("CREATE TABLE t (n); BEGIN EXCLUSIVE; SELECT 'locked';\n".utf8))
        #expect(output.fileHandleForReading.availableData == Data("locked\n".utf8))
        #expect(LockHolders.of(file) == ["process \(process.processIdentifier) (sqlcipher)"])
        input.fileHandleForWriting.closeFile()
        process.waitUntilExit()
        #expect(LockHolders.of(file) == [])
        #expect(LockHolders.of(directory.file("absent")) == [])
    }
}
