import Foundation

/// One mutant, before the tests that could notice it.
struct Trial {
    enum Outcome {
        case found(by: String)
        case survived
        /// No test comes to the place, or to where it makes a difference.
        case notReached
    }

    let mutant: Mutant
    let survey: Survey
    /// Whether what no test finds is tried with the fault harness.
    let includesFaults: Bool
    /// Whether the slow tests are left out.
    let isQuick: Bool

    func run() throws -> Outcome {
        var left = survey.thatCouldNotice(mutant).filter { !isQuick || !$0.isSlow }
        guard !left.isEmpty else { return .notReached }
        // First some that are near, then more at a time, because they run side by side; the slow ones at last.
        var budget = 4.0
        var patience = isQuick ? 60.0 : .infinity
        while !left.isEmpty, patience > 0 {
            var batch: [Survey.Test] = []
            var seconds = 0.0
            while let next = left.first,
                batch.isEmpty || seconds + next.seconds <= budget && next.isSlow == batch[0].isSlow
            {
                batch.append(left.removeFirst())
                seconds += next.seconds
            }
            if let by = try failure(of: batch) { return .found(by: by) }
            budget = min(40, 3 * budget)
            // Each test was surveyed in a process of its own; these share one.
            patience -= seconds - Double(batch.count) * survey.startSeconds
        }
        if includesFaults, let by = try loss() { return .found(by: by) }
        return .survived
    }

    /// What the short form of the fault harness finds, where something is killed, fails, or is cut off.
    private func loss() throws -> String? {
        var found: String?
        let child = try Child.run(
            [survey.workshop.copy + "/.build/debug/FaultHarness"]
                + ["power", "kills", "faults"].flatMap { ["--only", $0] },
            in: survey.workshop.copy,
            environment: ["SEALEDDB_MUTANT": "\(mutant.id)"],
            limit: 900
        ) { line in
            if line.hasPrefix("LOST ") { found = String(line) }
            return found != nil
        }
        return found ?? (child.end == .status(0) ? nil : "the fault harness: \(child.end)")
    }

    /// What failed, and fails again: a test that fails for another reason must not stand for one that notices.
    private func failure(of batch: [Survey.Test]) throws -> String? {
        guard !batch.isEmpty, let first = try outcome(of: batch) else { return nil }
        let suspects = batch.filter { first.tests.contains(String($0.function)) }
        guard !suspects.isEmpty else { return first.what }
        // With more time, because the machine may have been busy.
        if let again = try outcome(of: suspects, patience: 3), try !failWithoutMutant(suspects.filter(survey.isOld)) {
            return again.what
        }
        say("  \(mutant.id): \(first.what): not again when alone, or without the mutant, too: not counted.")
        return try failure(of: batch.filter { test in !suspects.contains { $0.name == test.name } })
    }

    /// A test that was surveyed with other sources may fail with these. It must not stand for one that notices.
    private func failWithoutMutant(_ tests: [Survey.Test]) throws -> Bool {
        guard !tests.isEmpty else { return false }
        return try outcome(of: tests, patience: 3, isMutated: false) != nil
    }

    /// What went wrong first, and the tests in which that may have been; `nil` if nothing did.
    private func outcome(
        of batch: [Survey.Test],
        patience: Double = 1,
        isMutated: Bool = true
    ) throws -> (what: String, tests: Set<String>)? {
        let limit = patience * (20 + 3 * batch.reduce(0) { $0 + $1.seconds })
        var failed: (test: String, place: String)?
        let child = try Child.run(
            survey.arguments(batch.map(\.name)),
            in: survey.workshop.copy,
            environment: isMutated ? ["SEALEDDB_MUTANT": "\(mutant.id)"] : [:],
            limit: limit
        ) { line in
            guard let text = line.firstMatch(of: /^✘ Test (.+?) recorded an issue.*? at ([A-Za-z0-9_+]+\.swift:[0-9]+)/)
            else { return false }
            failed = (String(text.output.1), String(text.output.2))
            return true
        }
        if let failed { return ("\(failed.test) at \(failed.place)", [failed.test]) }
        let running = Trial.running(child.output)
        let names = running.sorted().prefix(4).joined(separator: ", ")
        switch child.end {
        case .status(0): return nil
        case .timeLimit: return ("no end within \(Int(limit)) s of \(names)", running)
        case .crash: return ("a crash in \(names)", running)
        case .status(let status): return ("status \(status) in \(names)", running)
        case .cut: return ("?", running)
        }
    }

    /// The tests that have begun and not ended, by what Swift Testing prints.
    private static func running(_ output: String) -> Set<String> {
        var names: Set<String> = []
        for line in output.split(separator: "\n") {
            if let begun = line.firstMatch(of: /^◇ Test ([^ ]+\)) started/) {
                names.insert(String(begun.output.1))
            } else if let ended = line.firstMatch(of: /^[✔✘] Test ([^ ]+\)) .*(passed|failed) after/) {
                names.remove(String(ended.output.1))
            }
        }
        return names
    }
}
