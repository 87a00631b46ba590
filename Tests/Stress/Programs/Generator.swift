/// The program of one client in one round: an endless series of steps that follows from the seed.
///
/// Operations are dealt from a deck, so that each occurs within as many steps as the deck has cards.
struct Generator {
    private let client: Int
    private let round: Int
    private let scale: Scale
    private let keyCount: Int
    private var random: Random
    private let cards: [Operation]
    private var deck: [Operation] = []
    private var number = 0

    init(seed: UInt64, round: Int, client: ClientPlan, scale: Scale, keyCount: Int) {
        self.client = client.id
        self.round = round
        self.scale = scale
        self.keyCount = keyCount
        random = Random(seed: seed, 1, round, client.id)
        cards = Operation.deck(of: client.role)
    }

    /// `nil` if the client's role has no operations.
    mutating func next() -> Step? {
        guard !cards.isEmpty else { return nil }
        if deck.isEmpty { deck = cards.shuffled(using: &random) }
        let operation = deck.removeLast()
        defer { number += 1 }
        return Step(
            number: number,
            id: round * 1_000_000 + number,
            operation: operation,
            changes: operation.plan(&random, scale),
            ending: operation.canFail && random.oneIn(6) ? .failure : .commit,
            newKey: operation.changesKey ? random.int(0..<keyCount) : nil,
            random: Random(seed: random.next())
        )
    }
}
