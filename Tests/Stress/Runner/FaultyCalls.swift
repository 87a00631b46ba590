import Foundation

/// Has calls of a process fail: `Faults/faults.c` in front of libc.
struct FaultyCalls: Codable, Sendable {
    let seed: UInt64
    /// Of so many calls one fails.
    let rate: Int
    /// So many calls come first, with which the service begins.
    let allowed: Int

    /// For the process that is to have them.
    func environment(_ place: Place) -> [String: String] {
        [
            "LD_PRELOAD": FaultyCalls.object(in: place.root),
            "STRESS_FAULTS": "\(seed) \(rate) \(place.storeDirectory)",
            "STRESS_FAULTS_ALLOWED": "\(allowed)",
        ]
    }

    static func object(in root: String) -> String { root + "/faults.so" }

    /// Compiles it, once for each program.
    static func build(in root: String) throws {
        let source = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .appendingPathComponent("Faults/faults.c").path
        let options = ["-O1", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC"]
        try Command.run(["clang"] + options + ["-o", object(in: root), source])
    }
}
