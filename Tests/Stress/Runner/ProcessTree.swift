import Foundation

/// A process and all that it has started, which would go on without it.
struct ProcessTree {
    private let root: pid_t

    init(of root: pid_t) { self.root = root }

    /// Returns when the others are gone; the first one is waited for by its parent.
    func kill() {
        let stopped = stop()
        for process in stopped where process != root { Foundation.kill(process, SIGKILL) }
        // Their parents, which are stopped, do not collect them.
        while !stopped.allSatisfy({ $0 == root || ProcessTree.state(of: $0)?.isDead ?? true }) { sched_yield() }
        Foundation.kill(root, SIGKILL)
    }

    /// None of them says anything more.
    /// - Returns: all of them.
    @discardableResult
    func stop() -> Set<pid_t> {
        // All are stopped before any is killed: what one starts after a look, and before its own end, would be nobody's.
        var stopped: Set<pid_t> = [root]
        Foundation.kill(root, SIGSTOP)
        while true {
            let found = descendants()
            let new = found.filter { stopped.insert($0).inserted }
            for process in new { Foundation.kill(process, SIGSTOP) }
            let areStill = stopped.allSatisfy { ProcessTree.state(of: $0)?.isStill ?? true }
            if new.isEmpty, areStill { return stopped }
            sched_yield()
        }
    }

    /// Of those that are there now.
    var processorSeconds: Double {
        ([root] + descendants()).reduce(0) { $0 + (ProcessTree.state(of: $1)?.processorSeconds ?? 0) }
    }

    private func descendants() -> [pid_t] {
        let names = (try? FileManager.default.contentsOfDirectory(atPath: "/proc")) ?? []
        let parents = Dictionary(
            uniqueKeysWithValues: names.compactMap { name in
                pid_t(name).flatMap { process in ProcessTree.state(of: process).map { (process, $0.parent) } }
            }
        )
        var found: [pid_t] = []
        var last: [pid_t] = [root]
        while !last.isEmpty {
            last = parents.filter { last.contains($0.value) }.map(\.key)
            found += last
        }
        return found
    }

    private struct State {
        let parent: pid_t
        let letter: Substring
        let processorSeconds: Double

        var isDead: Bool { letter == "Z" || letter == "X" }
        var isStill: Bool { isDead || letter == "T" || letter == "t" }
    }

    /// `nil` if it is gone.
    private static func state(of process: pid_t) -> State? {
        guard let text = try? String(contentsOfFile: "/proc/\(process)/stat", encoding: .utf8),
            let name = text.lastIndex(of: ")")
        else { return nil }
        let words = text[text.index(after: name)...].split(separator: " ")
        // https://man7.org/linux/man-pages/man5/proc_pid_stat.5.html: fields 14 and 15; the name is the second.
        guard words.count > 12, let parent = pid_t(words[1]), let user = Double(words[11]),
            let system = Double(words[12])
        else { return nil }
        return State(
            parent: parent,
            letter: words[0],
            processorSeconds: (user + system) / Double(sysconf(Int32(_SC_CLK_TCK)))
        )
    }
}
