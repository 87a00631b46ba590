/// Why delimited text cannot be read, and on which line. The first line is 1.
struct DelimitedError: Error, Equatable {
    let line: Int
    let reason: String
}

/// One record: the bytes of its fields one after the other, and the end of each field. It is reused for the next
/// record, to save allocations.
struct DelimitedRecord {
    /// The line on which the record begins.
    var line = 1
    private(set) var bytes: [UInt8] = []
    private var ends: [Int] = []
    private var nulls: Set<Int> = []

    var fieldCount: Int { ends.count }

    /// Number of bytes so far of the field that is being read.
    var openFieldCount: Int { bytes.count - (ends.last ?? 0) }

    /// The bytes so far of the field that is being read.
    var openField: ArraySlice<UInt8> { bytes[(ends.last ?? 0)...] }

    var isBlankLine: Bool { ends.count == 1 && bytes.isEmpty }

    func bytes(at index: Int) -> ArraySlice<UInt8> {
        bytes[(index == 0 ? 0 : ends[index - 1])..<ends[index]]
    }

    /// Whether the field stands for NULL, such as `\N`, which PostgreSQL writes.
    func isNull(at index: Int) -> Bool { !nulls.isEmpty && nulls.contains(index) }

    func text(at index: Int) throws(DelimitedError) -> String {
        let field = bytes(at: index)
        if let text = field.withUnsafeBufferPointer({ String(validating: $0, as: UTF8.self) }) { return text }
        throw DelimitedError(
            line: line + newlines(before: ends[index] - field.count + field.validPrefixCount),
            reason: "field \(index + 1) is not valid UTF-8"
        )
    }

    /// Makes sure that all fields are valid UTF-8, without keeping their text.
    func validateText() throws(DelimitedError) {
        guard bytes.contains(where: { $0 >= 0x80 }) else { return }
        for index in ends.indices { _ = try text(at: index) }
    }

    private func newlines(before index: Int) -> Int {
        bytes[..<index].count { $0 == UInt8(ascii: "\n") }
    }

    // MARK: Filling

    mutating func begin(line: Int) {
        self.line = line
        bytes.removeAll(keepingCapacity: true)
        ends.removeAll(keepingCapacity: true)
        nulls.removeAll(keepingCapacity: true)
    }

    mutating func append(_ byte: UInt8) { bytes.append(byte) }

    mutating func append(_ more: some Collection<UInt8>) { bytes.append(contentsOf: more) }

    mutating func removeLast() { bytes.removeLast() }

    mutating func endField() { ends.append(bytes.count) }

    mutating func endNullField() {
        bytes.removeLast(openFieldCount)
        nulls.insert(ends.count)
        ends.append(bytes.count)
    }
}

extension Collection<UInt8> {
    /// Number of bytes at the start that are complete, valid UTF-8 sequences.
    fileprivate var validPrefixCount: Int {
        var decoder = UTF8()
        var iterator = makeIterator()
        var count = 0
        while case .scalarValue(let scalar) = decoder.decode(&iterator) { count += UTF8.width(scalar) }
        return count
    }
}
