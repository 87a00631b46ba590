import SealedDB

/// What other commands tell of the key slots of a store, without a key.
struct SlotRemarks: Sendable {
    let count: Int
    let hasRecovery: Bool
    let problems: [String]

    /// - Returns: `nil` if the store has no slots.
    init?(_ path: String) {
        guard KeySlots.exist(beside: path) else { return nil }
        problems = KeySlots.problems(path: path)
        // If neither file can be read, the problems say so.
        let report = try? KeySlots.unverifiedList(path: path)
        count = report?.slots.count ?? 0
        hasRecovery = report?.hasRecovery ?? false
    }

    var text: String {
        ([count == 1 ? "1 slot" : "\(count) slots", hasRecovery ? "one for recovery" : "none for recovery"] + problems)
            .joined(separator: "; ")
    }

    /// What should be done about them, in lines.
    func lines(_ store: String) -> [String] {
        let missing = hasRecovery ? [] : ["no key slot is for recovery: sealdb slots add --recovery"]
        return (problems + missing).map { "\(TerminalText.escaped(store)): \(TerminalText.escaped($0))" }
    }
}
