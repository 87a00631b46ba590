import Foundation

/// Recognises numbers in their canonical form, which SQLite returns as they were stored. "007", "1.10" and "+5" are not
/// canonical: as numbers they would lose something.
enum NumberForm {
    case integer(Int64)
    case real(Double)
    case text

    init(_ bytes: some BidirectionalCollection<UInt8>) {
        self = .text
        guard bytes.count <= 20 else { return }
        let isNegative = bytes.first == UInt8(ascii: "-")
        let digits = isNegative ? bytes.dropFirst() : bytes[...]
        let whole = digits.prefix { $0.isDigit }
        guard let first = whole.first, whole.count == 1 || first != UInt8(ascii: "0") else { return }
        let isZero = first == UInt8(ascii: "0")
        let rest = digits.dropFirst(whole.count)
        if rest.isEmpty {
            if !(isNegative && isZero), let value = Int64(String(decoding: bytes, as: UTF8.self)) {
                self = .integer(value)
            }
            return
        }
        guard rest.first == UInt8(ascii: ".") else { return }
        let fraction = rest.dropFirst()
        // A double keeps any fifteen digits. For values below 0.0001 SQLite would write an exponent.
        guard let last = fraction.last, fraction.allSatisfy(\.isDigit), whole.count + fraction.count <= 15,
            last != UInt8(ascii: "0") || fraction.count == 1
        else { return }
        if isZero {
            let isAllZero = last == UInt8(ascii: "0")
            guard !(isAllZero && isNegative), fraction.prefix(while: { $0 == UInt8(ascii: "0") }).count <= 3 else {
                return
            }
        }
        if let value = Double(String(decoding: bytes, as: UTF8.self)) { self = .real(value) }
    }

    /// The same for bytes in memory, of which most are no number or a short one.
    init(_ bytes: UnsafeRawBufferPointer) {
        self = .text
        guard let first = bytes.first, first.isDigit || first == UInt8(ascii: "-") else { return }
        let isNegative = first == UInt8(ascii: "-")
        let start = isNegative ? 1 : 0
        // With so many digits, both a number of 64 bits and a double hold them.
        guard (start + 1...start + 16).contains(bytes.count), bytes[start].isDigit else {
            self = NumberForm(Array(bytes))
            return
        }
        var value: Int64 = 0
        var point: Int?
        for index in start..<bytes.count {
            let byte = bytes[index]
            if byte.isDigit {
                value = value &* 10 &+ Int64(byte &- UInt8(ascii: "0"))
            } else if byte == UInt8(ascii: "."), point == nil {
                point = index
            } else {
                return
            }
        }
        let digits = bytes.count - start - (point == nil ? 0 : 1)
        let whole = (point ?? bytes.count) - start
        let hasZero = bytes[start] == UInt8(ascii: "0")
        // What needs a closer look is rare.
        guard digits <= 15, !hasZero || whole == 1, value != 0 else {
            self = NumberForm(Array(bytes))
            return
        }
        guard point != nil else {
            self = .integer(isNegative ? -value : value)
            return
        }
        let fraction = digits - whole
        guard fraction > 0, !hasZero, bytes[bytes.count - 1] != UInt8(ascii: "0") || fraction == 1 else {
            self = NumberForm(Array(bytes))
            return
        }
        // Both are exact, so the quotient is the double that is nearest to the number.
        let number = Double(value) / NumberForm.powers[fraction]
        self = .real(isNegative ? -number : number)
    }

    /// Powers of ten, which a double holds exactly.
    private static let powers: [Double] = [
        1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
    ]

    /// Whether SQLite would take a text for a number: digits, perhaps with a sign, a point, an exponent and blanks around.
    static func spellsNumber(_ bytes: UnsafeRawBufferPointer) -> Bool {
        let isBlank = { (byte: UInt8) in byte == UInt8(ascii: " ") || (9...13).contains(byte) }
        var rest = bytes.drop(while: isBlank)
        while let last = rest.last, isBlank(last) { rest.removeLast() }
        if rest.first == UInt8(ascii: "-") || rest.first == UInt8(ascii: "+") { rest = rest.dropFirst() }
        let whole = rest.prefix { $0.isDigit }.count
        rest = rest.dropFirst(whole)
        var fraction = 0
        if rest.first == UInt8(ascii: ".") {
            fraction = rest.dropFirst().prefix { $0.isDigit }.count
            rest = rest.dropFirst(fraction + 1)
        }
        guard whole + fraction > 0 else { return false }
        guard rest.first.map({ $0 | 0x20 }) == UInt8(ascii: "e") else { return rest.isEmpty }
        rest = rest.dropFirst()
        if rest.first == UInt8(ascii: "-") || rest.first == UInt8(ascii: "+") { rest = rest.dropFirst() }
        return !rest.isEmpty && rest.allSatisfy(\.isDigit)
    }

    /// Whether a numeric column of this type certainly keeps the value. This quick check covers nearly all values.
    func isKept(in type: ColumnType) -> Bool {
        switch self {
        case .integer: type != .real
        case .real: true
        case .text: false
        }
    }

    /// Whether a numeric column keeps the value: as the same number or, if it is not a number, as text.
    ///
    /// SQLite converts every text that spells a number, such as 007, 1.10 and 1e400, even if that changes it.
    /// https://www.sqlite.org/datatype3.html#type_affinity
    static func isKept(_ bytes: ArraySlice<UInt8>, asReal: Bool) -> Bool {
        let isBlank = { (byte: UInt8) in byte == UInt8(ascii: " ") || (9...13).contains(byte) }
        let start = bytes.drop(while: isBlank)
        let spelled = start.prefix(start.lastIndex { !isBlank($0) }.map { $0 - start.startIndex + 1 } ?? 0)
        let isSigned = spelled.first == UInt8(ascii: "-") || spelled.first == UInt8(ascii: "+")
        let unsigned = isSigned ? spelled.dropFirst() : spelled
        let whole = unsigned.prefix { $0.isDigit }
        var rest = unsigned.dropFirst(whole.count)
        var digits = Array(whole)
        let isWhole = rest.isEmpty
        if rest.first == UInt8(ascii: ".") {
            let fraction = rest.dropFirst().prefix { $0.isDigit }
            digits += fraction
            rest = rest.dropFirst(fraction.count + 1)
        }
        guard !digits.isEmpty else { return true }
        if rest.first.map({ $0 | 0x20 }) == UInt8(ascii: "e") {
            rest = rest.dropFirst()
            if rest.first == UInt8(ascii: "-") || rest.first == UInt8(ascii: "+") { rest = rest.dropFirst() }
            let exponent = rest.prefix { $0.isDigit }
            guard !exponent.isEmpty else { return true }
            rest = rest.dropFirst(exponent.count)
        }
        guard rest.isEmpty else { return true }
        let isZero = { (digit: UInt8) in digit == UInt8(ascii: "0") }
        let significant = digits.drop(while: isZero)
        guard let last = significant.lastIndex(where: { !isZero($0) }) else { return true }
        let text = String(decoding: spelled, as: UTF8.self)
        if isWhole, !asReal, Int64(text) != nil { return true }
        let kept = significant[...last]
        // More than 40 significant digits are not kept by a double.
        guard let value = Double(text), value.isFinite, value != 0, kept.count <= 40 else { return false }
        // A fraction may be rounded, but the digits before the point must not change.
        if !isWhole, whole.drop(while: isZero).count <= 15 { return true }
        let printed = String(format: "%.*e", kept.count - 1, value.magnitude)
        return printed.utf8.prefix { $0 != UInt8(ascii: "e") }.filter(\.isDigit).elementsEqual(kept)
    }

    /// The value to bind. `text` is the text of the bytes.
    func bindable(text: String) -> Any {
        switch self {
        case .integer(let value): value
        case .real(let value): value
        case .text: text
        }
    }
}

extension UInt8 {
    fileprivate var isDigit: Bool { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(self) }
}
