import Foundation
import SealedDB
import Testing

/// Nothing that should be all of a store is made from one whose log hides transactions behind damaged bytes.
@Suite(.hangLimit, .enabled(if: isEncrypting, "the plain build takes no key"))
struct DamagedLogCopiesTests {
    private let sandbox: Sandbox

    /// A byte of the page in the second frame.
    private static let offset = 32 + (24 + 4096) + 24 + 300

    /// A store "db" with ten commits in its log, as a service leaves it that was killed.
    init() throws {
        sandbox = try Sandbox()
        try sandbox.makeStore(journalMode: "wal")
        try sandbox.makeKey("new")
        let service = try sandbox.connection()
        for id in 1...10 { try service.executeUpdate("UPDATE people SET name = 'x' WHERE id = \(id)") }
        let files = try ["db", "db-wal"].map { (name: $0, bytes: try sandbox.contents($0)) }
        service.close()
        try sandbox.removeAll(but: ["key", "new"])
        for file in files { try sandbox.write(file.name, file.bytes) }
    }

    @Test(arguments: [
        ["decrypt", "db", "-", "--allow-plaintext"], ["dump", "db"], ["dump", "db", "--table", "people"],
        ["rotate", "db", "--new-key-file", "new", "--dry-run"],
        ["slots", "init", "db", "--no-recovery", "--label", "a"],
    ])
    func nothingIsWritten(call: [String]) throws {
        let call = [Tool.sealdb] + call + ["--key-file", "key"]
        let mended = try outcomeAfterRefusal(call)
        #expect(mended.status == 0 && !mended.outputData.isEmpty, "\(mended.error)")
    }

    /// Expects that the call is refused, and changes nothing, as long as a byte of the log is changed.
    /// - Returns: what comes of it when the byte is as it was.
    private func outcomeAfterRefusal(_ call: [String]) throws -> Outcome {
        let (store, whole) = (try sandbox.contents("db"), try damageLog())
        let log = try sandbox.contents("db-wal")
        let outcome = try sandbox.run(call)
        #expect(outcome.status == 65 && outcome.outputData.isEmpty, "\(outcome.status): \(outcome.error)")
        #expect(outcome.error.contains("db-wal is damaged"), "\(outcome.error)")
        #expect(try sandbox.contents("db") == store && sandbox.contents("db-wal") == log)
        try sandbox.write("db-wal", whole)
        return try sandbox.run(call)
    }

    /// Writes the log with one byte changed, and returns it as it was.
    private func damageLog() throws -> Data {
        let whole = try sandbox.contents("db-wal")
        try #require(whole.count >= 32 + 10 * (24 + 4096))
        var log = whole
        log[DamagedLogCopiesTests.offset] ^= 1
        try sandbox.write("db-wal", log)
        return whole
    }

    @Test(arguments: [
        ["db", "other"], ["other", "db"], ["db", "other", "--sql"], ["other", "db", "--sql"],
        ["db", "other", "--schema-only"], ["db", "db"],
    ])
    func nothingIsCompared(call: [String]) throws {
        let call = [Tool.sealdb, "diff"] + call + ["--key-file", "key"]
        try sandbox.write("other", try sandbox.contents("db"))
        try sandbox.write("other-wal", try sandbox.contents("db-wal"))
        // Both hold the same.
        let mended = try outcomeAfterRefusal(call)
        #expect(mended.status == 0, "\(mended.output)\(mended.error)")
    }

    @Test(arguments: [".dump", ".dump people", ".export copy people", ".backup copy"], [true, false])
    func nothingIsCopiedByTheShell(command: String, isReadOnly: Bool) throws {
        let call = [Tool.sealdb, "shell", "db", "--key-file", "key"] + (isReadOnly ? ["--read-only"] : [])
        let (store, whole) = (try sandbox.contents("db"), try damageLog())
        let log = try sandbox.contents("db-wal")
        let outcome = try sandbox.run(call, input: "\(command)\n")
        #expect(outcome.status == 65 && outcome.outputData.isEmpty, "\(outcome.status): \(outcome.error)")
        #expect(outcome.error.contains("SQLite leaves them out. Nothing was written."), "\(outcome.error)")
        #expect(!sandbox.exists("copy"))
        if isReadOnly { #expect(try sandbox.contents("db") == store && sandbox.contents("db-wal") == log) }
        // It is that byte alone.
        try sandbox.removeAll(but: ["key"])
        try sandbox.write("db", store)
        try sandbox.write("db-wal", whole)
        let mended = try sandbox.run(call, input: "\(command)\n")
        #expect(mended.status == 0 && !mended.outputData.isEmpty && mended.error.isEmpty, "\(mended.error)")
    }

    /// Else nobody would learn of it.
    @Test(arguments: ["query", "exec"])
    func statementsWarn(command: String) throws {
        let call = [Tool.sealdb, command, "db", "SELECT count(*) FROM people", "--key-file", "key"]
        let (store, whole) = (try sandbox.contents("db"), try damageLog())
        let outcome = try sandbox.run(call)
        #expect(outcome.status == 0 && outcome.error.contains("db-wal is damaged"), "\(outcome.error)")
        #expect(
            outcome.error.contains("drops it when the store is written or closed") == (command == "exec"),
            "\(outcome.error)"
        )
        try sandbox.write("db", store)
        try sandbox.write("db-wal", whole)
        let quiet = try sandbox.run(call)
        #expect(quiet.status == 0 && quiet.error.isEmpty, "\(quiet.error)")
    }

    /// Other statements run: somebody may want to look.
    @Test(arguments: [true, false])
    func theShellWarns(isReadOnly: Bool) throws {
        _ = try damageLog()
        let outcome = try sandbox.run(
            [Tool.sealdb, "shell", "db", "--key-file", "key"] + (isReadOnly ? ["--read-only"] : []),
            input: "SELECT count(*) FROM people;\n"
        )
        #expect(outcome.status == 0 && outcome.output.contains("50"), "\(outcome.error)")
        #expect(outcome.error.contains("db-wal is damaged"), "\(outcome.error)")
        #expect(
            outcome.error.contains("drops it when the store is written or closed") != isReadOnly,
            "\(outcome.error)"
        )
    }
}
