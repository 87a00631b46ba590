import Testing

@testable import SealedDB

/// Of all journal modes but WAL the file knows nothing: they are the connection's, which a rotation opens anew.
@Suite(.hangLimit, .enabled(if: isEncrypting, "needs a codec"))
struct KeptJournalModeTests {
    @Test(arguments: ["truncate", "persist"])
    func theJournalModeIsKept(mode: String) throws {
        let directory = try TemporaryDirectory()
        var configuration = Configuration(key: try .testing(1))
        configuration.journalMode = .delete
        let queue = try DatabaseQueue(path: directory.file("db"), configuration: configuration)
        try queue.write { db in try db.fill(rows: 500) }
        queue.inDatabase { db in #expect(db.executeStatements("PRAGMA journal_mode = \(raw: mode)")) }
        try queue.rotateKey(to: .testing(2))
        try queue.inDatabase { db throws in
            #expect(try db.executeQuery("PRAGMA journal_mode").scalar(String.self) == mode)
        }
    }
}
