/// Figures of one or many programs.
struct Report: Sendable {
    var programs = 0
    var rounds = 0
    var kills = 0
    var operations: [String: [StoreModel.Outcome: Int]] = [:]
    var acknowledgedWrites = 0
    var rotations = 0
    var failedCalls = 0
    /// Of the store at the end of a round.
    var largestSize: Int64 = 0
    /// Programs after which something was lost, or shown.
    var lost = 0

    mutating func count(_ step: Step, _ outcome: StoreModel.Outcome) {
        operations[step.operation.name, default: [:]][outcome, default: 0] += 1
        guard outcome == .done else { return }
        if !step.changes.isEmpty { acknowledgedWrites += 1 }
        if step.newKey != nil { rotations += 1 }
    }

    static func += (total: inout Report, other: Report) {
        total.programs += other.programs
        total.rounds += other.rounds
        total.kills += other.kills
        total.acknowledgedWrites += other.acknowledgedWrites
        total.rotations += other.rotations
        total.failedCalls += other.failedCalls
        total.largestSize = max(total.largestSize, other.largestSize)
        total.lost += other.lost
        total.operations.merge(other.operations) { $0.merging($1, uniquingKeysWith: +) }
    }

    /// The operations that did not succeed even once.
    var missing: [String] {
        Operation.all.map(\.name).filter {
            (operations[$0]?[.done] ?? 0) == 0 && (operations[$0]?[.nothing] ?? 0) == 0
        }
    }

    private var doubts: Int { operations.values.reduce(0) { $0 + ($1[.doubt] ?? 0) } }

    var summary: String {
        let count = operations.values.reduce(0) { $0 + $1.values.reduce(0, +) }
        return """
            \(programs) programs, \(rounds) rounds, \(count) operations, \(acknowledgedWrites) acknowledged writes, \
            \(rotations) rotations, \(kills) kills, \(failedCalls) failed calls, \(doubts) steps in doubt, stores of up to \
            \(largestSize >> 20) MiB, \(missing.count) kinds never ran, \(lost) lost
            """
    }

    var table: String {
        operations.sorted { $0.key < $1.key }.map { name, outcomes in
            let padded = name + String(repeating: " ", count: max(1, 32 - name.count))
            return padded
                + "\(outcomes[.done] ?? 0) done, \(outcomes[.nothing] ?? 0) undone, \(outcomes[.doubt] ?? 0) in doubt"
        }.joined(separator: "\n")
    }
}
