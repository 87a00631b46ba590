import Foundation
import SealedDB
import Testing

@Suite(.hangLimit)
struct JSONTests {
    private struct Address: Codable, Hashable {
        var street: String
        var since: Date
        var photo: Data?
    }

    private let database: Database

    init() throws {
        database = try Database.testing(nil)
        try database.executeUpdate("CREATE TABLE t (v)")
    }

    @Test func valuesComeBack() throws {
        let address = Address(
            street: "a\0/\"ü👍",
            since: Date(timeIntervalSince1970: 1_000_000_000),
            photo: Data([1, 2])
        )
        try database.executeUpdate("INSERT INTO t VALUES (?)", JSON([address]))
        #expect(try database.scalar(JSON<[Address]>.self, "SELECT v FROM t")?.value == [address])
        #expect(try database.scalar(Int.self, "SELECT json_extract(v, '$[0].since') FROM t") == 1_000_000_000)
        #expect(try database.scalar(String.self, "SELECT typeof(v) FROM t") == "text")
        #expect(try database.scalar(JSON<[Address]>.self, "SELECT CAST(v AS BLOB) FROM t") == JSON([address]))
        #expect(try database.scalar(JSON<String>.self, "SELECT \(JSON("x"))")?.value == "x")
        #expect(try database.scalar(String.self, "SELECT \(JSON(["b": 1, "a": 2]))") == #"{"a":2,"b":1}"#)
        #expect(try database.scalar(JSON<[Int]>.self, "SELECT NULL") == nil)
    }

    @Test func valuesWithoutJSONAreNotStored() throws {
        let error = #expect(throws: DatabaseError.self) {
            try database.executeUpdate("INSERT INTO t VALUES (?)", JSON([1, Double.nan]))
        }
        #expect(error?.reason == .typeMismatch)
        #expect(try database.scalar(Int.self, "SELECT count(*) FROM t") == 0)
    }
}
