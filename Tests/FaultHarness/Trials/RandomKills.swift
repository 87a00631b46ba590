import Foundation

/// A loaded service on a WAL store, killed at random times and started again on what it left, over and over. Every batch
/// that was ever acknowledged must be there each time.
struct RandomKills: Sendable {
    let operation: Operation
    let kills: Int
    let seed: UInt64

    init(in directory: String, kills: Int, seed: UInt64) throws {
        let store = try Seed(.wal, key: .old, in: directory)
        let state = Operation.State.store(.old, digest: store.digest)
        self.kills = kills
        self.seed = seed
        operation = Operation(
            name: "commit-loop",
            variant: "wal",
            arguments: [Program.subject, "commit", "db", "--key-file", TestKey.old.file]
                + ["--journal-mode", "wal", "--batches", "1000000", "--writers", "2"],
            files: store.files.merging(TestKey.files) { first, _ in first },
            targets: [.init(file: "db", before: state, after: state)],
            failure: .either,
            load: .init(batches: 0, isOrdered: false)
        )
    }

    func run(on worker: Worker) throws -> [TrialResult] {
        var random = Random(seed: seed)
        var acknowledged = ""
        var results: [TrialResult] = []
        try worker.reset(to: operation.files)
        for index in 0..<kills {
            let time = 1500 + random.below(30_000)
            let run = try worker.run(operation, "kill-after=\(time)")
            acknowledged += run.output
            // What the kill left is what the next run begins with; the judge gets a copy.
            let left = try Files.contents(of: worker.directory)
            let ending = Ending(status: run.wasKilled ? nil : run.status, output: acknowledged, error: run.error)
            let verdict = try Judge(operation: operation, directory: worker.directory).verdict(ending)
            try worker.reset(to: left)
            let stray = run.wasKilled ? [] : ["it exits \(run.status) before it is killed: \(run.error)"]
            results.append(
                TrialResult(
                    id: "\(operation.id)/kill-\(seed)-\(index)",
                    kind: .kill,
                    operation: operation.id,
                    fired: run.wasKilled,
                    reached: verdict.reached,
                    problems: verdict.problems + stray
                )
            )
            if !verdict.problems.isEmpty { break }
        }
        return results
    }
}
