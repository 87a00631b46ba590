import Foundation

/// What all trials came to.
struct Report {
    private var counts: [String: [Trial.Kind: Int]] = [:]
    private var order: [String] = []
    private(set) var losses: [TrialResult] = []
    private(set) var crashesBeneath = 0
    private(set) var caughtMutants = 0
    private(set) var mutants = 0

    mutating func add(_ results: [TrialResult]) {
        for result in results {
            if counts[result.operation] == nil { order.append(result.operation) }
            // A fault that the run did not get to proves nothing, but what it found may be wrong all the same.
            if result.fired { counts[result.operation, default: [:]][result.kind, default: 0] += 1 }
            if result.crashedBeneath { crashesBeneath += 1 }
            if !result.problems.isEmpty { losses.append(result) }
        }
    }

    mutating func add(mutantCaught: Bool) {
        mutants += 1
        if mutantCaught { caughtMutants += 1 }
    }

    var isGood: Bool { losses.isEmpty && caughtMutants == mutants }

    func count(_ kind: Trial.Kind) -> Int { counts.values.reduce(0) { $0 + ($1[kind] ?? 0) } }

    /// A table in Markdown, a line for each operation.
    var table: String {
        let columns = ["operation"] + Trial.Kind.columns.map(\.rawValue) + ["lost"]
        var rows = order.map { operation in
            let lost = losses.count { $0.operation == operation }
            return [operation] + Trial.Kind.columns.map { "\(counts[operation]?[$0] ?? 0)" } + ["\(lost)"]
        }
        rows.append(["all"] + Trial.Kind.columns.map { "\(count($0))" } + ["\(losses.count)"])
        let lines = [columns, columns.map { _ in "---" }] + rows
        return lines.map { "| " + $0.joined(separator: " | ") + " |" }.joined(separator: "\n")
    }

    func summary(seconds: Int) -> String {
        let counted = Trial.Kind.columns.map { "\(count($0)) \($0.rawValue)" }.joined(separator: ", ")
        let crashes = crashesBeneath > 0 ? " (of which \(crashesBeneath) crashed SQLCipher or Dispatch)" : ""
        return
            "faults: \(counted)\(crashes); \(caughtMutants) of \(mutants) mutants caught; \(losses.count) lost; \(seconds) s"
    }
}
