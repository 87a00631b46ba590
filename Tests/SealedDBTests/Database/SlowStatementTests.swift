import Foundation
import Logging
import Testing

@testable import SealedDB

/// ``Configuration/slowStatementThreshold``.
@Suite(.hangLimit)
struct SlowStatementTests {
    private let log = Log<String>()
    /// Takes far longer than a millisecond.
    private let slow: SQL = """
        WITH RECURSIVE n(i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n WHERE i < 300000)
        SELECT max(i || ?) FROM n
        """

    private func configuration(threshold: Double?) -> Configuration {
        var configuration = Configuration()
        configuration.slowStatementThreshold = threshold.map { .seconds($0) }
        configuration.logger = Logger(to: log)
        return configuration
    }

    /// Of this statement: on a busy machine others are slow, too.
    private func expectWarning() throws {
        let events = log.values
        #expect(!events.contains { $0.contains("a secret value") })
        let slow = events.filter { $0.contains("SELECT max(i || ?) FROM n") }
        let event = try #require(slow.last)
        #expect(slow.count == 1 && event.hasPrefix("warning ") && event.contains("slow statement"))
        let seconds = try #require(event.firstMatch(of: /"seconds": ([0-9.e-]+)/)?.1)
        #expect(try #require(Double(seconds)) >= 0.001)
    }

    @Test func aSlowStatementIsLoggedWithoutItsValues() throws {
        let db = Database(path: nil, configuration: configuration(threshold: 0.001))
        try db.openVerified()
        #expect(try db.executeQuery(slow, "a secret value").scalar(String.self) == "9a secret value")
        try expectWarning()
    }

    @Test func aQueueLogsItsSlowStatements() throws {
        let directory = try TemporaryDirectory()
        let queue = try DatabaseQueue(path: directory.file("db"), configuration: configuration(threshold: 0.001))
        log.removeAll()
        _ = try queue.read { db in try db.executeQuery(slow, "a secret value").scalar(String.self) }
        try expectWarning()
    }

    @Test(arguments: [nil, 1000])
    func whatIsFasterIsNotLogged(threshold: Double?) throws {
        let db = Database(path: nil, configuration: configuration(threshold: threshold))
        try db.openVerified()
        _ = try db.executeQuery(slow, "a value").scalar(String.self)
        #expect(log.values.isEmpty)
    }

    @Test(.enabled(if: isEncrypting, "needs a codec"))
    func aStatementWithAKeyIsNotShown() throws {
        let directory = try TemporaryDirectory()
        let db = Database(path: directory.file("db"), configuration: configuration(threshold: 0))
        try db.openVerified()
        try db.executeUpdate("PRAGMA temp_store = MEMORY", values: nil)
        log.removeAll()
        try db.executeUpdate("ATTACH ':memory:' AS other KEY 'a secret key'", values: nil)
        let texts = log.values
        #expect(texts.contains { $0.contains("a statement that holds a key") })
        #expect(!texts.joined().contains("secret"))
    }

    /// What the library runs itself has no limit; what the caller runs behind that has it again.
    @Test func theLimitHoldsBehindCallsOfTheLibrary() throws {
        var configuration = Configuration()
        configuration.statementTimeout = .milliseconds(2)
        let db = Database(path: nil, configuration: configuration)
        try db.openVerified()
        try db.attach(":memory:", as: "other")
        let long =
            "WITH RECURSIVE n(i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n LIMIT 30000000) SELECT count(*) FROM n"
        let error = #expect(throws: DatabaseError.self) { try db.integers(long) }
        #expect(error?.reason == .timedOut)
    }

    /// Who has the limit changed must see which one it was.
    @Test func theErrorNamesTheLimit() throws {
        var configuration = Configuration()
        configuration.statementTimeout = .milliseconds(2)
        let db = Database(path: nil, configuration: configuration)
        try db.openVerified()
        let endless = "WITH RECURSIVE n(i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n"
        let error = #expect(throws: DatabaseError.self) { try db.integers(endless) }
        #expect(error?.reason == .timedOut)
        #expect(error?.message.contains("limit of 0.002 s") == true, "\(error as Any)")
        #expect(error?.sql == endless)
        #expect(try db.integers("SELECT 1") == [1])
    }
}
