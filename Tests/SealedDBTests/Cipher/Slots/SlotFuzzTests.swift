import Foundation
import Testing

@testable import SealedDB

/// The parser takes any bytes: it neither ends the process nor accepts what would be written in another way.
///
/// `scripts/fuzz-slots` runs ten million inputs; here it is a sample.
@Suite(.hangLimit)
struct SlotFuzzTests {
    private static let count = ProcessInfo.processInfo.environment["SEALDB_FUZZED_SLOTS"].flatMap { Int($0) } ?? 20_000
    private static let parts = 4

    /// A text with slots of each kind, and one with two data keys.
    private static let seeds: [[UInt8]] = [seed(dataKeys: [1]), seed(dataKeys: [1, 2])]

    private static func seed(dataKeys: [Int]) -> [UInt8] {
        func digits(_ count: Int, _ start: Int) -> String {
            (0..<count).map { String(($0 * 7 + start) % 16, radix: 16) }.joined()
        }
        var text = "sealdb-slots 1\nstore \(digits(32, 1))\ngeneration 7\n"
        for key in dataKeys { text += "data-key \(key) \(digits(32, key))\n" }
        for (number, kind, form) in [
            (1, "key use", "hkdf-sha256 \(digits(64, 2)) \(digits(24, 3)) \(digits(96, 4))"),
            (2, "passphrase use", "scrypt 131072 8 1 \(digits(64, 5)) \(digits(24, 6)) \(digits(96, 7))"),
            (3, "program recovery", "program YWdlLWVuY3J5cHRpb24="),
        ] {
            text += "slot \(number) \(kind) 2026-11-24 label-\(number)\n"
            for key in dataKeys { text += "wrap \(key) \(form)\n" }
        }
        for key in dataKeys { text += "mac \(key) \(digits(64, key))\n" }
        return Array(text.utf8)
    }

    private static let words: [[UInt8]] = [
        "slot ", "wrap ", "data-key ", "mac ", "0", "00", "1", "9223372036854775807", "999999", "1000000", "+1", "-1",
        "program ", "scrypt 32768 8 1 ", "key ", "use ", "recovery ", " ", "\n", "\n\n", "=", "A", "\r\n",
        "generation ",
        "sealdb-slots 2\n", "\u{e9}", "\0",
    ].map { Array($0.utf8) }

    private static func changed(_ bytes: [UInt8], _ generator: inout SeededGenerator) -> [UInt8] {
        var bytes = bytes
        for _ in 0..<Int.random(in: 1...4, using: &generator) where !bytes.isEmpty {
            let place = Int.random(in: 0..<bytes.count, using: &generator)
            switch Int.random(in: 0..<8, using: &generator) {
            case 0: bytes[place] = UInt8.random(in: 0...255, using: &generator)
            case 1: bytes[place] ^= 1 << UInt8.random(in: 0..<8, using: &generator)
            case 2: bytes.remove(at: place)
            case 3: bytes.insert(contentsOf: words.randomElement(using: &generator)!, at: place)
            case 4: bytes.removeSubrange(place..<min(bytes.count, place + Int.random(in: 1...80, using: &generator)))
            case 5: bytes.removeLast(bytes.count - place)
            case 6:
                let end = min(bytes.count, place + Int.random(in: 1...200, using: &generator))
                let target = Int.random(in: 0...bytes.count, using: &generator)
                bytes.insert(contentsOf: Array(bytes[place..<end]), at: target)
            default:
                // Whole lines change places, or come twice.
                var lines = bytes.split(separator: 0x0a, omittingEmptySubsequences: false)
                let (one, other) = (
                    Int.random(in: 0..<lines.count, using: &generator),
                    Int.random(in: 0..<lines.count, using: &generator)
                )
                if Bool.random(using: &generator) {
                    lines.swapAt(one, other)
                } else {
                    lines.insert(lines[one], at: other)
                }
                bytes = Array(lines.joined(separator: [0x0a]))
            }
        }
        return bytes
    }

    @Test(arguments: 0..<parts)
    func anyBytesAreReadOrRefused(part: Int) throws {
        var generator = SeededGenerator(seed: UInt64(part) &+ UInt64(SlotFuzzTests.count))
        var accepted = 0
        for number in 0..<SlotFuzzTests.count / SlotFuzzTests.parts {
            let bytes =
                number % 16 == 0
                ? (0..<Int.random(in: 0...400, using: &generator)).map { _ in
                    UInt8.random(in: 0...255, using: &generator)
                }
                : SlotFuzzTests.changed(SlotFuzzTests.seeds[number % 2], &generator)
            do throws(DatabaseError) {
                let (table, codes, signed) = try SlotsParser.parse(bytes)
                accepted += 1
                guard signed == Array(table.text.utf8), signed + SealedSlots.text(of: codes) == bytes,
                    (1...SlotTable.maximumSlotCount + 1).contains(table.slots.count),
                    (1...SlotTable.maximumDataKeyCount).contains(table.dataKeys.count),
                    table.slots.allSatisfy({ SlotTable.isLabel($0.label) && !$0.wraps.isEmpty })
                else {
                    Issue.record("accepted: \(String(decoding: bytes, as: UTF8.self))")
                    return
                }
            } catch {
                guard error.reason == .malformedSlots || error.reason == .unsupported else {
                    Issue.record("\(error) for \(String(decoding: bytes, as: UTF8.self))")
                    return
                }
            }
        }
        // Digits of a salt or a code are as good as any others.
        #expect(accepted > 0)
    }

    @Test func theSeedsAreAccepted() throws {
        for seed in SlotFuzzTests.seeds { _ = try SlotsParser.parse(seed) }
    }
}
