import Foundation

/// One run: what is built, chosen, tried and reported.
struct Session {
    let package: String
    let folder: String
    let options: Options

    func run() throws {
        var workshop = Workshop(package: package, folder: folder)
        try workshop.build()
        if options.isBuildOnly { return }
        let chosen = try choose(workshop.mutants)
        if options.isList {
            for (_, mutant) in chosen { say(mutant.description) }
            return
        }
        var survey = Survey(workshop)
        try survey.make(limit: 900)
        say("\(survey.tests.count) tests, \(chosen.count) mutants, seed \(options.seed).")
        let found = try attempt(chosen, survey)
        say("\(found) of \(chosen.count - options.skipped) found.")
        exit(found == chosen.count - options.skipped ? 0 : 1)
    }

    /// In the order in which they are tried, each with a name if it has one.
    private func choose(_ mutants: [Mutant]) throws -> [(name: String, mutant: Mutant)] {
        if options.isNamed { return mutants.filter { $0.operation == .named }.map { ("", $0) } }
        if !options.ids.isEmpty { return mutants.filter { options.ids.contains($0.id) }.map { ("", $0) } }
        let eligible = mutants.filter { $0.operation != .named }.filter { mutant in
            options.files.isEmpty
                ? Scope.promising.contains { mutant.file.hasPrefix($0) }
                : options.files.contains { mutant.file.contains($0) }
        }
        if options.isList { return eligible.map { ("", $0) } }
        var generator = Seeded(options.seed)
        return eligible.shuffled(using: &generator).prefix(options.count ?? (options.files.isEmpty ? 100 : .max)).map {
            ("", $0)
        }
    }

    /// How many were found.
    private func attempt(_ chosen: [(name: String, mutant: Mutant)], _ survey: Survey) throws -> Int {
        let state = State(before: options.skipped)
        DispatchQueue.concurrentPerform(iterations: max(1, options.jobs)) { _ in
            while let index = state.next(), index < chosen.count {
                let (name, mutant) = chosen[index]
                let label = name.isEmpty ? mutant.description : "\(name) (\(mutant.description))"
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
                    case .survived: line = "SURVIVED   \(label)"
                    case .notReached: line = "NOT REACHED \(label)"
                    }
                } catch {
                    line = "ERROR      \(label)  \(error)"
                }
                say("[\(index + 1)] \(line)  (\(Int(Date().timeIntervalSince(began))) s)")
            }
        }
        return state.found
    }

    private final class State: @unchecked Sendable {
        // Protected by the lock.
        private let lock = NSLock()
        private var index: Int
        private(set) var found = 0

        init(before index: Int) { self.index = index - 1 }

        func next() -> Int? {
            lock.withLock {
                index += 1
                return index
            }
        }

        func count() { lock.withLock { found += 1 } }
    }
}
