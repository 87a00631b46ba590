import Foundation

/// How numbers are written in all reports.
enum Format {
    /// Three digits that count.
    static func number(_ value: Double) -> String {
        guard value.isFinite else { return "–" }
        let size = abs(value)
        let digits = size >= 100 ? 0 : size >= 10 ? 1 : size >= 1 ? 2 : 3
        return String(format: "%.\(digits)f", value)
    }

    static func time(nanoseconds: Double) -> String {
        switch nanoseconds {
        case ..<1e3: "\(number(nanoseconds)) ns"
        case ..<1e6: "\(number(nanoseconds / 1e3)) µs"
        case ..<1e9: "\(number(nanoseconds / 1e6)) ms"
        default: "\(number(nanoseconds / 1e9)) s"
        }
    }

    /// Without zeros that say nothing, for axes.
    static func tick(_ value: Double) -> String {
        let text = count(value)
        guard text.contains(".") else { return text }
        return String(text.reversed().drop { $0 == "0" }.drop { $0 == "." }.reversed())
    }

    /// Thousands apart.
    static func count(_ value: Double) -> String {
        guard value >= 1000 else { return number(value) }
        let digits = String(format: "%.0f", value.rounded(significantDigits: 3))
        var result = ""
        for (index, digit) in digits.enumerated() {
            if index > 0, (digits.count - index).isMultiple(of: 3) { result += "," }
            result.append(digit)
        }
        return result
    }

    /// Such as `1.23 (1.20–1.31)`.
    static func ratio(_ spread: Spread?) -> String {
        guard let spread else { return "" }
        guard spread.rounds.count > 1 else { return count(spread.median) }
        return "\(count(spread.median)) (\(count(spread.low))–\(count(spread.high)))"
    }
}

extension String {
    func padded(to width: Int, onTheLeft: Bool = false) -> String {
        let padding = String(repeating: " ", count: max(0, width - count))
        return onTheLeft ? padding + self : self + padding
    }
}
