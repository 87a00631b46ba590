import Foundation
import Synchronization

/// Runs programs, one after the other or several at once, until the time is over or one of them fails.
final class Session: Sendable {
    private let scale: Scale?
    private let composition: Composition?
    private let fileSystem: LoopDisk.Kind?
    private let isQuick: Bool
    private let steps: Int
    private let rounds: Int
    private let root: String
    private let deadline: Double
    private let total = Mutex(Report())

    init(
        scale: Scale?,
        isQuick: Bool,
        composition: Composition?,
        fileSystem: LoopDisk.Kind?,
        steps: Int,
        rounds: Int,
        root: String,
        deadline: Double
    ) {
        self.scale = scale
        self.isQuick = isQuick
        self.composition = composition
        self.fileSystem = fileSystem
        self.steps = steps
        self.rounds = rounds
        self.root = root
        self.deadline = deadline
    }

    var report: Report { total.withLock { $0 } }

    func run(jobs: Int) async {
        let first = UInt64.random(in: 0..<1_000_000_000)
        // However short the time is, each kind of operation runs.
        runTour(seed: first)
        await withTaskGroup(of: Void.self) { group in
            for job in 0..<jobs {
                group.addTask { await self.runPrograms(from: first + 1 + UInt64(job) * 1_000_000_000) }
            }
        }
    }

    private func runPrograms(from first: UInt64) async {
        await withCheckedContinuation { continuation in
            Thread.detachNewThread {
                var seed = first
                while self.report.lost == 0, Date().timeIntervalSince1970 < self.deadline {
                    self.runProgram(seed: seed)
                    seed += 1
                }
                continuation.resume()
            }
        }
    }

    func runProgram(seed: UInt64) {
        runProgram(
            Planner(
                seed: seed,
                scale: scale,
                isQuick: isQuick,
                steps: steps,
                composition: composition,
                fileSystem: fileSystem
            ),
            rounds: rounds,
            deadline: deadline
        )
    }

    /// What else decides of what a seed draws.
    private var choices: String {
        (scale.map { " --scale \($0.rawValue)" } ?? "") + (isQuick ? " --quick" : "")
            + (composition.map { " --composition \($0.rawValue)" } ?? "")
            + (fileSystem.map { " --file-system \($0.rawValue)" } ?? "")
    }

    func runTour(seed: UInt64) {
        let planner = Planner(tour: seed, composition: composition)
        runProgram(planner, rounds: planner.tourRounds, deadline: Date().timeIntervalSince1970 + 1e6)
    }

    private func runProgram(_ planner: Planner, rounds: Int, deadline: Double) {
        let seed = planner.seed
        let directory = "\(root)/\(seed)"
        var program = Program(planner, root: directory, deadline: deadline)
        do {
            try program.run(rounds: rounds)
            try FileManager.default.removeItem(atPath: directory)
        } catch {
            program.report.lost = 1
            Session.say(
                """
                \(program.recent.suffix(30).joined(separator: "\n"))
                FAILED: \(error)
                The files are in \(directory). Again: --seed \(seed) \(planner.options) --rounds \(rounds)\(choices)
                """
            )
        }
        total.withLock { $0 += program.report }
    }

    /// Prints at once, also into a pipe.
    static func say(_ text: String) {
        // Where nobody reads there is nobody to tell.
        try? FileHandle.standardOutput.write(contentsOf: Data((text + "\n").utf8))
    }
}
