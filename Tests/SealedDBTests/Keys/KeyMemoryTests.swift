import CSealedDBSystem
import Foundation
import Testing

@testable import SealedDB

/// Reads the memory of a process that uses a store, and counts the copies of its secrets.
///
/// What cannot be reached: while a store is open, SQLCipher up to 4.6 keeps the key proper on its heap, as 32 bytes and as
/// hex digits, each for reading and for writing (from 4.7 on it masks them). SealedDB masks what it keeps itself. The
/// passphrase is nowhere once the store is open, and nothing is left after closing, although the configuration can still
/// open the store again.
@Suite(
    .hangLimit,
    .enabled(if: isEncrypting, "needs a codec"),
    .enabled(
        if: dlsym(nil, "__sanitizer_print_stack_trace") == nil,
        "a sanitizer keeps freed memory, and terabytes of its own"
    )
)
struct KeyMemoryTests {
    private let directory: TemporaryDirectory
    private let passphrase = [UInt8]("correct horse battery staple, and some more words".utf8)
    private let raw = (0..<32).map { UInt8(0xB7 - $0 * 5) }

    init() throws {
        directory = try TemporaryDirectory()
        try writePrivately("passphrase", passphrase)
        try writePrivately("key", digits(raw))
    }

    private func digits(_ bytes: [UInt8]) -> [UInt8] { [UInt8](Hexadecimal.string(bytes).utf8) }

    private func writePrivately(_ name: String, _ bytes: [UInt8]) throws {
        try Data(bytes).write(to: URL(fileURLWithPath: directory.file(name)))
        chmod(directory.file(name), 0o600)
    }

    /// Makes the store, and returns the key proper, which SQLCipher makes from the passphrase.
    private func makeStore() throws -> [UInt8] {
        let key = try passphrase.withUnsafeBytes { bytes in try Key.passphrase(bytes) }
        try Database(path: directory.file("db"), configuration: Configuration(key: key)).openVerified()
        let derivation = CipherSettings.sqlCipher4.parameters.keyDerivation
        return try key.derived(salt: [UInt8](directory.bytes("db").prefix(16)), by: derivation).rawBytes()
    }

    /// Each secret is looked for whole and in halves, because freeing a block overwrites its beginning.
    private func writeNeedles(_ secrets: [String: [UInt8]]) throws {
        var text = ""
        for (name, secret) in secrets {
            let half = secret.count / 2
            for (part, bytes) in [("", secret[...]), (".first", secret[..<half]), (".second", secret[half...])] {
                let mask = bytes.map { _ in UInt8.random(in: 0...255) }
                let masked = zip(bytes, mask).map { $0 ^ $1 }
                text += "\(name)\(part) \(Hexadecimal.string(mask)) \(Hexadecimal.string(masked))\n"
            }
        }
        try writePrivately("needles", [UInt8](text.utf8))
    }

    /// Counts by step and secret; of the whole secret or of the half that occurs most.
    private func probe(_ kind: String, _ file: String, newKeyFile: String? = nil) throws -> [String: [String: Int]] {
        let program = URL(fileURLWithPath: "/proc/self/exe").resolvingSymlinksInPath()
            .deletingLastPathComponent().appendingPathComponent("KeyMemoryProbe").path
        let files = [newKeyFile].compactMap(\.self).map(directory.file)
        let text = try output(
            of: [program, directory.file("db"), directory.file("needles"), kind, directory.file(file)] + files
        )
        var counts: [String: [String: Int]] = [:]
        for line in text.split(separator: "\n") {
            let words = line.split(separator: " ").map(String.init)
            let name = String(words[1].prefix { $0 != "." })
            let count = try #require(Int(words[2]))
            counts[words[0], default: [:]][name, default: 0] = max(counts[words[0]]?[name] ?? 0, count)
        }
        return counts
    }

    private func output(of arguments: [String]) throws -> String {
        let pointers = arguments.map { strdup($0) } + [nil]
        defer { for pointer in pointers { free(pointer) } }
        var process: pid_t = 0
        var output: Int32 = -1
        try #require(sealeddb_spawn(pointers, [nil], -1, &process, &output) == 0)
        let limit = ChildLimit(of: process, named: arguments[0])
        defer { limit.end() }
        let data = try FileHandle(fileDescriptor: output, closeOnDealloc: true).readToEnd() ?? Data()
        var status: Int32 = 0
        try #require(waitpid(process, &status, 0) == process && status == 0, "\(status)")
        return String(decoding: data, as: UTF8.self)
    }

    private func expectNothing(_ counts: [String: [String: Int]], _ steps: String...) {
        for step in steps { #expect(counts[step]?.values.allSatisfy { $0 == 0 } == true, "\(step): \(counts)") }
    }

    @Test(arguments: ["passphrase-file", "passphrase-command"])
    func passphraseIsGoneOnceOpen(kind: String) throws {
        let derived = try makeStore()
        try writeNeedles(["passphrase": passphrase, "raw": derived, "hex": digits(derived)])
        let counts = try probe(kind, "passphrase")
        #expect(counts["control"] == ["passphrase": 1, "raw": 0, "hex": 0])
        for step in ["opened", "queried"] {
            let found = try #require(counts[step])
            #expect(found["passphrase"] == 0 && found["raw"]! <= 4 && found["hex"]! <= 2, "\(step): \(found)")
        }
        expectNothing(counts, "closed", "released")
    }

    @Test func rawKeyOfANewStore() throws {
        try writeNeedles(["raw": raw, "hex": digits(raw)])
        let counts = try probe("key-file", "key")
        #expect(counts["control"] == ["raw": 0, "hex": 1])
        for step in ["opened", "queried"] {
            let found = try #require(counts[step])
            #expect(found["raw"]! <= 4 && found["hex"]! <= 2, "\(step): \(found)")
        }
        expectNothing(counts, "closed", "released")
    }

    @Test func rotationFromAPassphraseToARawKey() throws {
        let derived = try makeStore()
        try writeNeedles([
            "passphrase": passphrase, "raw": derived, "hex": digits(derived), "newRaw": raw, "newHex": digits(raw),
        ])
        let counts = try probe("passphrase-file", "passphrase", newKeyFile: "key")
        let found = try #require(counts["rotated"])
        #expect(found["passphrase"] == 0 && found["raw"] == 0 && found["hex"] == 0, "\(found)")
        #expect(found["newRaw"]! <= 4 && found["newHex"]! <= 2, "\(found)")
        expectNothing(counts, "closed", "released")
    }

    @Test func keyRing() throws {
        let derived = try makeStore()
        let text = "sealdb-keyring 1\nactive new\nnew key \(Hexadecimal.string(raw))\n"
        try writePrivately("ring", [UInt8]((text + "old passphrase-file \(directory.file("passphrase"))\n").utf8))
        try writeNeedles(["raw": derived, "hex": digits(derived), "newRaw": raw, "newHex": digits(raw)])
        let counts = try probe("key-ring", "ring")
        #expect(counts["control"]?["newHex"] == 1)
        let found = try #require(counts["opened"])
        #expect(found["newRaw"] == 0 && found["newHex"] == 0, "\(found)")
        expectNothing(counts, "closed", "released")
    }
}

extension Key {
    /// The bytes of a raw key in the clear.
    func rawBytes() throws -> [UInt8] {
        try withKeySpec { spec throws(DatabaseError) in
            stride(from: 2, to: spec.count - 1, by: 2).map {
                Hexadecimal.value(of: spec[$0])! << 4 | Hexadecimal.value(of: spec[$0 + 1])!
            }
        }
    }
}
