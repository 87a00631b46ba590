/// A generator whose numbers follow from its seed alone (SplitMix64).
struct Random: RandomNumberGenerator, Sendable {
    private var state: UInt64

    init(seed: UInt64) { state = seed }

    /// One that has nothing in common with those of other words.
    init(seed: UInt64, _ words: Int...) {
        state = seed
        for word in words { state = next() ^ UInt64(bitPattern: Int64(word)) &* 0x9e37_79b9_7f4a_7c15 }
    }

    mutating func next() -> UInt64 {
        state &+= 0x9e37_79b9_7f4a_7c15
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xbf58_476d_1ce4_e5b9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94d0_49bb_1331_11eb
        return mixed ^ (mixed >> 31)
    }

    mutating func int(_ range: Range<Int>) -> Int { Int.random(in: range, using: &self) }

    /// Whether one of so many cases is the case.
    mutating func oneIn(_ count: Int) -> Bool { int(0..<count) == 0 }

    mutating func pick<Element>(_ elements: [Element]) -> Element { elements[int(0..<elements.count)] }

    mutating func bytes(_ count: Int) -> [UInt8] { (0..<count).map { _ in UInt8.random(in: 0...255, using: &self) } }
}
