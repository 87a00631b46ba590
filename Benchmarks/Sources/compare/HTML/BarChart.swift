/// Horizontal bars with their spread, one or more for each label.
struct BarChart {
    struct Bar {
        let value: Spread
        /// The class that gives the colour.
        let style: String
        let tip: String
    }

    var label: String
    var rows: [(label: String, bars: [Bar])]
    /// Bars begin at 1 on a logarithmic axis; otherwise at 0.
    var showsRatios: Bool
    /// Of values that are no ratios.
    var unit = ""

    private let width = 860.0
    private let labelWidth = 320.0
    private let valueWidth = 64.0

    var svg: String {
        guard !rows.isEmpty else { return "" }
        let barHeight = rows.contains { $0.bars.count > 1 } ? 11.0 : 13.0
        let rowHeights = rows.map { Double(max($0.bars.count, 1)) * (barHeight + 3) + 9 }
        let bottom = rowHeights.reduce(22, +)
        var svg = SVG(width: width, height: bottom + 8)
        let spreads = rows.flatMap(\.bars).map(\.value)
        let values = spreads.map(\.low) + spreads.map(\.high) + (showsRatios ? [1] : [])
        let scale = Scale(values, isLogarithmic: showsRatios, from: labelWidth + 10, to: width - valueWidth)
        for tick in scale.ticks {
            let x = scale.position(tick)
            svg.line(x, 18, x, bottom, class: showsRatios && tick == 1 ? "base" : "grid")
            svg.label(showsRatios ? "×" + Format.tick(tick) : Format.tick(tick) + unit, x, 12, .middle, class: "tick")
        }
        var y = 24.0
        for (row, height) in zip(rows, rowHeights) {
            svg.label(row.label, labelWidth, y + height / 2 - 1, .end)
            var barY = y + 2
            for bar in row.bars {
                draw(bar, y: barY, height: barHeight, scale: scale, on: &svg)
                barY += barHeight + 3
            }
            y += height
        }
        return svg.text(label: label)
    }

    private func draw(_ bar: Bar, y: Double, height: Double, scale: Scale, on svg: inout SVG) {
        let origin = scale.position(showsRatios ? 1 : 0)
        let end = scale.position(bar.value.median)
        svg.rectangle(min(origin, end), y, abs(end - origin), height, class: "bar " + bar.style, tip: bar.tip)
        let middle = y + height / 2
        let low = scale.position(bar.value.low)
        let high = scale.position(bar.value.high)
        svg.line(low, middle, high, middle, class: "spread")
        svg.line(low, middle - 3, low, middle + 3, class: "spread")
        svg.line(high, middle - 3, high, middle + 3, class: "spread")
        let value = (showsRatios ? "×" : "") + Format.count(bar.value.median) + unit
        svg.label(value, max(high, end, origin) + 7, middle + 4, class: "value")
    }
}
