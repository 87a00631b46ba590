import Foundation
import Logging
import Testing

@testable import SealedDB

/// ``Configuration/slowStatementThreshold``.
@Suite(.hangLimit)
struct SlowStatementTests {
    private final class Log: Sendable {
        let events = Guarded<[(level: Logger.Level, text: String)]>([])

        struct Handler: LogHandler {
            let log: Log
            var metadata = Logger.Metadata()
            var logLevel = Logger.Level.trace

            subscript(metadataKey key: String) -> Logger.Metadata.Value? {
                get { metadata[key] }
                set { metadata[key] = newValue }
            }

            func log(event: LogEvent) {
                let text = "\(event.message) \(event.metadata ?? [:])"
                log.events.withLock { $0.append((event.level, text)) }
            }
        }
    }

    private let log = Log()
    /// Takes far longer than a millisecond.
    private let slow: SQL = """
        WITH RECURSIVE n(i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n WHERE i < 300000)
        SELECT max(i || ?) FROM n
        """

    private func configuration(threshold: Double?) -> Configuration {
        var configuration = Configuration()
        configuration.slowStatementThreshold = threshold.map { .seconds($0) }
        let log = log
        configuration.logger = Logger(label: "test") { _ in Log.Handler(log: log) }
        return configuration
    }

    /// Of this statement: on a busy machine others are slow, too.
    private func expectWarning() throws {
        let events = log.events.withLock { $0 }
        #expect(!events.contains { $0.text.contains("a secret value") })
        let slow = events.filter { $0.text.contains("SELECT max(i || ?) FROM n") }
        let event = try #require(slow.last)
        #expect(slow.count == 1 && event.level == .warning && event.text.contains("slow statement"))
        let seconds = try #require(event.text.firstMatch(of: /"seconds": ([0-9.e-]+)/)?.1)
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
        log.events.withLock { $0 = [] }
        _ = try queue.read { db in try db.executeQuery(slow, "a secret value").scalar(String.self) }
        try expectWarning()
    }

    @Test(arguments: [nil, 1000])
    func whatIsFasterIsNotLogged(threshold: Double?) throws {
        let db = Database(path: nil, configuration: configuration(threshold: threshold))
        try db.openVerified()
        _ = try db.executeQuery(slow, "a value").scalar(String.self)
        #expect(log.events.withLock { $0.isEmpty })
    }

    @Test(.enabled(if: isEncrypting, "needs a codec"))
    func aStatementWithAKeyIsNotShown() throws {
        let directory = try TemporaryDirectory()
        let db = Database(path: directory.file("db"), configuration: configuration(threshold: 0))
        try db.openVerified()
        try db.executeUpdate("PRAGMA temp_store = MEMORY", values: nil)
        log.events.withLock { $0 = [] }
        try db.executeUpdate("ATTACH ':memory:' AS other KEY 'a secret key'", values: nil)
        let texts = log.events.withLock { $0.map(\.text) }
        #expect(texts.contains { $0.contains("a statement that holds a key") })
        #expect(!texts.joined().contains("secret"))
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
