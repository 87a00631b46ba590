import Foundation

/// One disturbance of one operation.
struct Trial: Sendable {
    enum Kind: String, Sendable, CaseIterable {
        case kill = "kills"
        case fault = "faults"
        case powerLoss = "power losses"
        case allocation = "failed allocations"
        case environment = "environments"

        static let columns = allCases
    }

    let kind: Kind
    let operation: Operation
    /// Such as `kill 17`: with the operation's, it names the trial.
    let name: String
    /// What the interposer is to do.
    let plan: String
    /// Whether the fault may be that a file cannot be removed.
    var mayLeaveTemporaries = false
    /// Whether the operation must succeed nevertheless.
    var mustSucceed = false
    /// Whether the disturbance reaches standard error too.
    var mayBeSilent = false

    var id: String { "\(operation.id)/\(name)" }

    /// MiB; a run that needs more is on the way to need all there is.
    static let mostMemory = 256
}

/// What became of a trial.
struct TrialResult: Sendable {
    let id: String
    let kind: Trial.Kind
    let operation: String
    /// False if the run ended before the disturbance: then it does not count.
    let fired: Bool
    let reached: Verdict.Reached
    /// Counts as a kill, and is told apart.
    var crashedBeneath = false
    let problems: [String]
}

extension Worker {
    /// Runs, judges, and sees that the next run goes well and clears up.
    func perform(_ trial: Trial) throws -> TrialResult {
        let operation = trial.operation
        try reset(to: operation.files)
        let run = try run(operation, trial.plan)
        let crashedBeneath =
            trial.kind == .allocation && run.crashedInEngine || trial.kind == .fault && run.crashedInDispatch
        let ending = Ending(
            status: run.wasKilled || crashedBeneath ? nil : run.status,
            output: run.output,
            error: run.error,
            mayLeaveTemporaries: trial.mayLeaveTemporaries,
            wasDisturbed: run.fired && !trial.mustSucceed,
            mayBeSilent: trial.mayBeSilent
        )
        let verdict = try judge(operation, ending, salt: trial.id)
        return TrialResult(
            id: trial.id,
            kind: trial.kind,
            operation: operation.id,
            fired: run.fired,
            reached: verdict.reached,
            crashedBeneath: crashedBeneath,
            problems: verdict.problems + (run.memory > Trial.mostMemory ? ["it took \(run.memory) MiB of memory"] : [])
        )
    }

    /// - Parameter salt: varies in which order the keys are tried, and which trials are followed up.
    func judge(_ operation: Operation, _ ending: Ending, salt: String) throws -> Verdict {
        var hash = Hash()
        hash.add(salt)
        let left = try Files.contents(of: directory)
        let judge = Judge(operation: operation, directory: directory, triesNewKeyFirst: hash.value & 1 == 0)
        var verdict = try judge.verdict(ending)
        let isClean = Set(left.keys) == Set(operation.files.keys)
        if verdict.problems.isEmpty && (!isClean || hash.value & 6 == 0) {
            // As the trial left it, before the judge's own connections cleared up; what the power failure took away of that
            // on which nothing depends its owner writes again.
            let written = operation.files.filter { operation.unsynced.contains($0.key) }
            try reset(to: left.merging(written) { _, written in written })
            // A batch that failed is not done again.
            let hasGaps = !ending.error.isEmpty
            verdict.problems += try followUp(operation, verdict.reached, hasGaps: hasGaps)
        }
        return verdict
    }

    /// The next run, undisturbed: the same again if it had not come to pass, or else a rotation.
    private func followUp(_ operation: Operation, _ reached: Verdict.Reached, hasGaps: Bool) throws -> [String] {
        var next = operation
        if hasGaps { next.load?.isOrdered = false }
        // A key file that is not yet in its place is for the next run.
        let isHalfDone =
            operation.keyPlaces.map { !Judge(operation: operation, directory: directory).areExchanged($0) } ?? false
        if !isHalfDone, reached == .after || (reached == .either && operation.load == nil) {
            guard operation.leavesStore, let target = operation.targets.first(where: { $0.file == "db" }),
                case .store(let key?, let settings, let digest) = target.after, settings.isEmpty
            else { return [] }
            next = rotation(of: next, from: key, digest: digest)
        }
        let run = try run(next, "")
        let ending = Ending(
            status: run.status,
            output: next.load == nil ? run.output : "",
            error: run.error,
            wasDisturbed: false,
            isFollowUp: true
        )
        let verdict = try Judge(operation: next, directory: directory).verdict(ending)
        var problems = verdict.problems
        if verdict.reached == .before { problems.append("it has not come to pass") }
        return problems.map { "the next run: \($0)" }
    }

    private func rotation(of operation: Operation, from key: TestKey, digest: UInt64) -> Operation {
        Operation(
            name: "rotate",
            variant: "again",
            arguments: [
                Program.sealdb, "rotate", "db", "--key-file", operation.keyPlaces?.file ?? key.file, "--new-key-file",
                TestKey.third.file,
            ],
            files: operation.files,
            targets: operation.targets.filter { $0.file != "db" }.map {
                .init(file: $0.file, before: $0.after, after: $0.after)
            } + [.init(file: "db", before: .store(key, digest: digest), after: .store(.third, digest: digest))],
            load: operation.load.map { Operation.Load(batches: 0, isOrdered: $0.isOrdered) },
            openFiles: operation.openFiles,
            // Of key files only the run that exchanges them clears up, if it is needed again.
            temporaries: [".db.sealdb-"] + (operation.keyPlaces == nil ? [] : operation.temporaries),
            folders: operation.folders,
            keeps: operation.keeps
        )
    }
}
