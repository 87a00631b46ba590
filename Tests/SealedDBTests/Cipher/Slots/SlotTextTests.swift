import Foundation
import Testing

@testable import SealedDB

/// The text of a file of slots: what is refused.
@Suite(.hangLimit, .enabled(if: isEncrypting, "the plain build has no keys"))
struct SlotTextTests {
    private let secret: SecretBytes
    private let sealed: SealedSlots
    private let dataKey = SlotTable.DataKey(number: 1, salt: [UInt8](1...16))

    init() throws {
        secret = try Key.testing(9).withSecret { bytes throws(DatabaseError) in try SecretBytes(copying: bytes) }
        var table = SlotTable(store: [UInt8](2...17), generation: 7, dataKeys: [dataKey], slots: [])
        try table.append(table.slot(.init(.key(.testing(1)), label: "ops"), number: 1, secret, dataKey))
        try table.append(table.slot(.quick("open sesame", label: "on-call"), number: 2, secret, dataKey))
        let program = KeySlots.NewSlot(.program(wrap: ["/usr/bin/tr", "0-9a-f", "g-v"], unwrap: nil), label: "safe")
        try table.append(table.slot(program, number: 5, secret, dataKey))
        sealed = try SealedSlots(table, keys: [1: secret])
    }

    private var text: String { String(decoding: sealed.bytes, as: UTF8.self) }

    /// What happens to the bytes of a file: `nil` if they are taken.
    private func refusal(_ bytes: [UInt8]) -> DatabaseError? {
        do throws(DatabaseError) {
            try SealedSlots(parsing: bytes).requireAuthentic(under: secret, 1)
            return nil
        } catch {
            return error
        }
    }

    private func refusal(_ text: String) -> DatabaseError? { refusal(Array(text.utf8)) }

    @Test func isReadAgain() throws {
        #expect(refusal(text) == nil)
        #expect(try SealedSlots(parsing: sealed.bytes).table == sealed.table)
        #expect(text.hasPrefix("sealdb-slots 1\nstore 02030405060708090a0b0c0d0e0f1011\ngeneration 7\n"))
        #expect(text.contains("\nslot 2 passphrase use \(SlotTable.today) on-call\nwrap 1 scrypt 32768 8 1 "))
        #expect(text.contains("\nslot 5 program use \(SlotTable.today) safe\nwrap 1 program "))
        #expect(!text.contains(Hexadecimal.string([UInt8](repeating: 9, count: 32))))
    }

    @Test func everyChangedByteIsRefused() {
        for position in sealed.bytes.indices {
            for change in [0x01, 0x20, 0x80] as [UInt8] {
                var bytes = sealed.bytes
                bytes[position] ^= change
                let error = refusal(bytes)
                #expect(
                    [.malformedSlots, .unsupported].contains(error?.reason),
                    "byte \(position) ^ \(change): \(text)"
                )
            }
        }
    }

    @Test func everyTruncationIsRefused() {
        for count in 0..<sealed.bytes.count {
            #expect(refusal(Array(sealed.bytes.prefix(count)))?.reason == .malformedSlots, "\(count) bytes")
        }
        #expect(refusal(sealed.bytes + [UInt8(ascii: "\n")])?.reason == .malformedSlots)
    }

    @Test(arguments: [
        ("sealdb-slots 1", "sealdb-slots 2"), ("scrypt 32768 8 1", "scrypt 16384 8 1"),
        ("scrypt 32768 8 1", "scrypt 2097152 8 1"), ("scrypt 32768 8 1", "scrypt 32768 9 1"),
        ("scrypt 32768 8 1", "scrypt 32768 8 2"), ("scrypt 32768 8 1", "scrypt 40000 8 1"),
    ])
    func whatThisReleaseDoesNotDo(old: String, new: String) {
        #expect(refusal(text.replacingOccurrences(of: old, with: new))?.reason == .unsupported)
    }

    @Test(arguments: [
        ("generation 7", "generation 07"), ("generation 7", "generation 0"), ("generation 7", "generation -7"),
        ("generation 7", "generation 99999999999999999999"), ("generation 7", "generation  7"), (" ops", " Ops/x"),
        ("slot 5 ", "slot 2 "), (" safe", " ops"), (" use ", " any "), ("data-key 1", "data-key 2"),
        ("key use", "thing use"), ("hkdf-sha256", "hkdf-sha512"), ("wrap 1 hkdf", "wrap 2 hkdf"),
        ("\nmac 1", "\nmac 2"),
        ("0a0b0c", "0A0b0c"), ("slot 1", "slot 01"), ("store 02", "store "),
    ])
    func whatIsWrittenOtherwise(old: String, new: String) {
        let changed = text.replacingOccurrences(of: old, with: new)
        #expect(changed != text)
        #expect(refusal(changed)?.reason == .malformedSlots)
    }

    @Test func tooMuch() {
        let lines = text.split(separator: "\n").map(String.init)
        let slot = lines.firstIndex { $0.hasPrefix("slot 2") }!
        func with(_ numbers: ClosedRange<Int>, _ line: String, _ wrap: String) -> String {
            let more = numbers.flatMap {
                [line.replacingOccurrences(of: "slot 2", with: "slot \($0)") + "-\($0)", wrap]
            }
            return (lines.prefix { !$0.hasPrefix("mac") } + more + lines.suffix(1)).joined(separator: "\n") + "\n"
        }
        #expect(refusal(with(6...13, lines[slot], lines[slot + 1]))?.message.contains("code") == true)
        #expect(refusal(with(6...14, lines[slot], lines[slot + 1]))?.message.contains("at most 8") == true)
        let key = (lines[3 + 1].replacingOccurrences(of: "slot 1", with: "slot 2"), lines[5])
        #expect(refusal(with(6...35, key.0, key.1))?.message.contains("code") == true)
        #expect(refusal(with(6...36, key.0, key.1))?.message.contains("1 to 32") == true)
        #expect(refusal([UInt8](repeating: UInt8(ascii: "\n"), count: 1 << 19))?.reason == .malformedSlots)
        #expect(refusal([UInt8](repeating: UInt8(ascii: "\n"), count: 1 << 19 | 1))?.message.contains("524288") == true)
        let long = String(repeating: "A", count: 4096 / 3 * 4 + 8)
        #expect(
            refusal(
                text.replacingOccurrences(
                    of: "program [^\n]*\nmac",
                    with: "program \(long)\nmac",
                    options: .regularExpression
                )
            )?.message.contains("4096") == true
        )
    }

    /// Nothing that is put together at random is taken, and nothing ends the process.
    @Test func mutations() {
        var random = SeededGenerator(seed: 18)
        let lines = sealed.bytes.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false)
        for _ in 0..<3000 {
            var bytes = sealed.bytes
            switch Int.random(in: 0..<4, using: &random) {
            case 0:
                for _ in 0..<Int.random(in: 1...4, using: &random) {
                    bytes[Int.random(in: bytes.indices, using: &random)] = UInt8.random(in: 0...255, using: &random)
                }
            case 1:
                let start = Int.random(in: bytes.indices, using: &random)
                bytes.removeSubrange(start..<min(bytes.count, start + Int.random(in: 1...80, using: &random)))
            case 2:
                let start = Int.random(in: bytes.indices, using: &random)
                let end = min(bytes.count, start + Int.random(in: 1...80, using: &random))
                bytes.insert(contentsOf: bytes[start..<end], at: Int.random(in: bytes.indices, using: &random))
            default:
                var shuffled = lines
                shuffled.swapAt(
                    Int.random(in: lines.indices, using: &random),
                    Int.random(in: lines.indices, using: &random)
                )
                bytes = Array(shuffled.joined(separator: [UInt8(ascii: "\n")]))
            }
            if bytes != sealed.bytes { #expect(refusal(bytes) != nil, "\(bytes)") }
        }
    }
}
