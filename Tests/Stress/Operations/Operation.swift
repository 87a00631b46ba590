/// A kind of operation: how it is planned and how it runs.
struct Operation: Sendable {
    let name: String
    /// How many cards of a role's deck it has.
    let weights: [Role: Int]
    var changesKey = false
    /// Whether its changes are one transaction, which has a line in the ledger.
    var isLedgered = false
    var canFail = false
    var plan: @Sendable (inout Random, Scale) -> [Change] = { _, _ in [] }
    /// Throws what the library throws. A return means that all is done, and durable.
    let run: @Sendable (Client, Step) throws -> Void

    static let all: [Operation] =
        Writes.all + Reading.all + Maintenance.all + Settings.all + Schema.all + Tides.all + KeyChanges.all + Copies.all
        + Visits.all + Custody.all + Damage.all

    static func deck(of role: Role) -> [Operation] {
        all.flatMap {
            Array(repeating: $0, count: $0.weights[role] ?? 0)
        }
    }
}

/// How large values and stores become.
enum Scale: String, Codable, CaseIterable, Comparable, Sendable {
    case small, medium, large, huge

    static func < (left: Scale, right: Scale) -> Bool { left.keyCount < right.keyCount }

    var keyCount: Int {
        switch self {
        case .small: 12
        case .medium: 80
        case .large: 400
        case .huge: 800
        }
    }

    func length(_ random: inout Random) -> Int {
        let common = random.int(1..<300)
        switch self {
        case .small: return common
        case .medium: return random.oneIn(6) ? random.int(4_000..<40_000) : common
        case .large, .huge: return random.oneIn(3) ? random.int(20_000..<600_000) : common * 20
        }
    }
}
