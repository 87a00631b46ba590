import Foundation

/// The same by other means: strace instead of the interposer, a file system that really is full or read-only.
struct SecondOpinion: Sendable {
    let operation: Operation

    /// One system call of an undisturbed run, as strace counts: the how manieth of its name.
    struct Call: Sendable {
        let name: String
        let number: Int
    }

    /// All system calls of a run, also those that have nothing to do with files.
    func calls(on worker: Worker) throws -> [Call] {
        try worker.reset(to: operation.files)
        let result = try strace(["-o", worker.file("trace")], on: worker)
        guard result.status == 0 else { throw HarnessError("Under strace \(operation.id) fails: \(result.error)") }
        var counts: [String: Int] = [:]
        let text = String(decoding: try Files.read(worker.file("trace")), as: UTF8.self)
        return text.split(separator: "\n").compactMap { line in
            // "PID name(": the second half of a call that was interrupted by another thread has no name there.
            let words = line.split(separator: " ", maxSplits: 1, omittingEmptySubsequences: true)
            guard words.count == 2, let end = words[1].firstIndex(of: "("),
                words[1][..<end].allSatisfy({ $0.isLowercase || $0.isNumber || $0 == "_" })
            else { return nil }
            let name = String(words[1][..<end])
            counts[name, default: 0] += 1
            return Call(name: name, number: counts[name, default: 0])
        }
    }

    func kill(_ call: Call, on worker: Worker) throws -> TrialResult {
        try perform(.kill, call, injection: "signal=KILL", name: "kill", on: worker)
    }

    func fail(_ call: Call, _ error: String, on worker: Worker) throws -> TrialResult {
        try perform(.fault, call, injection: "error=\(error)", name: error, on: worker)
    }

    private func perform(
        _ kind: Trial.Kind,
        _ call: Call,
        injection: String,
        name: String,
        on worker: Worker
    ) throws -> TrialResult {
        try worker.reset(to: operation.files)
        let inject = "inject=\(call.name):\(injection):when=\(call.number)"
        let result = try strace(["-o", "/dev/null", "-e", inject], on: worker)
        let ending = Ending(
            status: result.status == -SIGKILL ? nil : result.status,
            output: result.output,
            error: result.error,
            mayLeaveTemporaries: call.name.hasPrefix("unlink")
        )
        let id = "\(operation.id)/strace-\(call.name)-\(call.number)-\(name)"
        let verdict = try worker.judge(operation, ending, salt: id)
        return TrialResult(
            id: id,
            kind: kind,
            operation: operation.id,
            fired: kind == .fault || ending.status == nil,
            reached: verdict.reached,
            problems: verdict.problems
        )
    }

    private func strace(_ options: [String], on worker: Worker) throws -> Command.Result {
        try Command.run(["strace", "-f", "-qq"] + options + operation.arguments, directory: worker.directory)
    }

    // MARK: Real file systems

    /// On a tmpfs with room for this many KiB more, or a read-only one. `nil` where the system lets nobody but root mount.
    func onSmallDisk(room: Int, isReadOnly: Bool, on worker: Worker) throws -> TrialResult? {
        let kibibytes = operation.files.values.reduce(8 + room) { $0 + ($1.count + 4095) / 4096 * 4 }
        try worker.reset(to: operation.files)
        let saved = worker.file("saved")
        let left = worker.file("left")
        for directory in [saved, left] {
            try? FileManager.default.removeItem(atPath: directory)
            try FileManager.default.createDirectory(atPath: directory, withIntermediateDirectories: false)
        }
        // In the place of the worker's directory: a journal names its stores by their paths.
        let script = """
            cp -a "$2/." "$1/" || exit 124
            mount -t tmpfs -o size=\(kibibytes)k,mode=700 tmpfs "$2" || exit 123
            cp -a "$1/." "$2/" || exit 124
            if [ "$4" = ro ]; then mount -o remount,ro "$2" || exit 123; fi
            left=$3
            cd "$2" && shift 4 && "$@"
            status=$?
            cp -a . "$left/" || exit 124
            exit $status
            """
        let result = try Command.run(
            ["unshare", "-rm", "sh", "-c", script, "sh", saved, worker.directory, left, isReadOnly ? "ro" : "rw"]
                + operation.arguments
        )
        if result.status == 123 || result.error.contains("unshare failed") { return nil }
        if result.status == 124 { throw HarnessError("The files do not fit: \(result.error)") }
        try worker.reset(to: try Files.contents(of: left))
        let id = "\(operation.id)/" + (isReadOnly ? "read-only" : "tmpfs-\(room)k")
        let ending = Ending(status: result.status, output: result.output, error: result.error)
        let verdict = try worker.judge(operation, ending, salt: id)
        return TrialResult(
            id: id,
            kind: .environment,
            operation: operation.id,
            fired: true,
            reached: verdict.reached,
            problems: verdict.problems
        )
    }
}
