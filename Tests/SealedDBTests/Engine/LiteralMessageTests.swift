import Testing

@testable import SealedDB

/// What an error shows of the statement's text: a literal may be a secret, a name or sign is not.
@Suite(.hangLimit)
struct LiteralMessageTests {
    private let database: Database

    init() throws {
        database = Database(path: nil)
        try database.openVerified()
    }

    private func message(_ sql: String) -> String {
        let error = #expect(throws: DatabaseError.self, "\(sql)") { try database.integers(sql) }
        return error?.message ?? ""
    }

    @Test(arguments: ["'secret' x", "4711 x", "x'5ec4e7' x", "SELECT 1 'b' 'secret'", "SELECT 'secret", "SELECT 4711b"])
    func literalsAreNotShown(sql: String) {
        let message = message(sql)
        for secret in ["secret", "4711", "5ec4e7"] { #expect(!message.contains(secret), "\(message)") }
        #expect(message.contains("near a literal") || message.contains("unrecognized token"), "\(message)")
    }

    @Test(arguments: ["SELEKT", "_a$9", "\u{e4}b", ")", "<=", "->>"])
    func namesAndSignsAreShown(token: String) {
        #expect(message("\(token) 1").contains("near \"\(token)\""))
    }

    /// What the statement's author says is not SQLite's to quote.
    @Test(arguments: ["near \"1 of both", "1\": syntax error", "unrecognized token: \"1", "1\""])
    func messagesOfTriggersAreKept(text: String) throws {
        let trigger = "CREATE TRIGGER refuses BEFORE INSERT ON t BEGIN SELECT RAISE(ABORT, '\(text)'); END"
        try database.execute(script: "CREATE TABLE t (a)")
        #expect(database.executeStatements(trigger))
        #expect(message("INSERT INTO t VALUES (1) RETURNING a").contains(text))
    }

    /// A token longer than any name is rather a key that lost its quotes.
    @Test func longNamesAreNotShown() {
        let name = String(repeating: "a", count: 64)
        #expect(message("\(name) 1").contains("near \"\(name)\""))
        let longer = message("\(name)a 1")
        #expect(longer.contains("near a literal") && !longer.contains("aaaa"), "\(longer)")
    }
}
