import Foundation
import Testing

@testable import SealedDB

/// What OpenSSL does for keys, at its edges.
@Suite(.hangLimit, .enabled(if: isEncrypting, "the plain build has no keys"))
struct CryptographyTests {
    @Test func codesAreEqualOnlyAsAWhole() {
        let code = [UInt8](0..<32)
        #expect(KeyWrapping.isEqual(code, code))
        for index in code.indices {
            var other = code
            other[index] ^= 0x80
            #expect(!KeyWrapping.isEqual(code, other), "\(index)")
        }
        let (shorter, longer) = (Array(code.dropLast()), code + [32])
        for (first, second) in [(shorter, shorter), (code, longer), (longer, code), (longer, longer), ([], [])] {
            #expect(!KeyWrapping.isEqual(first, second), "\(first.count) and \(second.count) bytes")
        }
    }

    /// Nobody goes on with what stood there before, or with a part of a key.
    @Test func whatDoesNotOpenLeavesZeros() throws {
        let (secret, key) = ([UInt8](repeating: 7, count: 32), [UInt8](repeating: 1, count: 32))
        let nonce = [UInt8](repeating: 3, count: 12)
        let sealed = try secret.withUnsafeBytes { secret in
            try key.withUnsafeBytes { key in try KeyWrapping.seal(secret, key: key, nonce: nonce, bound: [1, 2]) }
        }
        func open(_ sealed: [UInt8], key: [UInt8], bound: [UInt8]) throws -> (isOpen: Bool, plaintext: [UInt8]) {
            var plaintext = [UInt8](repeating: 0xee, count: 32)
            let isOpen = try plaintext.withUnsafeMutableBytes { plaintext in
                try key.withUnsafeBytes { key in
                    try KeyWrapping.open(sealed, key: key, nonce: nonce, bound: bound, into: plaintext)
                }
            }
            return (isOpen, plaintext)
        }
        let opened = try open(sealed, key: key, bound: [1, 2])
        #expect(opened.isOpen && opened.plaintext == secret)
        var changed = sealed
        changed[0] ^= 1
        let attempts = [
            try open(changed, key: key, bound: [1, 2]), try open(sealed, key: key, bound: [2, 1]),
            try open(sealed, key: secret, bound: [1, 2]),
        ]
        for attempt in attempts {
            #expect(!attempt.isOpen && attempt.plaintext == [UInt8](repeating: 0, count: 32))
        }
    }

    /// With one round as in RFC 6070, and with numbers of rounds that OpenSSL cannot take.
    @Test func roundsOfPBKDF2() {
        var key = [UInt8](repeating: 0, count: 20)
        func derive(_ iterations: Int) -> Bool {
            key.withUnsafeMutableBytes { key in
                Array("password".utf8).withUnsafeBytes { passphrase in
                    PBKDF2.derive(
                        bits: 160,
                        passphrase: passphrase,
                        salt: Array("salt".utf8),
                        iterations: iterations,
                        into: key
                    )
                }
            }
        }
        for iterations in [0, -1, Int(Int32.max) + 1] {
            let isDerived = derive(iterations)
            #expect(!isDerived, "\(iterations)")
        }
        let isDerived = derive(1)
        #expect(isDerived)
        #expect(key.map { String(format: "%02x", $0) }.joined() == "0c60c80f961f0e71f3a9b524af6012062fe037a6")
    }

    /// A page that was changed, or stands in another place, has another mark; and so has everything under another key.
    @Test func marksOfPages() throws {
        let marker = try PageMarker()
        let (same, other) = (try PageMarker(like: marker), try PageMarker())
        func mark(_ marker: PageMarker, _ page: [UInt8], _ number: Int64) throws -> UInt64 {
            try page.withUnsafeBytes { try marker.mark($0, number: number) }
        }
        let page = [UInt8](repeating: 5, count: 4096)
        let first = try mark(marker, page, 1)
        #expect(try mark(marker, page, 1) == first)
        #expect(try mark(same, page, 1) == first)
        #expect(try mark(other, page, 1) != first)
        #expect(try mark(marker, page, 2) != first)
        var changed = page
        changed[4095] ^= 1
        #expect(try mark(marker, changed, 1) != first)
    }

    @Test func randomBytes() throws {
        let values = try (0..<10).map { _ in try PageKeys.randomBytes(count: 16) }
        #expect(Set(values).count == 10 && values.allSatisfy { $0.count == 16 })
    }
}
