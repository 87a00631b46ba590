import SealedDB

/// A finite number in decimal digits, of which PostgreSQL's NUMERIC holds every one.
struct DecimalForm {
    let isNegative: Bool
    /// Without zeros at the beginning; empty for 0.
    private let digits: [UInt8]
    /// The number is `digits` times ten to this.
    private let exponent: Int

    /// The shortest digits from which the same number is read.
    init(_ value: Double) { self.init(value.description) }

    init(_ value: Int64) { self.init(String(value)) }

    private init(_ text: String) {
        let parts = text.split(separator: "e")
        let fraction = parts[0].parts(between: ".")
        var digits = Array(parts[0].utf8).filter { (0x30...0x39).contains($0) }.map { $0 - 0x30 }
        var exponent = (parts.count > 1 ? Int(parts[1]) ?? 0 : 0) - (fraction.count > 1 ? fraction[1].utf8.count : 0)
        digits = Array(digits.drop { $0 == 0 })
        while digits.last == 0 {
            digits.removeLast()
            exponent += 1
        }
        (self.digits, self.exponent) = (digits, digits.isEmpty ? 0 : exponent)
        isNegative = text.begins(with: "-") && !digits.isEmpty
    }

    /// How many digits there are behind the point.
    var scale: Int { max(0, -exponent) }
    /// How many there are before it.
    var wholeDigits: Int { max(0, digits.count + exponent) }

    func fits(_ limits: NumericLimits) -> Bool {
        scale <= limits.scale && wholeDigits <= limits.precision - limits.scale
    }

    /// In the form in which PostgreSQL itself sends and stores it: without groups that are 0 at either end. So what it sends
    /// back has the same bytes. https://www.postgresql.org/docs/15/protocol-overview.html#PROTOCOL-FORMAT-CODES, and the
    /// source of its type numeric
    func add(to buffer: ByteBuffer, limits: NumericLimits?) {
        let shown = limits?.scale ?? scale
        // Groups of four digits, on both sides of the point.
        var whole = Array(digits.prefix(wholeDigits))
        whole += Array(repeating: 0, count: max(0, wholeDigits - whole.count))
        whole = Array(repeating: 0, count: (4 - whole.count % 4) % 4) + whole
        let zeros = max(0, -(digits.count + exponent))
        var fraction =
            scale == 0 ? [] : Array(repeating: 0, count: zeros) + digits.dropFirst(max(0, digits.count + exponent))
        fraction += Array(repeating: 0, count: (4 - fraction.count % 4) % 4)
        let all = whole + fraction
        var groups = stride(from: 0, to: all.count, by: 4).map { start in
            all[start..<start + 4].reduce(0) { $0 * 10 + Int16($1) }
        }
        var weight = whole.count / 4 - 1
        while groups.first == 0 {
            groups.removeFirst()
            weight -= 1
        }
        while groups.last == 0 { groups.removeLast() }
        if groups.isEmpty { weight = 0 }
        buffer.add(bigEndian: Int32(8 + groups.count * 2))
        buffer.add(bigEndian: Int16(groups.count))
        buffer.add(bigEndian: Int16(weight))
        buffer.add(bigEndian: Int16(isNegative ? 0x4000 : 0))
        buffer.add(bigEndian: Int16(shown))
        for group in groups { buffer.add(bigEndian: group) }
    }
}

extension ByteBuffer {
    func add(bigEndian value: some FixedWidthInteger) {
        withUnsafeBytes(of: value.bigEndian) { add($0) }
    }
}
