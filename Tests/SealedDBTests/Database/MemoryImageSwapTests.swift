import Foundation
import Testing

@testable import SealedDB

/// Who else may have the file whose place a saved database in memory takes.
@Suite(.hangLimit)
struct MemoryImageSwapTests {
    private let directory: TemporaryDirectory

    init() throws {
        directory = try TemporaryDirectory()
    }

    private static func memory(rows: Int) throws -> Database {
        let memory = try Database.testing(nil)
        try memory.fill(rows: rows)
        return memory
    }

    /// A process that was killed while it saved has left a part of the contents.
    @Test func whatAKilledProcessHasLeftIsRemoved() throws {
        let path = directory.file("store")
        for rows in [3, 4] {
            let leftover = try (TemporaryFile.path(beside: path) as NSString).lastPathComponent
            try directory.write(leftover, [1, 2, 3])
            try Self.memory(rows: rows).save(toFile: path)
            #expect(directory.names == ["store"])
        }
    }

    /// They hold no lock of SQLite, as a shell that waits for input, and come while the new file is written.
    @Test func whoComesMeanwhileKeepsTheFile() throws {
        let (holder, input, output) = (Process(), Pipe(), Pipe())
        let (result, directory) = try HeldOperation.run("pwrite .store.sealdb-*") { directory in
            let store = try Database.testing(directory.file("store"), journalMode: .delete)
            try store.fill(rows: 5)
            #expect(store.close())
        } _: { directory in
            try Self.memory(rows: 8).save(toFile: directory.file("store"))
        } meanwhile: { path in
            holder.executableURL = URL(fileURLWithPath: "/bin/sh")
            holder.arguments = ["-c", "exec 9<>'\(path)/store'; echo ready; read line"]
            holder.standardInput = input
            holder.standardOutput = output
            try holder.run()
            #expect(output.fileHandleForReading.availableData == Data("ready\n".utf8))
        }
        let error = #expect(throws: DatabaseError.self) { try result.get() }
        #expect(error?.reason == .busy, "\(error as Any)")
        #expect(error?.message.contains("process \(holder.processIdentifier)") == true, "\(error as Any)")
        try input.fileHandleForWriting.close()
        holder.waitUntilExit(minutes: 10)
        #expect(directory.names == ["store"])
        #expect(try Database.testing(directory.file("store")).integers("SELECT count(*) FROM t") == [5])
    }

    /// Nobody may write to the old file once it is known that nobody else has it.
    @Test func theOldFileIsLockedForTheSwap() throws {
        let path = directory.file("store")
        let store = try Database.testing(path, journalMode: .delete)
        try store.fill(rows: 5)
        #expect(store.close())
        let memory = try Self.memory(rows: 8)
        let watch = CallWatch(directory.path)
        try memory.save(toFile: path)
        let calls = watch.endWithAll()
        let swap = try #require(calls.firstIndex(of: "rename store"))
        let isComplete = try #require(calls[..<swap].lastIndex { $0.hasPrefix("fsync .store.sealdb-") })
        #expect(calls[isComplete..<swap].contains("lock store"), "\(calls[isComplete...])")
    }
}
