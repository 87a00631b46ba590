import Foundation

/// Holds two reports against each other: do their ratios agree within the spread that they state?
struct Agreement {
    let first: Report
    let second: Report

    init(_ first: String, _ second: String) throws {
        self.first = try Report(first)
        self.second = try Report(second)
    }

    /// Two ratios agree if their spreads, from the lowest round to the highest, have a value in common.
    var text: String {
        var agreeing = 0
        var lines: [String] = []
        for row in first.rows {
            guard let other = second.row(row.info.id) else { continue }
            for ratio in row.ratios {
                guard let spread = other.ratio(ratio.kind) else { continue }
                if ratio.spread.low <= spread.high && spread.low <= ratio.spread.high {
                    agreeing += 1
                } else {
                    let ratios = "\(Format.ratio(ratio.spread)) and \(Format.ratio(spread))"
                    lines.append("\(row.info.id), \(ratio.kind.rawValue): \(ratios)")
                }
            }
        }
        let total = agreeing + lines.count
        return (["\(agreeing) of \(total) ratios agree within their spreads."] + lines).joined(separator: "\n")
    }
}
