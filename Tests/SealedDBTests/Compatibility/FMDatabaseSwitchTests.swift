import Foundation
import Logging
import Testing

@testable import SealedDB

/// `FMDatabase`: the switches. A test for each member, named after it.
@Suite(.hangLimit)
struct FMDatabaseSwitchTests {
    private let log = Log<String>()

    private func database() -> FMDatabase {
        var configuration = Configuration()
        configuration.logger = Logger(to: log)
        let db = FMDatabase(path: nil, configuration: configuration)
        #expect(db.open())
        return db
    }

    @Test func traceExecutionShowsStatementsWithoutValues() {
        let db = database()
        #expect(!db.traceExecution)
        #expect(db.executeUpdate("create table t (a)", withArgumentsIn: []))
        #expect(log.values == [])
        db.traceExecution = true
        #expect(db.executeUpdate("insert into t values (?)", withArgumentsIn: ["a secret value"]))
        #expect(db.executeQuery("select a from t where a = :a", withParameterDictionary: ["a": "another"]) != nil)
        #expect(db.executeStatements("select 1; select 2"))
        let lines = log.values
        #expect(lines.count == 4)
        #expect(lines[0].contains("insert into t values (?)"))
        #expect(lines[1].contains("select a from t"))
        #expect(!lines.joined().contains("secret") && !lines.joined().contains("another"))
    }

    @Test func logsErrorsWithoutStatementsAndValues() {
        let db = database()
        #expect(db.logsErrors)
        #expect(!db.executeUpdate("insert into nowhere values (?)", withArgumentsIn: ["a secret value"]))
        let lines = log.values
        #expect(lines.count == 1)
        #expect(!lines[0].contains("nowhere") && !lines[0].contains("secret"))
        db.logsErrors = false
        #expect(!db.executeUpdate("insert into nowhere values (1)", withArgumentsIn: []))
        #expect(log.values.count == 1)
    }

    #if compiler(>=6.2)
        @Test(.awaitsProcess) func crashOnErrors() async {
            await #expect(processExitsWith: .failure) {
                let db = FMDatabase()
                db.open()
                db.crashOnErrors = true
                db.executeUpdate("no statement", withArgumentsIn: [])
            }
        }
    #endif

    @Test func maxBusyRetryTimeInterval() {
        let db = database()
        #expect(db.maxBusyRetryTimeInterval == 2)
        db.maxBusyRetryTimeInterval = -1
        let rows = db.executeQuery("pragma busy_timeout", withArgumentsIn: [])
        #expect(rows?.next() == true && rows?.int(forColumnIndex: 0) == 0)
    }

    @Test func shouldCacheStatements() throws {
        let db = database()
        #expect(db.shouldCacheStatements)
        #expect(try uses(of: "select 1", on: db) == [1, 2, 3])
        db.shouldCacheStatements = false
        #expect(!db.shouldCacheStatements)
        #expect(try uses(of: "select 1", on: db) == [1, 1, 1])
        db.shouldCacheStatements = true
        #expect(try uses(of: "select 1", on: db) == [1, 2, 3])
    }

    @Test func clearCachedStatementsLeavesThoseInUse() throws {
        let db = database()
        #expect(db.executeStatements("create table t (a); insert into t values (1), (2)"))
        let rows = try db.executeQuery("select a from t", values: nil)
        #expect(rows.next())
        #expect(try uses(of: "select 1", on: db) == [1, 2, 3])
        db.clearCachedStatements()
        #expect(try uses(of: "select 1", on: db) == [1, 2, 3])
        #expect(rows.next() && rows.int(forColumnIndex: 0) == 2)
        #expect(!rows.next() && !db.hadError())
    }

    private func uses(of sql: String, on db: FMDatabase) throws -> [Int] {
        try (0..<3).map { _ in
            let rows = try db.executeQuery(sql, values: nil)
            defer { rows.close() }
            #expect(rows.next())
            return rows.statement?.useCount ?? 0
        }
    }
}
