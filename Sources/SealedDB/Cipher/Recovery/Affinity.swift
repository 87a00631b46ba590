/// How SQLite converts values for a column. <https://www.sqlite.org/datatype3.html#determination_of_column_affinity>
enum Affinity {
    case integer, text, blob, real, numeric

    /// - Parameter type: the declared type, in lower case.
    init(ofType type: String, isStrict: Bool) {
        func has(_ parts: String...) -> Bool { parts.contains { Array(type.utf8).contains(Array($0.utf8)) } }
        if has("int") {
            self = .integer
        } else if has("char", "clob", "text") {
            self = .text
        } else if has("blob") || type.isEmpty || isStrict && type.isSame(as: "any") {
            self = .blob
        } else {
            self = has("real", "floa", "doub") ? .real : .numeric
        }
    }

    /// Whether a column would hold another value than this one. What SQLite has stored in the column it would store
    /// again, so this finds only values that are older than the type.
    func changes(_ value: SalvagedValue, _ encoding: SalvagedEncoding) -> Bool {
        switch (self, value) {
        case (.text, .integer), (.text, .real): return true
        case (.integer, .real(let value)), (.numeric, .real(let value)):
            return value > -0x1p63 && value < 0x1p63 && value == value.rounded(.towardZero)
        case (.integer, .text), (.numeric, .text), (.real, .text):
            return value.text(encoding).map(Affinity.isNumber) ?? false
        default: return false
        }
    }

    /// Whether SQLite takes a text for a number: blanks around it do not count, and there are no hexadecimal digits.
    private static func isNumber(_ text: String) -> Bool {
        let blanks: [UInt8] = [9, 10, 11, 12, 13, 32]
        var bytes = Array(text.utf8.drop { blanks.contains($0) })
        while let last = bytes.last, blanks.contains(last) { bytes.removeLast() }
        let digits = UInt8(ascii: "0")...UInt8(ascii: "9")
        guard bytes.allSatisfy({ digits.contains($0) || "+-.eE".utf8.contains($0) }),
            bytes.contains(where: digits.contains)
        else { return false }
        return Double(String(decoding: bytes, as: UTF8.self)) != nil
    }
}
