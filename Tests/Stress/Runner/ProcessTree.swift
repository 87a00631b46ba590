import Foundation

/// A process and all that it has started, which would go on without it.
struct ProcessTree {
    private let root: pid_t

    init(of root: pid_t) { self.root = root }

    /// Returns when the others are gone; the first one is waited for by its parent.
    func kill() {
        // Stopped, it starts nothing more.
        Foundation.kill(root, SIGSTOP)
        var killed: Set<pid_t> = []
        // What a descendant starts before its own end is found in the next look.
        while true {
            let found = descendants()
            if found.isEmpty { break }
            for process in found where killed.insert(process).inserted { Foundation.kill(process, SIGKILL) }
            // The stopped parent does not collect them.
            if found.allSatisfy({ ProcessTree.state(of: $0)?.isDead ?? true }) { break }
            sched_yield()
        }
        Foundation.kill(root, SIGKILL)
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

    /// `nil` if it is gone.
    private static func state(of process: pid_t) -> (parent: pid_t, isDead: Bool)? {
        guard let text = try? String(contentsOfFile: "/proc/\(process)/stat", encoding: .utf8),
            let name = text.lastIndex(of: ")")
        else { return nil }
        let words = text[text.index(after: name)...].split(separator: " ")
        guard words.count > 1, let parent = pid_t(words[1]) else { return nil }
        return (parent, words[0] == "Z" || words[0] == "X")
    }
}
