/// Numbers of pages: a bit for each page of a store.
struct PageSet {
    private var words: [UInt64] = []
    private(set) var count: Int64 = 0

    var isEmpty: Bool { count == 0 }

    private static func place(_ number: Int64) -> (word: Int, bit: UInt64) {
        (Int(number >> 6), 1 << UInt64(number & 63))
    }

    mutating func insert(_ number: Int64) {
        let (word, bit) = PageSet.place(number)
        if word >= words.count { words += Array(repeating: 0, count: word + 1 - words.count) }
        guard words[word] & bit == 0 else { return }
        words[word] |= bit
        count += 1
    }

    mutating func insert(_ numbers: ClosedRange<Int64>) {
        for number in numbers { insert(number) }
    }

    mutating func remove(_ numbers: ClosedRange<Int64>) {
        for number in numbers.clamped(to: 0...Int64(words.count) << 6) {
            let (word, bit) = PageSet.place(number)
            guard word < words.count, words[word] & bit != 0 else { continue }
            words[word] &= ~bit
            count -= 1
        }
    }

    /// The first pages in a row that are not before `start`.
    /// - Parameter limit: at most so many.
    func run(from start: Int64, limit: Int64) -> ClosedRange<Int64>? {
        guard let first = next(from: start) else { return nil }
        var last = first
        while last - first + 1 < limit, contains(last + 1) { last += 1 }
        return first...last
    }

    func contains(_ number: Int64) -> Bool {
        let (word, bit) = PageSet.place(number)
        return word < words.count && words[word] & bit != 0
    }

    private func next(from start: Int64) -> Int64? {
        var number = start
        while number >> 6 < words.count {
            let rest = words[Int(number >> 6)] >> UInt64(number & 63)
            if rest != 0 { return number + Int64(rest.trailingZeroBitCount) }
            number = (number >> 6 + 1) << 6
        }
        return nil
    }
}
