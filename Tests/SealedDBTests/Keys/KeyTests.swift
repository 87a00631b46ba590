import Foundation
import Testing

@testable import SealedDB

@Suite(.hangLimit)
struct KeyTests {
    @Test func neverPrintsItself() throws {
        let key = try Key.passphrase("correct horse battery staple")
        var dumped = ""
        dump(key, to: &dumped)
        for text in ["\(key)", String(reflecting: key), dumped, "\([key])", "\(Configuration(key: key))"] {
            #expect(!text.contains("horse"), "\(text)")
        }
        #expect("\(key)" == "Key(redacted)")
    }

    @Test(arguments: [
        "", "x'" + String(repeating: "a", count: 64) + "'", "X'" + String(repeating: "0", count: 96) + "'",
        "x'" + String(repeating: "F", count: 64) + "?",
    ])
    func dangerousPassphrasesAreRefused(text: String) {
        let error = #expect(throws: DatabaseError.self) { try Key.passphrase(text) }
        #expect(error?.reason == .malformedKey)
        #expect(error.map { !$0.message.contains("aaaa") } == true)
    }

    @Test(arguments: [
        "x'" + String(repeating: "a", count: 63) + "'", "x'" + String(repeating: "g", count: 64) + "'", "x''", "a",
        "y'" + String(repeating: "a", count: 64) + "'", "xy" + String(repeating: "a", count: 64) + "'",
    ])
    func otherPassphrasesAreTaken(text: String) throws {
        #expect(try Key.passphrase(text) == Key.passphrase(text))
    }

    @Test func rawKeysHaveTheirLength() throws {
        for count in [0, 16, 31, 33, 64] {
            let bytes = [UInt8](repeating: 7, count: count)
            #expect(throws: DatabaseError.self) { try bytes.withUnsafeBytes { try Key.raw($0) } }
        }
        #expect(try Key.testing(1) == Key.testing(1))
        #expect(try Key.testing(1) != Key.testing(2))
        #expect(try Key.random() != Key.random())
    }

    @Test func specIsSQLCiphers() throws {
        let spec = try Key.testing(0xAB).withKeySpec { bytes throws(DatabaseError) in
            String(decoding: bytes, as: UTF8.self)
        }
        #expect(spec == "x'" + String(repeating: "ab", count: 32) + "'")
        let salted = try [UInt8](repeating: 1, count: 32).withUnsafeBytes { key in
            try [UInt8](repeating: 2, count: 16).withUnsafeBytes { salt in try Key.raw(key, salt: salt) }
        }
        let saltedSpec = try salted.withKeySpec { bytes throws(DatabaseError) in String(decoding: bytes, as: UTF8.self)
        }
        #expect(saltedSpec == "x'" + String(repeating: "01", count: 32) + String(repeating: "02", count: 16) + "'")
    }

    /// A key that differs in one byte is another one, wherever that byte stands; and so is one that goes on.
    @Test func everyByteCounts() throws {
        let bytes = [UInt8](repeating: 7, count: 32)
        let key = try bytes.withUnsafeBytes { try Key.raw($0) }
        for position in bytes.indices {
            var other = bytes
            other[position] ^= 0x80
            let changed = try other.withUnsafeBytes { try Key.raw($0) }
            #expect(changed != key, "\(position)")
        }
        let (short, long) = (try Key.passphrase("correct horse"), try Key.passphrase("correct horse battery"))
        #expect(short != long && long != short)
        // Nor is a passphrase the raw key of the same bytes.
        #expect(try Key.passphrase(String(repeating: "a", count: 32)) != Key.testing(0x61))
    }

    @Test(arguments: [(31, 16), (33, 16), (32, 15), (32, 17), (32, 0)])
    func keysWithASaltHaveTheirLengths(count: Int, saltCount: Int) {
        let error = #expect(throws: DatabaseError.self) {
            try [UInt8](repeating: 1, count: count).withUnsafeBytes { key in
                try [UInt8](repeating: 2, count: saltCount).withUnsafeBytes { salt in try Key.raw(key, salt: salt) }
            }
        }
        #expect(error?.reason == .malformedKey)
    }

    /// The salt of a store is told beside a raw key. A key that has one keeps its own.
    @Test func saltsOfSpecs() throws {
        func spec(_ key: Key) throws -> String {
            try key.withKeySpec(salt: [UInt8](repeating: 0xcd, count: 16)) { bytes throws(DatabaseError) in
                String(decoding: bytes, as: UTF8.self)
            }
        }
        func hex(_ pair: String, _ count: Int) -> String { String(repeating: pair, count: count) }
        #expect(try spec(.testing(1)) == "x'" + hex("01", 32) + hex("cd", 16) + "'")
        #expect(try spec(FixtureKey.rawWithSalt.key()) == "x'" + hex("5a", 32) + hex("77", 16) + "'")
    }

    /// Only what has the length and the digits of a key is taken for one by mistake.
    @Test func namesThatAreNoKeys() {
        func digits(_ count: Int) -> String { String(repeating: "a", count: count) }
        for name in [digits(63), digits(65), digits(63) + "g", "x'" + digits(62) + "'", "", "a"] {
            #expect(throws: Never.self, "\(name)") { try Key.requireName(name, of: "file") }
        }
        for name in [digits(128), digits(160), "X'" + digits(128) + "'"] {
            #expect(throws: DatabaseError.self, "\(name)") { try Key.requireName(name, of: "file") }
        }
    }
}
