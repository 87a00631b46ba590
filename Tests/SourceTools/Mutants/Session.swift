import Foundation

/// One run: what is built, chosen, tried and reported.
struct Session {
    let package: String
    let folder: String
    let options: Options

    func run() throws {
        if options.isCheck { return try NamedMutant.check(package: package) }
        var workshop = Workshop(package: package, folder: folder)
        try workshop.build()
        if options.isBuildOnly { return }
        let chosen = try choose(workshop.mutants)
        if options.isList {
            for mutant in chosen { say(mutant.description) }
            return
        }
        var survey = try Survey(workshop)
        try survey.make(limit: 900, jobs: options.jobs)
        if options.isUnreached {
            let unreached = chosen.filter { survey.thatCouldNotice($0).isEmpty && Explained.reason(for: $0) == nil }
            for mutant in unreached { say(mutant.description) }
            say("\(unreached.count) of \(chosen.count) are not reached.")
            return
        }
        say("\(survey.tests.count) tests, \(chosen.count) mutants, seed \(options.seed).")
        let (found, explained) = try attempt(chosen, survey)
        let count = chosen.count - options.skipped
        say("\(found) of \(count) found, \(explained) explained, \(count - found - explained) left.")
        exit(found + explained == count ? 0 : 1)
    }

    /// In the order in which they are tried.
    private func choose(_ mutants: [Mutant]) throws -> [Mutant] {
        if options.isNamed { return mutants.filter { $0.operation == .named } }
        if !options.ids.isEmpty { return mutants.filter { options.ids.contains($0.id) } }
        let eligible = mutants.filter { $0.operation != .named }.filter { mutant in
            options.files.isEmpty
                ? Scope.promising.contains { mutant.file.hasPrefix($0) }
                : options.files.contains { mutant.file.contains($0) }
        }
        if options.isList || options.isUnreached { return eligible }
        var generator = Seeded(options.seed)
        return Array(
            eligible.shuffled(using: &generator).prefix(options.count ?? (options.files.isEmpty ? 100 : .max))
        )
    }

    /// How many were found, and how many need not be.
    private func attempt(
        _ chosen: [Mutant],
        _ survey: Survey
    ) throws -> (found: Int, explained: Int) {
        let state = State(before: options.skipped)
        DispatchQueue.concurrentPerform(iterations: max(1, options.jobs)) { _ in
            while let index = state.next(), index < chosen.count {
                let mutant = chosen[index]
                let label = mutant.description
                let began = Date()
                let line: String
                do {
                    switch try Trial(
                        mutant: mutant,
                        survey: survey,
                        includesFaults: options.includesFaults,
                        isQuick: options.isQuick
                    ).run() {
                    case .found(let by):
                        state.count()
                        line = "found      \(label)  by \(by)"
                    case .survived, .notReached:
                        if let reason = Explained.reason(for: mutant) {
                            state.countExplained()
                            line = "explained  \(label)  \(reason)"
                        } else {
                            line = "SURVIVED   \(label)"
                        }
                    }
                } catch {
                    line = "ERROR      \(label)  \(error)"
                }
                say("[\(index + 1)] \(line)  (\(Int(Date().timeIntervalSince(began))) s)")
            }
        }
        return (state.found, state.explained)
    }

    private final class State: @unchecked Sendable {
        // Protected by the lock.
        private let lock = NSLock()
        private var index: Int
        private(set) var found = 0
        private(set) var explained = 0

        init(before index: Int) { self.index = index - 1 }

        func next() -> Int? {
            lock.withLock {
                index += 1
                return index
            }
        }

        func count() { lock.withLock { found += 1 } }

        func countExplained() { lock.withLock { explained += 1 } }
    }
}
