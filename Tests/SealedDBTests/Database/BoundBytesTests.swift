import Foundation
import Testing

@testable import SealedDB

/// Texts and blobs that SQLite reads where the library keeps them until they are bound again.
@Suite(.hangLimit)
struct BoundBytesTests {
    private let database: Database

    init() throws {
        database = try Database.testing(nil)
        try database.executeUpdate("CREATE TABLE t (a, b, c, d, e, f)")
    }

    /// Of all lengths around those that are kept, and of others.
    private static let lengths = [0, 1, 15, 16, 100, 1000, 1023, 1024, 1025, 4095, 4096, 4097, 100_000]

    @Test func eachRowHasItsOwn() throws {
        let insert = try database.prepare("INSERT INTO t VALUES (?, ?, ?, ?, ?, ?)")
        var expected: [[String]] = []
        for row in 0..<200 {
            let values = (0..<6).map { column in
                let length = BoundBytesTests.lengths[(row * 7 + column * 5) % BoundBytesTests.lengths.count]
                return String(repeating: "é\(row) \(column)", count: length / 6)
            }
            if row.isMultiple(of: 2) {
                try insert.bind(values[0], values[1], values[2], Data(values[3].utf8), values[4], values[5])
            } else {
                let third = Data(values[3].utf8)
                #expect(insert.bind(with: [values[0], values[1], values[2], third, values[4], values[5]]))
            }
            try insert.stepWithError()
            expected.append(values)
        }
        insert.close()
        let rows = try database.executeQuery("SELECT * FROM t ORDER BY rowid").all(
            (String, String, String, Data, String, String).self
        )
        #expect(rows.map { [$0.0, $0.1, $0.2, String(decoding: $0.3, as: UTF8.self), $0.4, $0.5] } == expected)
        #expect(try database.executeQuery("SELECT count(*) FROM t WHERE typeof(d) = 'blob'").scalar(Int.self) == 200)
    }

    @Test func valuesStayForEveryExecution() throws {
        let set = try database.prepare("SELECT ?1 || ?2, ?1, ?2")
        try set.bind("first", "second")
        for _ in 0..<3 {
            #expect(set.next())
            #expect(set.string(forColumnIndex: 0) == "firstsecond")
            #expect(set.string(forColumnIndex: 1) == "first" && set.string(forColumnIndex: 2) == "second")
            #expect(!set.next())
        }
        // A failed binding executes nothing; the next one has its own values.
        #expect(!set.bind(with: ["one"]))
        #expect(!set.next())
        try set.bind("x", "y")
        #expect(set.next() && set.string(forColumnIndex: 0) == "xy")
    }

    /// A statement that waits in the cache holds nothing of what was bound to it.
    @Test func nothingIsLeftForTheCache() throws {
        var kept = BoundBytes(capacity: BoundBytes.usualCapacity)
        let secret = [UInt8](repeating: 0x53, count: 1000)
        let found = secret.withUnsafeBytes { kept.keep($0) }
        let start: UnsafeRawPointer = try #require(found)
        let place = UnsafeRawBufferPointer(start: start, count: secret.count)
        #expect(place.elementsEqual(secret))
        kept.wipe()
        #expect(place.allSatisfy { $0 == 0 })
    }

    @Test func nothingIsLeftInAStatementOfTheCache() throws {
        let sql = "SELECT ?1, ?1"
        let set = try database.executeQuery(sql, Data(repeating: 0x53, count: 1000))
        #expect(set.next())
        let places = try (0...1).map { column in
            UnsafeRawBufferPointer(rebasing: try #require(set.withUnsafeBytes(forColumnIndex: column) { $0[...] }))
        }
        // What SQLite reads is what was bound, and no copy of its own.
        try #require(places[0].baseAddress == places[1].baseAddress)
        #expect(places[0].count == 1000 && places[0].allSatisfy { $0 == 0x53 })
        set.close()
        #expect(places[0].allSatisfy { $0 == 0 })
        #expect(try database.prepare(SQL(raw: sql)).statement?.useCount == 2)
    }

    @Test func twoUsesOfOneTextHaveTheirOwn() throws {
        let sql: SQL = "SELECT value, ? FROM json_each('[1,2,3]')"
        let outer = try database.executeQuery(sql, "outer")
        var seen: [String] = []
        while try outer.nextWithError() {
            let inner = try database.executeQuery(sql, "inner")
            #expect(inner.next())
            seen.append(try outer.value(String.self, forColumnIndex: 1) + inner.value(String.self, forColumnIndex: 1))
        }
        #expect(seen == ["outerinner", "outerinner", "outerinner"])
    }

    /// SQLite refuses to bind to a statement that runs; what it reads must not have changed by then.
    @Test func bindingWithinItsOwnFunctionChangesNothing() throws {
        final class Running { unowned(unsafe) var set: ResultSet? }
        let running = Running()
        var accepted: [Bool] = []
        try database.addFunction("rebind", argumentCount: 0) { _ in
            let set = try #require(running.set)
            accepted.append(set.bind(with: ["other value"]))
            #expect(throws: DatabaseError.self) { try set.bind("other value") }
            return .integer(1)
        }
        let set = try database.prepare("SELECT rebind(), ?1 || '', ?1")
        running.set = set
        try set.bind("right value")
        #expect(set.next())
        #expect(accepted == [false])
        #expect(set.string(forColumnIndex: 1) == "right value")
        #expect(set.string(forColumnIndex: 2) == "right value")
    }

    /// The text is stored in another encoding than it is bound in.
    @Test func databaseInUTF16() throws {
        let other = Database(path: nil)
        try other.openVerified()
        try other.executeUpdate("PRAGMA encoding = 'UTF-16'", values: nil)
        try other.executeUpdate("CREATE TABLE t (a)")
        let insert = try other.prepare("INSERT INTO t VALUES (?)")
        for text in ["ä", "text \u{0} with NUL", "😀"] {
            try insert.bind(text)
            try insert.stepWithError()
        }
        #expect(try other.executeQuery("SELECT a FROM t").all(String.self) == ["ä", "text \u{0} with NUL", "😀"])
    }
}
