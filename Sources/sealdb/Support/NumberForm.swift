/// Recognises numbers in their canonical spelling: those that come out of SQLite as they went in. "007", "1.10" and
/// "+5" are not, because as numbers they would lose something.
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
        // Fifteen digits are what every double keeps; beyond 0.0001 SQLite would write an exponent.
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

    /// As a value to bind; `text` is what the bytes spell.
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
