/// One operation of one client: all of it is decided before it runs, and nothing of it depends on what happens.
struct Step: Sendable {
    /// Within the program of the client in this round.
    let number: Int
    /// Over all rounds.
    let id: Int
    let operation: Operation
    let changes: [Change]
    let ending: Ending
    /// The number of the key that the store has afterwards.
    let newKey: Int?
    /// For the choices that are the operation's own.
    let random: Random

    enum Ending: Sendable {
        case commit
        /// The block throws at its end.
        case failure
    }

    /// Whether the change is told in the ledger.
    var isLedgered: Bool { operation.isLedgered && !changes.isEmpty }
}

extension Step: CustomStringConvertible {
    var description: String {
        var text = "\(number) \(operation.name)"
        if ending == .failure { text += " that fails" }
        if let newKey { text += " to key \(newKey)" }
        if !changes.isEmpty { text += ": " + changes.prefix(6).map { "\($0)" }.joined(separator: ", ") }
        return changes.count > 6 ? text + ", and \(changes.count - 6) more" : text
    }
}
