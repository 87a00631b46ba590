import Foundation

/// A drawing that is put together from the top down. Colours come from the page's style sheet, by class.
struct SVG {
    let width: Double
    let height: Double
    private var body = ""

    init(width: Double, height: Double) {
        self.width = width
        self.height = height
    }

    func text(label: String) -> String {
        """
        <svg viewBox="0 0 \(number(width)) \(number(height))" role="img" aria-label="\(escaped(label))">\(body)</svg>
        """
    }

    mutating func rectangle(
        _ x: Double,
        _ y: Double,
        _ width: Double,
        _ height: Double,
        class name: String,
        tip: String
    ) {
        body += """
            <rect class="\(name)" x="\(number(x))" y="\(number(y))" width="\(number(max(width, 0.5)))" \
            height="\(number(height))" rx="2"><title>\(escaped(tip))</title></rect>
            """
    }

    mutating func line(_ x1: Double, _ y1: Double, _ x2: Double, _ y2: Double, class name: String) {
        body += """
            <line class="\(name)" x1="\(number(x1))" y1="\(number(y1))" x2="\(number(x2))" y2="\(number(y2))"/>
            """
    }

    mutating func polyline(_ points: [(x: Double, y: Double)], class name: String) {
        let list = points.map { "\(number($0.x)),\(number($0.y))" }.joined(separator: " ")
        body += "<polyline class=\"\(name)\" points=\"\(list)\"/>"
    }

    mutating func dot(_ x: Double, _ y: Double, class name: String, tip: String) {
        body += """
            <circle class="\(name)" cx="\(number(x))" cy="\(number(y))" r="3.5"><title>\(escaped(tip))</title></circle>
            """
    }

    enum Anchor: String { case start, middle, end }

    mutating func label(_ text: String, _ x: Double, _ y: Double, _ anchor: Anchor = .start, class name: String = "") {
        body += """
            <text class="\(name)" x="\(number(x))" y="\(number(y))" text-anchor="\(anchor.rawValue)">\(escaped(text))</text>
            """
    }

    private func number(_ value: Double) -> String {
        let text = String(format: "%.1f", value)
        return text.hasSuffix(".0") ? String(text.dropLast(2)) : text
    }
}

func escaped(_ text: String) -> String {
    text.replacing("&", with: "&amp;").replacing("<", with: "&lt;").replacing(">", with: "&gt;")
        .replacing("\"", with: "&quot;")
}

/// Where values go on an axis.
struct Scale {
    let isLogarithmic: Bool
    let low: Double
    let high: Double
    let start: Double
    let end: Double

    /// An axis that holds the values, and begins and ends with a round number.
    init(_ values: [Double], isLogarithmic: Bool, from start: Double, to end: Double) {
        let values = values.filter { $0.isFinite && (!isLogarithmic || $0 > 0) }
        let least = values.min() ?? 1
        let most = values.max() ?? 2
        self.isLogarithmic = isLogarithmic
        self.start = start
        self.end = end
        if isLogarithmic {
            low = least * 0.88
            high = most * 1.15
        } else {
            low = 0
            high = most * 1.08
        }
    }

    func position(_ value: Double) -> Double {
        let part =
            isLogarithmic
            ? (log(max(value, low)) - log(low)) / (log(high) - log(low)) : (value - low) / (high - low)
        return start + min(max(part, 0), 1) * (end - start)
    }

    /// Round numbers within the axis, not too many.
    var ticks: [Double] {
        guard isLogarithmic else {
            let step = Self.roundUp((high - low) / 6)
            return stride(from: 0, through: high, by: step).map { $0 }
        }
        let decades = Int(log10(low).rounded(.down))...Int(log10(high).rounded(.up))
        let span = log10(high / low)
        let factors: [Double] = span < 1 ? [1, 1.5, 2, 3, 4, 5, 6, 8] : span < 2.2 ? [1, 2, 5] : [1]
        return decades.flatMap { decade in factors.map { $0 * pow(10, Double(decade)) } }.filter {
            $0 >= low && $0 <= high
        }
    }

    private static func roundUp(_ value: Double) -> Double {
        let size = pow(10, log10(value).rounded(.down))
        return ([1, 2, 2.5, 5, 10].first { $0 * size >= value } ?? 10) * size
    }
}
