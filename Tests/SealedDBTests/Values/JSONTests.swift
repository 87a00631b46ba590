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
        #expect(try database.executeQuery("SELECT v FROM t").scalar(JSON<[Address]>.self)?.value == [address])
        #expect(
            try database.executeQuery("SELECT json_extract(v, '$[0].since') FROM t").scalar(Int.self) == 1_000_000_000
        )
        #expect(try database.executeQuery("SELECT typeof(v) FROM t").scalar(String.self) == "text")
        #expect(
            try database.executeQuery("SELECT CAST(v AS BLOB) FROM t").scalar(JSON<[Address]>.self) == JSON([address])
        )
        #expect(try database.executeQuery("SELECT \(JSON("x"))").scalar(JSON<String>.self)?.value == "x")
        #expect(try database.executeQuery("SELECT \(JSON(["b": 1, "a": 2]))").scalar(String.self) == #"{"a":2,"b":1}"#)
        #expect(try database.executeQuery("SELECT NULL").scalar(JSON<[Int]>.self) == nil)
    }

    @Test func valuesWithoutJSONAreNotStored() throws {
        let error = #expect(throws: DatabaseError.self) {
            try database.executeUpdate("INSERT INTO t VALUES (?)", JSON([1, Double.nan]))
        }
        #expect(error?.reason == .typeMismatch)
        #expect(try database.executeQuery("SELECT count(*) FROM t").scalar(Int.self) == 0)
    }

    /// They are data, also those that are numbers.
    @Test func keysOfDictionariesAreNotShown() throws {
        func message<Value: Decodable>(_ type: Value.Type, _ text: String) -> String? {
            do {
                _ = try database.executeQuery("SELECT \(text)").scalar(JSON<Value>.self)
                return nil
            } catch {
                return error.message
            }
        }
        let number = "4111111111111111"
        let type = "expected Int"
        #expect(message([String: Int].self, #"{"\#(number)": "x"}"#)?.contains("(at ?: \(type))") == true)
        #expect(message([Int: Int].self, #"{"\#(number)": "x"}"#)?.contains("(at ?: \(type))") == true)
        #expect(message([String: Int].self, #"{"secret": "x"}"#)?.contains("(at ?: \(type))") == true)
        #expect(message([Int].self, #"[1, "x"]"#)?.contains("(at [1]: \(type))") == true)
        let error = #expect(throws: DatabaseError.self) {
            try database.executeUpdate("INSERT INTO t VALUES (?)", JSON([number: Double.nan]))
        }
        #expect(error?.message.contains(number) == false, "\(error as Any)")
    }
}
