import Foundation

/// Has calls of a process fail: `Faults/faults.c` in front of libc.
struct FaultyCalls: Codable, Sendable {
    let seed: UInt64
    /// Of so many calls one fails.
    let rate: Int
    /// So many calls come first, with which the service begins.
    let allowed: Int

    /// Whether at least one fails in a round, be it short.
    var areCertain: Bool { rate == 1 }

    /// For the process that is to have them.
    func environment(_ place: Place) -> [String: String] {
        // As SQLite names the files.
        let directory = URL(fileURLWithPath: place.storeDirectory).resolvingSymlinksInPath().path
        return [
            "LD_PRELOAD": FaultyCalls.object(in: place.root),
            "STRESS_FAULTS": "\(seed) \(rate) \(directory)",
            "STRESS_FAULTS_ALLOWED": "\(allowed)",
            "STRESS_FAULTS_SEEN": FaultyCalls.log(in: place.root),
        ]
    }

    /// Those that have failed, each as a line.
    func failed(_ place: Place) throws -> [Substring] {
        let log = FaultyCalls.log(in: place.root)
        guard access(log, F_OK) == 0 else { return [] }
        return try String(contentsOfFile: log, encoding: .utf8).split(separator: "\n")
    }

    /// Is made when the first call fails.
    private static func log(in root: String) -> String { root + "/faults-seen" }

    static func object(in root: String) -> String { root + "/faults.so" }

    /// Compiles it, and forgets what failed before.
    static func build(in root: String) throws {
        let source = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .appendingPathComponent("Faults/faults.c").path
        // It may not be there.
        _ = unlink(log(in: root))
        guard access(object(in: root), F_OK) != 0 else { return }
        let options = ["-O1", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC"]
        try Command.run(["clang"] + options + ["-o", object(in: root), source])
    }
}
