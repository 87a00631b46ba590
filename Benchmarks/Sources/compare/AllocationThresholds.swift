import Foundation
import Wire

/// How often SealedDB may allocate for a unit of work, beyond what C does with the same engine. Counts, unlike times,
/// are the same on every machine.
struct AllocationThresholds {
    let directory: String

    /// Where the count does not depend on when SQLite writes a page.
    private static let groups: Set = ["Bind", "Read", "Point queries", "Functions and full text"]
    /// Growing arrays and the like make a count move by a little.
    private static let tolerance = 0.5

    private func path(_ engine: EngineKind) -> String { "\(directory)/\(engine.rawValue).json" }

    private func counts(_ report: Report, _ engine: EngineKind) -> [String: Double] {
        var result: [String: Double] = [:]
        for row in report.rows where Self.groups.contains(row.info.group) {
            guard let sealed = row.series(engine, .sealed), let floor = row.series(engine, .c) else { continue }
            result[row.info.id] = (max(sealed.allocations - floor.allocations, 0) * 10).rounded() / 10
        }
        return result
    }

    func update(_ report: Report) throws {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.prettyPrinted, .sortedKeys]
        for engine in EngineKind.allCases {
            let data = try encoder.encode(counts(report, engine))
            try (data + Data("\n".utf8)).write(to: URL(fileURLWithPath: path(engine)))
        }
    }

    /// What is above its threshold, or has none.
    func violations(_ report: Report) throws -> [String] {
        try EngineKind.allCases.flatMap { engine in
            let data = try Data(contentsOf: URL(fileURLWithPath: path(engine)))
            let thresholds = try JSONDecoder().decode([String: Double].self, from: data)
            return counts(report, engine).sorted { $0.key < $1.key }.compactMap { id, count in
                guard let threshold = thresholds[id] else { return "\(engine.rawValue) \(id): no threshold" }
                guard count > threshold + Self.tolerance else { return nil }
                return "\(engine.rawValue) \(id): \(count) allocations beyond C's, and \(threshold) are allowed"
            }
        }
    }
}
