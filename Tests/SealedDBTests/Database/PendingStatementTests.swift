import Foundation
import Testing

@testable import SealedDB

/// What a statement that was not read to its end has written, when its connection is closed by the library.
@Suite(.hangLimit, .enabled(if: isEncrypting, "needs a codec"))
struct PendingStatementTests {
    private let directory: TemporaryDirectory

    init() throws {
        directory = try TemporaryDirectory()
    }

    /// SQLite commits when a statement ends, and the change of a key ends it.
    @Test(arguments: ["setKey", "rekey", "rotateKey"])
    func aCommitThatFailsIsTold(call: String) throws {
        let database = try Database.testing(directory.file("db"))
        try database.execute(
            script: """
                PRAGMA foreign_keys = ON;
                CREATE TABLE parent (id INTEGER PRIMARY KEY);
                CREATE TABLE child (id INTEGER REFERENCES parent DEFERRABLE INITIALLY DEFERRED);
                """
        )
        let rows = try database.executeQuery("INSERT INTO child VALUES (1), (2) RETURNING id", values: nil)
        #expect(rows.next())
        var failure: (any Error)?
        switch call {
        case "setKey":
            if !database.setKey("x'" + String(repeating: "01", count: 32) + "'") { failure = database.lastError() }
        case "rekey": if !database.rekey("secret") { failure = database.lastError() }
        default: do { try database.rotateKey(to: .testing(2)) } catch { failure = error }
        }
        #expect((failure as? DatabaseError)?.code == SQLITE_CONSTRAINT, "\(String(describing: failure))")
        #expect(database.open(), "with the key that it had")
        #expect(try database.executeQuery("SELECT count(*) FROM child").scalar(Int.self) == 0)
        #expect(database.close())
        let again = try Database.testing(directory.file("db"))
        #expect(try again.executeQuery("SELECT count(*) FROM child").scalar(Int.self) == 0)
    }
}
