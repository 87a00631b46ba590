import Foundation
import SealedDB
import Synchronization
import Testing

private struct Failure: Error, Equatable { let place: String }

/// States that exist, to find leaks by. One counter for each test that looks at it.
private final class Counter: Sendable {
    private let value = Atomic<Int>(0)
    var count: Int { value.load(ordering: .relaxed) }
    func add(_ number: Int) { value.add(number, ordering: .relaxed) }
}

/// A sum that can be made to fail: a value of 13 in step, 14 in inverse; a sum of 15 in value, 16 in finalize.
private struct TestSum: SQLWindowFunction {
    private var sum: Int64 = 0
    private var rows = 0

    mutating func step(_ arguments: borrowing FunctionArguments) throws {
        if arguments.integer(at: 0) == 13 { throw Failure(place: "step") }
        sum += arguments.integer(at: 0)
        rows += 1
    }

    mutating func inverse(_ arguments: borrowing FunctionArguments) throws {
        if arguments.integer(at: 0) == 14 { throw Failure(place: "inverse") }
        sum -= arguments.integer(at: 0)
        rows -= 1
    }

    func value() throws -> SQLValue {
        if sum == 15 { throw Failure(place: "value") }
        return SQLValue(sum)
    }

    func finalize() throws -> SQLValue {
        if sum == 16 { throw Failure(place: "finalize") }
        return rows == 0 ? nil : SQLValue(sum)
    }
}

@Suite(.hangLimit)
struct AggregateTests {
    private let database: Database

    init() throws {
        database = try Database.testing(nil)
        try database.run("CREATE TABLE t (g, n INTEGER)")
        try database.run("INSERT INTO t VALUES ('a', 1), ('a', 2), ('b', 10), ('b', 20), ('b', 30)")
        try database.addWindowFunction("total_of", argumentCount: 1, TestSum.self)
        try database.addAggregate("plain_sum", argumentCount: 1, TestSum.self)
    }

    @Test func groups() throws {
        let expected: [[SQLValue]] = [["a", 3], ["b", 60]]
        #expect(try database.rows("SELECT g, total_of(n) FROM t GROUP BY g ORDER BY g") == expected)
        #expect(try database.rows("SELECT g, plain_sum(n) FROM t GROUP BY g ORDER BY g") == expected)
        #expect(try database.rows("SELECT total_of(n), plain_sum(-n), total_of(DISTINCT g) FROM t") == [[63, -63, 0]])
        #expect(try database.value("SELECT plain_sum(n) FILTER (WHERE g = 'a') FROM t") == 3)
    }

    @Test func noRows() throws {
        #expect(try database.rows("SELECT total_of(n), plain_sum(n) FROM t WHERE 0") == [[nil, nil]])
        #expect(try database.rows("SELECT plain_sum(n) FROM t WHERE 0 GROUP BY g") == [])
    }

    @Test func windows() throws {
        let rows = try database.rows(
            "SELECT n, total_of(n) OVER (PARTITION BY g ORDER BY n ROWS 1 PRECEDING) FROM t ORDER BY n"
        )
        #expect(rows == [[1, 1], [2, 3], [10, 10], [20, 30], [30, 50]])
        let error = #expect(throws: DatabaseError.self) {
            try database.rows("SELECT plain_sum(n) OVER (ORDER BY n) FROM t")
        }
        #expect(error?.message.contains("may not be used as a window function") == true)
    }

    @Test(arguments: [
        ("step", "SELECT total_of(column1) FROM (VALUES (1), (13), (2))"),
        ("step", "SELECT plain_sum(column1) FROM (VALUES (13))"),
        ("inverse", "SELECT total_of(column1) OVER (ORDER BY 1 ROWS 1 PRECEDING) FROM (VALUES (14), (2), (3), (4))"),
        ("value", "SELECT total_of(column1) OVER (ORDER BY 1 ROWS 1 PRECEDING) FROM (VALUES (15), (1))"),
        ("finalize", "SELECT plain_sum(column1) FROM (VALUES (16))"),
        ("finalize", "SELECT total_of(column1) FROM (VALUES (16))"),
    ])
    func errorsReachTheCaller(_ place: String, _ sql: String) throws {
        let error = #expect(throws: DatabaseError.self) { try database.rows(sql) }
        #expect(error?.underlyingError as? Failure == Failure(place: place))
        #expect(try database.value("SELECT total_of(n) FROM t") == 63)
    }

    /// Whichever of two fails, its error is the one that is told.
    @Test func theFirstErrorIsToldWhenAnotherAggregateFailsWhileEnding() throws {
        let error = #expect(throws: DatabaseError.self) {
            try database.rows("SELECT plain_sum(16), plain_sum(column1) FROM (VALUES (1), (13))")
        }
        #expect(error?.underlyingError as? Failure == Failure(place: "step"))
    }

    @Test func statesEndWithTheirGroupsWhateverHappens() throws {
        let counter = Counter()
        // The protocol makes its own values, so the counter is found here.
        StateUnderWatch.$counter.withValue(counter) {
            do {
                try database.addWindowFunction("watched", argumentCount: 1, StateUnderWatch.self)
                _ = try database.rows("SELECT g, watched(n) FROM t GROUP BY g")
                _ = try database.rows("SELECT watched(n) OVER (ORDER BY n ROWS 1 PRECEDING) FROM t")
                _ = try database.rows("SELECT watched(n) FROM t WHERE 0")
                let early = try database.executeQuery("SELECT g, watched(n) FROM t GROUP BY g", values: nil)
                #expect(early.next())
                early.close()
                #expect(throws: DatabaseError.self) {
                    try database.rows("SELECT watched(column1) FROM (VALUES (1), (13), (1))")
                }
                #expect(throws: DatabaseError.self) { try database.rows("SELECT watched(n), plain_sum(13) FROM t") }
                let open = try database.executeQuery(
                    "SELECT watched(n) OVER (ORDER BY n ROWS 1 PRECEDING) FROM t",
                    values: nil
                )
                #expect(open.next())
                #expect(database.close())
            } catch {
                Issue.record(error)
            }
        }
        #expect(counter.count == 0)
    }
}

private struct StateUnderWatch: SQLWindowFunction {
    @TaskLocal static var counter: Counter?

    private final class Life {
        private let counter = StateUnderWatch.counter
        init() { counter?.add(1) }
        deinit { counter?.add(-1) }
    }

    private let life = Life()

    func step(_ arguments: borrowing FunctionArguments) throws {
        if arguments.integer(at: 0) == 13 { throw Failure(place: "step") }
    }
    func inverse(_ arguments: borrowing FunctionArguments) {}
    func value() -> SQLValue { 1 }
    func finalize() -> SQLValue { withExtendedLifetime(life) { 1 } }
}
