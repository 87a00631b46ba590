/// Draws the rounds of a program from its seed.
struct Planner {
    let seed: UInt64
    private let scale: Scale
    private let steps: Int
    /// Every kind of round once, with every operation, and without kills.
    private let isTour: Bool

    private let compositions: [Composition]
    /// On which the stores lie; its power is cut in each round that lasts long enough, but for those of a full disk.
    let fileSystem: LoopDisk.Kind?

    /// - Parameters:
    ///   - scale: `nil` draws one.
    ///   - isQuick: whether it draws no large ones.
    ///   - composition: the only one; `nil` for all.
    init(
        seed: UInt64,
        scale: Scale?,
        isQuick: Bool,
        steps: Int,
        composition: Composition?,
        fileSystem: LoopDisk.Kind?
    ) {
        self.seed = seed
        self.fileSystem = fileSystem
        // The most are those in which most happens.
        compositions = composition.map { [$0] } ?? Composition.allCases + [.queue, .pool, .queue, .pool]
        var random = Random(seed: seed, 3)
        let common: [Scale] = [.small, .medium]
        self.scale = scale ?? random.pick(isQuick ? common : common + common + common + [.large, .large, .huge])
        // Each costs as much as hundreds on a small store.
        self.steps = self.scale == .huge ? steps / 4 : steps
        isTour = false
    }

    /// The tour.
    init(tour seed: UInt64, composition: Composition?) {
        self.seed = seed
        compositions = composition.map { [$0] } ?? Composition.allCases
        fileSystem = nil
        scale = .small
        steps = 0
        isTour = true
    }

    var tourRounds: Int { compositions.count }

    /// How the program is asked for again.
    var options: String { isTour ? "--tour" : "--steps \(steps)" }

    func round(_ number: Int, deadline: Double) -> RoundPlan {
        var random = Random(seed: seed, 4, number)
        let composition = isTour ? compositions[number % compositions.count] : random.pick(compositions)
        let processes = composition.processes(steps: steps, isTour: isTour, &random)
        let total = processes[0].clients.reduce(0) { $0 + $1.steps }
        // A failed write is told as nothing done where the disk is full; after a cut it may be done.
        let cutsPower = fileSystem != nil && composition != .fullDisk
        let kills = (random.oneIn(3) || cutsPower) && !isTour && (fileSystem == nil || cutsPower)
        return RoundPlan(
            seed: seed,
            number: number,
            scale: scale,
            composition: composition,
            processes: processes,
            killsAfter: kills ? random.int(1..<total) : nil,
            deadline: deadline
        )
    }
}
