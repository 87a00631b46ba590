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
    ])
    func nothingIsWritten(call: [String]) throws {
        let call = [Tool.sealdb] + call + ["--key-file", "key"]
        let (store, whole) = (try sandbox.contents("db"), try sandbox.contents("db-wal"))
        try #require(whole.count >= 32 + 10 * (24 + 4096))
        var log = whole
        log[DamagedLogCopiesTests.offset] ^= 1
        try sandbox.write("db-wal", log)
        let outcome = try sandbox.run(call)
        #expect(outcome.status == 65 && outcome.outputData.isEmpty, "\(outcome.status): \(outcome.error)")
        #expect(outcome.error.contains("db-wal is damaged"), "\(outcome.error)")
        #expect(try sandbox.contents("db") == store && sandbox.contents("db-wal") == log)
        // It is that byte alone.
        try sandbox.write("db-wal", whole)
        let mended = try sandbox.run(call)
        #expect(mended.status == 0 && !mended.outputData.isEmpty, "\(mended.error)")
    }
}
