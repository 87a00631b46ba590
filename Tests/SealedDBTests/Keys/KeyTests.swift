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
}
