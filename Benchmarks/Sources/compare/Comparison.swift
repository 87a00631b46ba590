import Foundation
import Wire

/// Runs the rounds.
struct Comparison {
    let options: Options
    let packageFile: String?
    private let filters: [Regex<AnyRegexOutput>]

    /// What has been measured: a list of samples for each round.
    private var samples: [Series: [[Sample]]] = [:]
    private(set) var cases: [CaseInfo] = []
    /// The ids that each engine's worker knows.
    private var known: [EngineKind: Set<String>] = [:]
    private(set) var engines: [EngineKind: EngineInfo] = [:]

    struct Series: Hashable {
        let id: String
        let engine: EngineKind
        let subject: Subject
    }

    init(options: Options, packageFile: String?) throws {
        self.options = options
        self.packageFile = packageFile
        filters = try options.filters.map { try Regex($0) }
    }

    private func worker(_ engine: EngineKind, _ name: String, keepsContexts: Bool = true) throws -> WorkerProcess {
        try WorkerProcess(
            engine == .plain ? options.plainWorker : options.encryptedWorker,
            directory: "\(options.directory)/\(name)",
            isQuick: options.isQuick,
            packageFile: packageFile,
            keepsContexts: keepsContexts
        )
    }

    mutating func run(progress: (String) -> Void) throws {
        for round in 0..<options.roundCount {
            // New processes each round: where things lie in memory moves times, too.
            var workers: [EngineKind: WorkerProcess] = [:]
            for engine in options.engines { workers[engine] = try worker(engine, engine.rawValue) }
            // C has a process of its own, because SealedDB makes SQLCipher faster for all of its process.
            let stock = try workers[.encrypted].map { _ in
                try self.worker(.encrypted, "stock", keepsContexts: false)
            }
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
            for (number, set) in sets.enumerated() {
                progress("round \(round + 1) of \(options.roundCount), \(number + 1) of \(sets.count): \(set[0].id)")
                var workers = workers
                var stock = stock
                if set[0].needsMemorySecurity, workers[.encrypted] != nil {
                    let worker = try lockingWorker ?? self.worker(.encrypted, "locking")
                    lockingWorker = worker
                    workers[.encrypted] = worker
                    // With memory security, SealedDB leaves SQLCipher as it is.
                    stock = nil
                }
                try measure(set, round: round, workers: workers, stock: stock)
            }
        }
    }

    /// What is measured together, in the order of the first of each.
    private var sets: [[CaseInfo]] {
        var result: [[CaseInfo]] = []
        for info in cases {
            if !info.set.isEmpty, let index = result.firstIndex(where: { $0[0].set == info.set }) {
                result[index].append(info)
            } else {
                result.append([info])
            }
        }
        return result
    }

    /// Cases in which SealedDB takes part, and those that are about C.
    private func isSelected(_ info: CaseInfo) -> Bool {
        guard info.subjects.contains(.sealed) || info.isForCAlone else { return false }
        return filters.isEmpty || filters.contains { info.id.firstMatch(of: $0) != nil }
    }

    /// A sample of each subject with each engine in turn, and again, in the opposite order.
    private mutating func measure(
        _ set: [CaseInfo],
        round: Int,
        workers: [EngineKind: WorkerProcess],
        stock: WorkerProcess?
    ) throws {
        var series: [Series] = []
        // Which engine comes first changes with the round.
        let engines = round.isMultiple(of: 2) ? EngineKind.allCases : EngineKind.allCases.reversed()
        for info in set {
            var own: [Series] = []
            for engine in engines {
                // The plain build has no part in some cases about keys.
                guard let worker = workers[engine], known[engine]?.contains(info.id) == true else { continue }
                do {
                    let subjects = try worker.begin(info.id, sampleNanoseconds: options.sampleNanoseconds)
                    own += subjects.map { Series(id: info.id, engine: engine, subject: $0) }
                    guard engine == .encrypted, let stock, subjects.contains(.c) else { continue }
                    // It has the same cases, so the result is known.
                    _ = try stock.begin(info.id, sampleNanoseconds: options.sampleNanoseconds)
                } catch {
                    throw WorkerError("\(info.id), \(engine.rawValue): \(error)")
                }
            }
            // Subjects next to each other are those that are compared.
            series += own.sorted { $0.subject.rawValue < $1.subject.rawValue }
        }
        var taken: [Series: [Sample]] = [:]
        for turn in 0..<options.samples {
            let start = DispatchTime.now().uptimeNanoseconds
            for each in turn.isMultiple(of: 2) ? series : series.reversed() {
                let isStock = each.engine == .encrypted && each.subject == .c
                guard let worker = isStock ? stock ?? workers[each.engine] : workers[each.engine] else { continue }
                taken[each, default: []].append(try worker.sample(each.id, each.subject))
            }
            // Long work is its own average.
            if DispatchTime.now().uptimeNanoseconds - start > options.turnNanoseconds * UInt64(set.count) { break }
        }
        for (each, list) in taken { samples[each, default: []].append(list) }
        for worker in workers.values { try worker.end() }
        try stock?.end()
    }

    // MARK: Results

    var rows: [Report.Row] {
        cases.map { info in
            let series = EngineKind.allCases.flatMap { engine in
                Subject.allCases.compactMap { subject -> Report.Series? in
                    guard let rounds = samples[Series(id: info.id, engine: engine, subject: subject)] else {
                        return nil
                    }
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
                let spread = ratio(
                    Series(id: info.id, engine: first.engine, subject: first.subject),
                    Series(id: info.id, engine: second.engine, subject: second.subject)
                )
                return spread.map { Report.Ratio(kind: kind, spread: $0) }
            }
            return Report.Row(info: info, series: series, ratios: ratios)
        }
    }

    var goals: [Report.GoalResult] {
        Goal.all.compactMap { goal in
            let spread: Spread?
            switch goal.measure {
            case .ratio(let top, let bottom): spread = ratio(top, bottom)
            case .allocations(let id):
                let own = samples[Series(id: id, engine: .encrypted, subject: .sealed)]
                let floor = samples[Series(id: id, engine: .encrypted, subject: .c)]
                spread = zipped(own, floor).map { rounds in
                    Spread(
                        rounds.map { own, floor in
                            let difference = own.map(\.allocations).median - floor.map(\.allocations).median
                            return abs((difference * 10).rounded() / 10)
                        }
                    )
                }
            }
            return spread.map { Report.GoalResult(title: goal.title, limit: goal.limit, bound: goal.bound, spread: $0) }
        }
    }

    /// Sample by sample, taken moments apart, so that what slows the machine slows both.
    private func ratio(_ top: Series, _ bottom: Series) -> Spread? {
        zipped(samples[top], samples[bottom]).map { rounds in
            Spread(rounds.map { top, bottom in zip(top, bottom).map { $0.nanoseconds / $1.nanoseconds }.median })
        }
    }

    private func zipped(_ first: [[Sample]]?, _ second: [[Sample]]?) -> [([Sample], [Sample])]? {
        guard let first, let second else { return nil }
        return Array(zip(first, second))
    }
}

extension CaseInfo {
    /// The physical limit.
    var isForCAlone: Bool { group == "Physical limit" }
}
