import Testing

@testable import SealedDB

/// Which of the prepared statements are still there when their texts are used again.
@Suite(.hangLimit)
struct CachedStatementTests {
    private func database(capacity: Int) throws -> Database {
        var configuration = Configuration()
        configuration.statementCacheCapacity = capacity
        let database = Database(path: nil, configuration: configuration)
        try database.openVerified()
        return database
    }

    /// How often the statement for this text has been used, with this time.
    private func useCount(_ sql: String, _ database: Database) throws -> Int {
        let rows = try database.executeQuery(sql, values: nil)
        let statement = try #require(rows.statement)
        while try rows.nextWithError() {}
        return statement.useCount
    }

    /// Only some of the bytes of a long text are looked at to find its place.
    @Test func longTextsThatDifferInOneByteAnywhere() throws {
        let database = try database(capacity: 1000)
        let length = 400
        let texts = stride(from: 0, to: length, by: 7).map { place in
            let digits = String(repeating: "0", count: place) + "1" + String(repeating: "0", count: length - place - 1)
            return (place, sql: "SELECT instr('\(digits)', '1')")
        }
        for (place, sql) in texts + texts { #expect(try database.integers(sql) == [place + 1]) }
    }

    /// Both cannot be kept, and the one that goes is no other text's.
    @Test func twoStatementsOfOneTextTakeOnePlace() throws {
        let database = try database(capacity: 2)
        #expect(try useCount("SELECT 1", database) == 1)
        let both = try [database.executeQuery("SELECT 2", values: nil), database.executeQuery("SELECT 2", values: nil)]
        for rows in both { rows.close() }
        #expect(try useCount("SELECT 1", database) == 2)
        #expect(try useCount("SELECT 2", database) == 2)
    }

    @Test func anEmptiedCacheHasRoom() throws {
        let database = try database(capacity: 3)
        for number in 1...3 { #expect(try useCount("SELECT \(number)", database) == 1) }
        database.clearCachedStatements()
        for number in 1...3 { #expect(try useCount("SELECT \(number)", database) == 1) }
        for number in 1...3 { #expect(try useCount("SELECT \(number)", database) == 2) }
    }

    @Test func theOldestGivesWayAlsoAfterTheCapacityWasSet() throws {
        let database = try database(capacity: 4)
        for number in 1...4 { #expect(try useCount("SELECT \(number)", database) == 1) }
        try database.openConnection().setCacheCapacity(4)
        #expect(try useCount("SELECT 5", database) == 1)
        for number in 2...4 { #expect(try useCount("SELECT \(number)", database) == 2) }
        #expect(try useCount("SELECT 1", database) == 1)
    }
}
