import Foundation

/// The trials of an operation, of which `density` says how many are taken.
enum Sweep {
    /// Killed at each file-system call, and in the middle of each write.
    static func kills(_ operation: Operation, _ calls: [Worker.Call]) -> [Trial] {
        calls.flatMap { call in
            let whole = Trial(kind: .kill, operation: operation, name: "kill-\(call.index)", plan: "kill=\(call.index)")
            let torn = Trial(
                kind: .kill,
                operation: operation,
                name: "kill-\(call.index)-torn",
                plan: "kill=\(call.index) torn=1"
            )
            return call.errors.contains(0) ? [whole, torn] : [whole]
        }
    }

    /// Each file-system call fails in each way that it can, once, and with all like it from then on.
    static func faults(_ operation: Operation, _ calls: [Worker.Call]) -> [Trial] {
        calls.flatMap { call in
            call.errors.flatMap { error in
                [false, true].map { isSticky in
                    Trial(
                        kind: .fault,
                        operation: operation,
                        name: "fault-\(call.index)-\(errorName(error))" + (isSticky ? "-sticky" : ""),
                        plan: "fail=\(call.index) error=\(error) sticky=\(isSticky ? 1 : 0)",
                        mayLeaveTemporaries: isSticky || call.name.hasPrefix("unlink")
                    )
                }
            }
        }
    }

    /// Each allocation of SQLite fails, once, and with all that follow.
    static func allocations(_ operation: Operation, count: Int) -> [Trial] {
        guard count > 0 else { return [] }
        return (1...count).flatMap { index in
            [false, true].map { isSticky in
                Trial(
                    kind: .allocation,
                    operation: operation,
                    name: "allocation-\(index)" + (isSticky ? "-sticky" : ""),
                    plan: "allocation=\(index) sticky-allocation=\(isSticky ? 1 : 0)"
                )
            }
        }
    }

    /// A disk that fills up, a limit to the size of files, a directory that cannot be changed, a clock that jumps.
    static func environments(_ operation: Operation) -> [Trial] {
        let size = operation.files.values.map(\.count).max() ?? 0
        var trials: [Trial] = []
        func add(_ name: String, _ plan: String, mustSucceed: Bool = false) {
            trials.append(
                Trial(
                    kind: .environment,
                    operation: operation,
                    name: name,
                    plan: plan,
                    mayLeaveTemporaries: plan.hasPrefix("no-changes"),
                    mustSucceed: mustSucceed,
                    mayBeSilent: plan.hasPrefix("file-limit")
                )
            )
        }
        for space in stride(from: 0, through: 4 * size + 8192, by: 2560) { add("space-\(space)", "space=\(space)") }
        for limit in stride(from: 0, through: 2 * size + 8192, by: 2560) {
            add("file-limit-\(limit)", "file-limit=\(limit)")
        }
        add("no-changes", "no-changes=1")
        for seed in 1...12 { add("clock-\(seed)", "clock=\(seed)", mustSucceed: true) }
        return trials
    }

    static func errorName(_ error: Int32) -> String {
        let names: [Int32: String] = [
            0: "short", EIO: "EIO", ENOSPC: "ENOSPC", EINTR: "EINTR", EMFILE: "EMFILE", ENOMEM: "ENOMEM",
            EACCES: "EACCES", ENOLCK: "ENOLCK",
        ]
        return names[error] ?? "\(error)"
    }

    /// About `count` of the trials, spread evenly, and different ones for each seed.
    static func sample(_ trials: [Trial], count: Int, seed: UInt64) -> [Trial] {
        guard count < trials.count else { return trials }
        let offset = Double(seed % 97) / 97
        return (0..<count).map { trials[Int((Double($0) + offset) * Double(trials.count) / Double(count))] }
    }
}
