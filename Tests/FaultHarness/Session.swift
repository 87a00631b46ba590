import Foundation

/// One use of the harness: a directory, workers, the operations, and what is done with them.
final class Session {
    private let options: FaultHarness
    private let root: String
    private let pool: Pool
    private let operations: [Operation]
    private let start = DispatchTime.now().uptimeNanoseconds
    private var report = Report()

    var seconds: Int { Int((DispatchTime.now().uptimeNanoseconds - start) / 1_000_000_000) }

    init(_ options: FaultHarness) throws {
        self.options = options
        // In memory where possible: the disk itself is not under test, and failures of it are replayed.
        let base = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : NSTemporaryDirectory()
        var template = Array((base + "/faults-XXXXXX").utf8CString)
        guard mkdtemp(&template) != nil else { throw HarnessError("There is no temporary directory.") }
        root = String(decoding: template.prefix { $0 != 0 }.map(UInt8.init(bitPattern:)), as: UTF8.self)
        let interposer = try Interposer.build(in: root)
        let workers = try (0..<options.workers).map { [root] in try Worker($0, root: root, interposer: interposer) }
        pool = Pool(workers)
        operations = try OperationTable.make(in: workers[0].directory).filter { operation in
            options.trial.map { $0.hasPrefix(operation.id + "/") } ?? operation.id.hasPrefix(options.operation ?? "")
        }
        guard !operations.isEmpty else { throw HarnessError("There is no such operation.") }
    }

    func end() { try? FileManager.default.removeItem(atPath: root) }

    func run() throws -> Report {
        let censuses = try pool.map(operations) { worker, operation in try worker.census(operation) }
        let list = zip(operations, censuses).map { ($0, $1.calls, $1.run) }
        for (operation, calls, run) in list {
            say("\(operation.id): \(calls.count) file-system calls, \(run.allocations) allocations")
        }
        try sweep(.kills, list.flatMap { Sweep.kills($0.0, $0.1) }, short: 950)
        try sweep(.faults, list.flatMap { Sweep.faults($0.0, $0.1) }, short: 3100)
        try sweep(.memory, list.flatMap { Sweep.allocations($0.0, count: $0.2.allocations) }, short: 1050)
        try sweep(.environment, list.flatMap { Sweep.environments($0.0) }, short: 200)
        if wants(.power) { try powerLosses(list.map { ($0.0, $0.1) }) }
        if wants(.load) { try randomKills() }
        if wants(.opinion) { try secondOpinion() }
        if wants(.mutants) { try mutants() }
        return report
    }

    private func wants(_ part: FaultHarness.Part) -> Bool { options.only.isEmpty || options.only.contains(part) }

    private func tell(_ part: FaultHarness.Part, _ results: [TrialResult]) {
        report.add(results)
        let lost = results.count { !$0.problems.isEmpty }
        say("\(part.rawValue): \(results.count { $0.fired }) trials, \(lost) lost, at \(seconds) s")
    }

    // MARK: Parts

    private func sweep(_ part: FaultHarness.Part, _ trials: [Trial], short count: Int) throws {
        guard wants(part) else { return }
        if let name = options.trial {
            let chosen = trials.filter { $0.id == name }
            for trial in chosen { say(try pool.first.trace(trial.operation, trial.plan)) }
            return tell(part, try perform(chosen))
        }
        guard !options.long else { return tell(part, try perform(trials)) }
        var results: [TrialResult] = []
        var left = trials
        // On a busy machine threads that wait for each other make calls which the next run does not make: such trials
        // end before their disturbance, and others take their place.
        while !left.isEmpty, results.count < 3 * count {
            let missing = count - results.count { $0.fired }
            guard missing * 50 > count else { break }
            let chosen = Sweep.sample(left, count: missing, seed: options.seed)
            results += try perform(chosen)
            let taken = Set(chosen.map(\.id))
            left.removeAll { taken.contains($0.id) }
        }
        tell(part, results)
    }

    private func perform(_ trials: [Trial]) throws -> [TrialResult] {
        let isVerbose = options.verbose
        return try pool.map(trials) { worker, trial in
            let result = try worker.perform(trial)
            if isVerbose { say("\(result.id): \(result.reached)\(result.fired ? "" : ", not reached")") }
            return result
        }
    }

    /// Of the whole run, and of runs in which one sync fails.
    private func powerLosses(_ list: [(Operation, [Worker.Call])]) throws {
        let total = options.long ? 24_000 : 3_600
        var runs: [PowerLoss] = []
        for (operation, calls) in list {
            // SQLite does not look whether its own syncs of a directory fail.
            let syncs = calls.filter { call in
                call.isInside && (call.name == "fsync" || call.name == "fdatasync" && call.path != ".")
            }
            let count = total / list.count
            runs.append(
                PowerLoss(operation: operation, count: count * 3 / 2, seed: options.seed, only: options.trial)
            )
            for sync in syncs {
                runs.append(
                    PowerLoss(
                        operation: operation,
                        plan: "fail-sync=\(sync.index) error=\(EIO)",
                        name: "power-after-failed-sync-\(sync.index)",
                        count: count / 2 / syncs.count,
                        seed: options.seed,
                        only: options.trial,
                        // There are hundreds of such runs, and many of their points are those of others.
                        step: options.long ? 1 : 6
                    )
                )
            }
        }
        tell(.power, try pool.map(runs) { worker, run in try run.run(on: worker) }.flatMap { $0 })
    }

    private func randomKills() throws {
        let chains = try (0..<(options.long ? 50 : 8)).map { index in
            try RandomKills(in: pool.first.directory, kills: 20, seed: options.seed &* 1000 &+ UInt64(index))
        }
        guard options.trial == nil, chains[0].operation.id.hasPrefix(options.operation ?? "") else { return }
        tell(.load, try pool.map(chains) { worker, chain in try chain.run(on: worker) }.flatMap { $0 })
    }

    private func mutants() throws {
        guard options.trial == nil else { return }
        let known = operations + [try OperationTable.keyFirst(in: pool.first.directory)]
        let chosen = Mutant.all.compactMap { mutant in
            known.first { $0.id == mutant.operation && $0.id.hasPrefix(options.operation ?? "") }.map { (mutant, $0) }
        }
        let seed = options.seed
        let found = try pool.map(chosen) { worker, pair in
            try pair.0.firstProblem(pair.1, on: worker, seed: seed)
        }
        for ((mutant, operation), result) in zip(chosen, found) {
            report.add(mutantCaught: result != nil)
            let how = result.map { "caught by \($0.id): \($0.problems[0].prefix(100))" } ?? "NOT CAUGHT"
            say("mutant of \(operation.id), \(mutant.name): \(how)")
        }
    }

    private func secondOpinion() throws {
        guard options.trial == nil else { return }
        let opinions = operations.map(SecondOpinion.init)
        let calls = try pool.map(opinions) { worker, opinion in try opinion.calls(on: worker) }
        var points: [(SecondOpinion, SecondOpinion.Call)] = []
        for (opinion, calls) in zip(opinions, calls) { points += calls.map { (opinion, $0) } }
        if !options.long {
            let step = max(1, points.count / 100)
            points = stride(from: Int(options.seed) % step, to: points.count, by: step).map { points[$0] }
        }
        say(
            "opinion: \(points.count) of \(zip(opinions, calls).reduce(0) { $0 + $1.1.count }) system calls under strace"
        )
        var results = try pool.map(points) { worker, point in try point.0.kill(point.1, on: worker) }
        let disks = opinions.flatMap { opinion in
            (options.long ? Array(stride(from: 0, through: 160, by: 4)) : [8, 24, 44]).map { (opinion, $0) }
        }
        let onDisks = try pool.map(disks) { worker, disk in
            try disk.0.onSmallDisk(room: disk.1, isReadOnly: false, on: worker)
        }
        let readOnly = try pool.map(opinions) { worker, opinion in
            try opinion.onSmallDisk(room: 1000, isReadOnly: true, on: worker)
        }
        results += (onDisks + readOnly).compactMap { $0 }
        if readOnly.contains(where: { $0 == nil }) {
            say("opinion: mounting is not allowed here, so no real disk was filled")
        }
        tell(.opinion, results)
    }
}
