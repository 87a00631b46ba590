import Foundation
import Wire

/// Runs the rounds.
struct Comparison {
    let options: Options
    let packageFile: String?
    private let filters: [Regex<AnyRegexOutput>]

    /// What has been measured, by case, engine and subject: a list of samples for each round.
    private var samples: [String: [Key: [[Sample]]]] = [:]
    private(set) var cases: [CaseInfo] = []
    /// The ids that each engine's worker knows.
    private var known: [EngineKind: Set<String>] = [:]
    private(set) var engines: [EngineKind: EngineInfo] = [:]

    struct Key: Hashable {
        let engine: EngineKind
        let subject: Subject
    }

    init(options: Options, packageFile: String?) throws {
        self.options = options
        self.packageFile = packageFile
        filters = try options.filters.map { try Regex($0) }
    }

    private func worker(_ engine: EngineKind, _ name: String) throws -> WorkerProcess {
        try WorkerProcess(
            engine == .plain ? options.plainWorker : options.encryptedWorker,
            directory: "\(options.directory)/\(name)",
            isQuick: options.isQuick,
            packageFile: packageFile
        )
    }

    mutating func run(progress: (String) -> Void) throws {
        for round in 0..<options.roundCount {
            // New processes each round: where things lie in memory moves times, too.
            var workers: [EngineKind: WorkerProcess] = [:]
            for engine in options.engines { workers[engine] = try worker(engine, engine.rawValue) }
            var lockingWorker: WorkerProcess?
            if round == 0 {
                // The encrypted build has all cases, and the plain one most of them.
                for (engine, worker) in workers.sorted(by: { $0.key.rawValue < $1.key.rawValue }) {
                    engines[engine] = try worker.engine()
                    let all = try worker.cases()
                    known[engine] = Set(all.map(\.id))
                    if cases.isEmpty { cases = all.filter(isSelected) }
                }
            }
            for (number, info) in cases.enumerated() {
                progress("round \(round + 1) of \(options.roundCount), \(number + 1) of \(cases.count): \(info.id)")
                var workers = workers
                if info.needsMemorySecurity, workers[.encrypted] != nil {
                    let worker = try lockingWorker ?? self.worker(.encrypted, "locking")
                    lockingWorker = worker
                    workers[.encrypted] = worker
                }
                try measure(info, round: round, workers: workers)
            }
        }
    }

    /// Cases in which SealedDB takes part, and those that are about C.
    private func isSelected(_ info: CaseInfo) -> Bool {
        guard info.subjects.contains(.sealed) || info.isForCAlone else { return false }
        return filters.isEmpty || filters.contains { info.id.firstMatch(of: $0) != nil }
    }

    /// One case: a sample of each subject with each engine in turn, and again, in the opposite order.
    private mutating func measure(_ info: CaseInfo, round: Int, workers: [EngineKind: WorkerProcess]) throws {
        var keys: [Key] = []
        // Which engine comes first changes with the round.
        for engine in round.isMultiple(of: 2) ? EngineKind.allCases : EngineKind.allCases.reversed() {
            // The plain build has no part in some cases about keys.
            guard let worker = workers[engine], known[engine]?.contains(info.id) == true else { continue }
            do {
                keys += try worker.begin(info.id, sampleNanoseconds: options.sampleNanoseconds)
                    .map { Key(engine: engine, subject: $0) }
            } catch {
                throw WorkerError("\(info.id), \(engine.rawValue): \(error)")
            }
        }
        // Subjects next to each other are those that are compared.
        keys.sort { $0.subject.rawValue < $1.subject.rawValue }
        var taken: [Key: [Sample]] = [:]
        for turn in 0..<options.samples {
            let start = DispatchTime.now().uptimeNanoseconds
            for key in turn.isMultiple(of: 2) ? keys : keys.reversed() {
                guard let worker = workers[key.engine] else { continue }
                taken[key, default: []].append(try worker.sample(key.subject))
            }
            // Long work is its own average.
            if DispatchTime.now().uptimeNanoseconds - start > 500_000_000 { break }
        }
        for (key, list) in taken { samples[info.id, default: [:]][key, default: []].append(list) }
        for worker in workers.values { try worker.end() }
    }

    // MARK: Results

    var rows: [Report.Row] {
        cases.map { info in
            let taken = samples[info.id] ?? [:]
            let series = EngineKind.allCases.flatMap { engine in
                Subject.allCases.compactMap { subject -> Report.Series? in
                    guard let rounds = taken[Key(engine: engine, subject: subject)] else { return nil }
                    return Report.Series(
                        engine: engine,
                        subject: subject,
                        nanoseconds: Spread(rounds.map { $0.map(\.nanoseconds).median }),
                        allocations: (rounds.flatMap { $0 }.map(\.allocations).median * 100).rounded() / 100
                    )
                }
            }
            let ratios = RatioKind.allCases.compactMap { kind -> Report.Ratio? in
                let (first, second) = kind.sides
                guard let top = taken[Key(engine: first.engine, subject: first.subject)],
                    let bottom = taken[Key(engine: second.engine, subject: second.subject)]
                else { return nil }
                // Sample by sample, taken moments apart, so that what slows the machine slows both.
                let rounds = zip(top, bottom).map { top, bottom in
                    zip(top, bottom).map { $0.nanoseconds / $1.nanoseconds }.median
                }
                return Report.Ratio(kind: kind, spread: Spread(rounds))
            }
            return Report.Row(info: info, series: series, ratios: ratios)
        }
    }
}

extension CaseInfo {
    /// The physical limit.
    var isForCAlone: Bool { group == "Physical limit" }
}
