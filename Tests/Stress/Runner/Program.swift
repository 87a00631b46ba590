import Foundation

/// One store through all its rounds: runs them, hears what was acknowledged, and compares.
struct Program {
    private var seed: UInt64 { planner.seed }
    let planner: Planner
    let place: Place
    private let disk: LoopDisk?
    let deadline: Double
    private var model = StoreModel(keys: [0])
    /// What is known of the last round, for the report of a failure.
    private(set) var recent: [String] = []
    var report = Report()

    init(_ planner: Planner, root: String, deadline: Double) {
        self.planner = planner
        self.deadline = deadline
        let place = Place(root: root)
        self.place = place
        disk = planner.fileSystem.map { LoopDisk(kind: $0, path: place.disk) }
    }

    /// - Throws: ``Violation``.
    mutating func run(rounds: Int) throws {
        report.programs = 1
        // What an earlier run of this seed has left.
        if FileManager.default.fileExists(atPath: place.root) {
            if disk?.isMounted == true { try disk?.remove() }
            try FileManager.default.removeItem(atPath: place.root)
        }
        try disk?.make()
        try place.make(seed: seed)
        let preparation = try ChildProcess([["prepare", place.root]])
        guard preparation.wait() == [0] else { throw Violation("The store could not be made.") }
        try disk?.sync()
        for number in 0..<rounds where Date().timeIntervalSince1970 < deadline {
            try round(planner.round(number, deadline: deadline))
        }
        try disk?.remove()
    }

    private mutating func round(_ plan: RoundPlan) throws {
        recent = ["round \(plan.number): \(plan.composition), \(plan.clients.count) clients, \(plan.scale)"]
        place.currentKey = model.keys[0]
        try JSONEncoder().encode(plan).write(to: URL(fileURLWithPath: place.planFile))
        try JSONEncoder().encode(model).write(to: URL(fileURLWithPath: place.modelFile))
        if plan.processes[0].faults != nil { try FaultyCalls.build(in: place.root) }
        let child = try ChildProcess(
            plan.processes.indices.map { ["work", place.root, "\($0)"] },
            environment: plan.processes[0].faults?.environment(place) ?? [:]
        )
        var programs = Dictionary(
            uniqueKeysWithValues: plan.clients.map { client in
                (
                    client.id,
                    Generator(
                        seed: seed,
                        round: plan.number,
                        client: client,
                        scale: plan.scale,
                        keyCount: Place.keyCount
                    )
                )
            }
        )
        var heard = 0
        var isOver = false
        // Nothing is known of their next steps.
        var doubtful: Set<Int> = []
        while let line = try child.nextLine() {
            heard += 1
            if heard == plan.killsAfter {
                isOver = true
                if let disk {
                    // Who goes on while the power fails is told of success: a sync that the end of the file system overtakes
                    // may say so, and no machine without power says anything.
                    child.stopAll()
                    try disk.cut()
                    child.killAll()
                } else {
                    child.kill()
                }
            }
            guard let parsed = Acknowledgements.parse(line[...]) else {
                throw Violation("A line that nobody wrote: \(line)")
            }
            switch parsed {
            // Without power everything fails.
            case .failure(_, false, _) where isOver && disk != nil: continue
            case .failure(let client, _, let text):
                throw Violation("Client \(client) failed in \(text)")
            case .step(let client, let number, let outcome, let ids):
                guard let step = programs[client]?.next(), step.number == number else {
                    throw Violation("Client \(client) is not where it should be: \(line)")
                }
                recent.append("client \(client): \(step) -> \(outcome)")
                model.apply(outcome, of: step, by: client, ids: ids)
                report.count(step, outcome)
                if outcome == .doubt { doubtful.insert(client) }
            }
        }
        let statuses = child.wait()
        if let faults = plan.processes[0].faults {
            let failed = try faults.failed(place)
            recent += failed.map { "failed: \($0)" }
            report.failedCalls += failed.count
            if faults.areCertain, failed.isEmpty { throw Violation("No call failed where one should.") }
        }
        let isCut = isOver && disk != nil
        let isKilled = isCut || isOver && statuses[0] == -SIGKILL
        guard isCut || statuses.dropFirst().allSatisfy({ $0 == 0 }) && (statuses[0] == 0 || isKilled) else {
            throw Violation("The processes ended with \(statuses).")
        }
        if isKilled {
            report.kills += 1
            let stopped = isCut ? plan.clients : plan.processes[0].clients
            for client in stopped where !doubtful.contains(client.id) {
                guard let step = programs[client.id]?.next(), step.number < client.steps else { continue }
                recent.append("client \(client.id): \(step) -> cut off")
                model.apply(.doubt, of: step, by: client.id)
            }
        }
        report.rounds += 1
        if isCut { try disk?.restart() }
        // What cannot be removed is left for the next one, and nobody is told.
        let isInterrupted = isKilled || plan.processes[0].faults != nil
        if isInterrupted { try place.keepState() }
        try StoreCheck(place: place, isInterrupted: isInterrupted).run(&model)
        report.largestSize = max(report.largestSize, try place.storeSize())
    }
}
