import Foundation

/// One mutant, before the tests that could notice it.
struct Trial {
    enum Outcome {
        case found(by: String)
        case survived
        /// No suite comes to the place, or to where it makes a difference.
        case notReached
    }

    let mutant: Mutant
    let suites: Suites

    func run() throws -> Outcome {
        var left = suites.thatCouldNotice(mutant)
        guard !left.isEmpty else { return .notReached }
        // First some that are near, then all others together, because they run side by side.
        while !left.isEmpty {
            var batch: [Suites.Suite] = []
            let isFirst = left.count == suites.thatCouldNotice(mutant).count
            let budget = isFirst ? 10.0 : .infinity
            var seconds = 0.0
            while let next = left.first, batch.isEmpty || seconds + next.seconds <= budget {
                batch.append(left.removeFirst())
                seconds += next.seconds
            }
            if let by = try failure(of: batch, seconds: seconds) { return .found(by: by) }
        }
        return .survived
    }

    /// What failed, and fails again.
    private func failure(of batch: [Suites.Suite], seconds: Double) throws -> String? {
        let limit = 30 + 4 * seconds
        let names = batch.map(\.name)
        var failed: String?
        let child = try Child.run(
            suites.arguments(Suites.filter(names)),
            in: suites.workshop.copy,
            environment: ["SEALEDDB_MUTANT": "\(mutant.id)"],
            limit: limit
        ) { line in
            guard line.contains("✘"), line.contains("recorded an issue") else { return false }
            failed = String(line)
            return true
        }
        switch child.end {
        case .status(0): return nil
        case .timeLimit:
            return "no end within \(Int(limit)) s (\(names.count == 1 ? names[0] : "\(names.count) suites"))"
        case .crash: return "a crash (\(names.count == 1 ? names[0] : "\(names.count) suites"))"
        case .status(let status): return failed ?? "status \(status)"
        case .cut: break
        }
        guard let failed else { return "?" }
        // A test that fails for another reason must not stand for one that notices. If it can be told which it was, it
        // has to fail again.
        guard let file = failed.firstMatch(of: /at ([A-Za-z0-9_+]+)\.swift/)?.output.1,
            let suite = names.first(where: { $0.hasSuffix("." + file) }), names.count > 1
        else { return shortened(failed) }
        let again = try Child.run(
            suites.arguments(Suites.filter([suite])),
            in: suites.workshop.copy,
            environment: ["SEALEDDB_MUTANT": "\(mutant.id)"],
            limit: limit
        ) { $0.contains("✘") && $0.contains("recorded an issue") }
        if again.end != .status(0) { return shortened(failed) }
        say("  \(mutant.id): \(suite) failed once, and not alone: not counted.")
        let others = batch.filter { $0.name != suite }
        return try failure(of: others, seconds: seconds)
    }

    private func shortened(_ line: String) -> String {
        let text = line.firstMatch(of: /Test (.+?) recorded an issue.*? at ([A-Za-z0-9_+]+\.swift:[0-9]+)/)
        return text.map { "\($0.output.1) at \($0.output.2)" } ?? String(line.prefix(160))
    }
}
