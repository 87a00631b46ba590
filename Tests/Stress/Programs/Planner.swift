/// Draws the rounds of a program from its seed.
struct Planner {
    let seed: UInt64
    private let scale: Scale
    private let steps: Int
    /// Every kind of round once, with every operation, and without kills.
    private let isTour: Bool

    init(seed: UInt64, scale: Scale?, steps: Int) {
        self.seed = seed
        var random = Random(seed: seed, 3)
        self.scale = scale ?? random.pick([.small, .small, .medium, .medium, .large])
        self.steps = steps
        isTour = false
    }

    /// The tour.
    init(tour seed: UInt64) {
        self.seed = seed
        scale = .small
        steps = Role.allCases.map { Operation.deck(of: $0).count }.max() ?? 0
        isTour = true
    }

    static let tourRounds = ServiceKind.allCases.count

    /// How the program is asked for again.
    var options: String { isTour ? "--tour" : "--steps \(steps)" }

    func round(_ number: Int, deadline: Double) -> RoundPlan {
        var random = Random(seed: seed, 4, number)
        var clients: [ClientPlan] = []
        for id in 1...random.int(1..<5) { clients.append(ClientPlan(id: id, role: .writer, steps: steps)) }
        clients.append(ClientPlan(id: 10, role: .reader, steps: steps))
        clients.append(ClientPlan(id: 11, role: .janitor, steps: isTour ? steps : steps / 2 + 1))
        clients.append(ClientPlan(id: 12, role: .keeper, steps: steps / 5 + 1))
        let kills = random.oneIn(3) && !isTour
        return RoundPlan(
            seed: seed,
            number: number,
            scale: scale,
            service: ServiceKind.allCases[(number + (isTour ? 0 : random.int(0..<2))) % 2],
            clients: clients,
            killsAfter: kills ? random.int(1..<steps * clients.count) : nil,
            deadline: deadline
        )
    }
}
