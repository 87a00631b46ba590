import Foundation

/// Power failures in one run of an operation: at each point of it, states that the disk could be found in.
struct PowerLoss: Sendable {
    let operation: Operation
    /// What the interposer is to do in the run that is recorded, beside recording.
    var plan = ""
    var name = "power"
    /// States, about; there may be fewer.
    let count: Int
    let seed: UInt64
    /// Only the trial of this name, if any.
    var only: String?
    /// At every so many points, the seed says which, and at the end.
    var step = 1

    /// The recorded run, and after it the states, each of which counts only once.
    func run(on worker: Worker, stopsAtFirstProblem: Bool = false) throws -> [TrialResult] {
        try worker.reset(to: operation.files)
        let inodes = try operation.files.keys.reduce(into: [:]) { $0[$1] = try inode(worker.directory + "/" + $1) }
        let run = try worker.run(operation, "record=\(worker.file("recording")) \(plan)")
        let recording = try Recording(try Files.read(worker.file("recording")))
        var disk = Disk(operation.files, inodes: inodes, unsynced: operation.unsynced)
        var seen: Set<UInt64> = []
        var output = ""
        var results: [TrialResult] = []
        let perCut = max(1, count / (recording.entries.count + 1))
        var hash = Hash()
        hash.add(name)
        let offset = Int((hash.value ^ seed) % UInt64(step))
        for cut in 0...recording.entries.count {
            if cut > 0 {
                try disk.apply(recording.entries[cut - 1])
                if case .output(let text) = recording.entries[cut - 1] { output += text }
            }
            let isOver = cut == recording.entries.count
            guard only != nil || isOver || cut % step == offset else { continue }
            let ending = ending(of: run, output: output, isOver: isOver)
            var found = 0
            for attempt in 0..<3 * perCut where found < perCut {
                let id = "\(operation.id)/\(name)-\(cut)-\(attempt)"
                var hash = Hash()
                hash.add(id)
                var random = Random(seed: hash.value ^ seed)
                let state = disk.state(&random)
                if let only {
                    guard only == id else { continue }
                } else {
                    guard seen.insert(digest(of: state, ending)).inserted else { continue }
                }
                found += 1
                try worker.reset(to: state)
                let verdict = try worker.judge(operation, ending, salt: id)
                results.append(
                    TrialResult(
                        id: id,
                        kind: .powerLoss,
                        operation: operation.id,
                        fired: true,
                        reached: verdict.reached,
                        problems: verdict.problems + (verdict.problems.isEmpty ? [] : [listing(state)])
                    )
                )
                if stopsAtFirstProblem && !verdict.problems.isEmpty { return results }
            }
        }
        return results
    }

    /// What a user can know who was told so much before the power failed.
    private func ending(of run: ForkServer.Run, output: String, isOver: Bool) -> Ending {
        // A failure that says that the change took place may say that it is not sure to last.
        let isSettled = isOver && !operation.saysAfter.contains(where: run.error.contains)
        return Ending(
            status: isSettled && !run.wasKilled ? run.status : nil,
            output: isOver && !isSettled ? "" : output,
            error: run.error,
            mayLeaveTemporaries: true
        )
    }

    private func digest(of state: [String: Files.Bytes], _ ending: Ending) -> UInt64 {
        var hash = Hash()
        for (name, bytes) in state.sorted(by: { $0.key < $1.key }) {
            hash.add(name)
            hash.add(bytes)
        }
        hash.add(ending.output)
        hash.add("\(ending.status ?? -1)")
        return hash.value
    }

    private func listing(_ state: [String: Files.Bytes]) -> String {
        "found: " + state.sorted { $0.key < $1.key }.map { "\($0.key) (\($0.value.count))" }.joined(separator: ", ")
    }

    private func inode(_ path: String) throws -> UInt64 {
        var status = stat()
        guard lstat(path, &status) == 0 else { throw HarnessError("\(path) is gone.") }
        return UInt64(status.st_ino)
    }
}
