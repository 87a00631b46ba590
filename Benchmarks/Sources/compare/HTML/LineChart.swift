/// Lines through points with their spread.
struct LineChart {
    struct Line {
        let name: String
        /// The class that gives the colour; `dashed` may follow.
        let style: String
        let points: [(x: Double, y: Spread)]
    }

    var label: String
    var xTitle: String
    var yTitle: String
    var lines: [Line]
    var isLogarithmic: Bool
    var xFormat: (Double) -> String
    var yFormat: (Double) -> String
    /// Where a vertical line with a name stands.
    var mark: (x: Double, name: String)?

    private let width = 520.0
    private let height = 330.0

    var svg: String {
        guard !lines.isEmpty else { return "" }
        var svg = SVG(width: width, height: height)
        let xs = Array(Set(lines.flatMap { $0.points.map(\.x) })).sorted()
        // Places of equal width: what is compared doubles, or grows tenfold.
        func x(_ value: Double) -> Double {
            guard xs.count > 1, let index = xs.firstIndex(of: value) else { return 66 }
            return 66 + Double(index) / Double(xs.count - 1) * (width - 66 - 28)
        }
        let values = lines.flatMap { $0.points.flatMap { [$0.y.low, $0.y.high] } }
        let scale = Scale(values, isLogarithmic: isLogarithmic, from: height - 44, to: 26)
        for tick in scale.ticks {
            let y = scale.position(tick)
            svg.line(58, y, width - 20, y, class: "grid")
            svg.label(yFormat(tick), 52, y + 4, .end, class: "tick")
        }
        for value in xs { svg.label(xFormat(value), x(value), height - 26, .middle, class: "tick") }
        svg.label(yTitle, 8, 14, class: "axis")
        svg.label(xTitle, width - 20, height - 8, .end, class: "axis")
        if let mark {
            svg.line(x(mark.x), 26, x(mark.x), height - 44, class: "mark")
            svg.label(mark.name, x(mark.x) + 5, 36, class: "tick")
        }
        for line in lines {
            let points = line.points.sorted { $0.x < $1.x }
            for point in points {
                let (low, high) = (scale.position(point.y.low), scale.position(point.y.high))
                svg.line(x(point.x), low, x(point.x), high, class: "range \(line.style)")
            }
            svg.polyline(points.map { (x($0.x), scale.position($0.y.median)) }, class: "curve \(line.style)")
            for point in points {
                svg.dot(
                    x(point.x),
                    scale.position(point.y.median),
                    class: "dot \(line.style)",
                    tip: "\(line.name), \(xFormat(point.x)): \(yFormat(point.y.median))"
                )
            }
        }
        return svg.text(label: label) + legend
    }

    private var legend: String {
        let items = lines.map { "<span class=\"key \($0.style)\">\(escaped($0.name))</span>" }
        return "<div class=\"legend\">\(items.joined())</div>"
    }
}

extension Spread {
    /// Of a quantity that is some number divided by this one, such as rows a second.
    func inverted(times factor: Double) -> Spread { Spread(rounds.map { factor / $0 }) }

    func scaled(by factor: Double) -> Spread { Spread(rounds.map { $0 * factor }) }
}
