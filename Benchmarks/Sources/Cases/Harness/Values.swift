import Foundation

/// What is bound and stored: the same for every subject, and in every run.
final class Values: Sendable {
    static let count = 1024
    static let shared = Values()

    /// Half of them small, half of up to 48 bits.
    let integers: [Int64]
    let reals: [Double]
    /// 32 bytes of ASCII each.
    let texts: [String]
    /// 32 bytes each.
    let blobs: [Data]
    /// About 100 bytes each, words.
    let bodies: [String]
    let dates: [Date]
    let nulls = [Int64?](repeating: nil, count: count)

    private init() {
        var random = Random(seed: 20_240_229)
        integers = (0..<Self.count).map { index in
            Int64(index.isMultiple(of: 2) ? random.next() % 10_000 : random.next() >> 16)
        }
        reals = (0..<Self.count).map { _ in Double(random.next() >> 40) / 256 }
        dates = reals.map { Date(timeIntervalSince1970: $0) }
        texts = (0..<Self.count).map { _ in
            let digits = String(random.next() % 100_000_000)
            return "item " + String(repeating: "0", count: 10 - digits.count) + digits + " of the catalogue"
        }
        blobs = (0..<Self.count).map { _ in
            var bytes = Data(capacity: 32)
            for _ in 0..<4 { withUnsafeBytes(of: random.next()) { bytes.append(contentsOf: $0) } }
            return bytes
        }
        let words = "sealed store page cipher salt derive rotate verify query index table column commit journal".split(
            separator: " "
        )
        bodies = (0..<Self.count).map { _ in
            (0..<16).map { _ in String(words[Int(random.next() % UInt64(words.count))]) }.joined(separator: " ")
        }
    }

    static func index(_ number: Int) -> Int { number & (count - 1) }
}

/// Numbers that look random and are the same in every run: SplitMix64.
struct Random: RandomNumberGenerator {
    private var state: UInt64

    init(seed: UInt64) { state = seed }

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var value = state
        value = (value ^ (value >> 30)) &* 0xBF58_476D_1CE4_E5B9
        value = (value ^ (value >> 27)) &* 0x94D0_49BB_1331_11EB
        return value ^ (value >> 31)
    }
}
