import Foundation
import SealedDB

/// Starts workers, ends them in one way or the other, and compares the store with what they reported.
final class Oracle {
    private let directory: String
    private var committed: [Int: Int] = [:]
    private var rounds = 0
    private var kills = 0
    private var rotations = 0

    init(directory: String) throws {
        self.directory = directory
        try FileManager.default.createDirectory(atPath: directory, withIntermediateDirectories: true)
        _ = try Store.keys(in: directory)
    }

    func run(seconds: Double) throws -> Bool {
        let end = Date().addingTimeInterval(seconds)
        do {
            // Two thirds of the time in rounds that end with a kill or not, then a long one.
            let long = seconds / 3
            while Date().addingTimeInterval(long) < end {
                try round(seconds: .random(in: 0.2...1.5), kills: Int.random(in: 0..<4) > 0, measures: false)
            }
            try round(seconds: max(1, end.timeIntervalSinceNow), kills: false, measures: true)
        } catch let violation as Violation {
            print("FAILED in round \(rounds): \(violation.text) The store is \(Store.path(in: directory))")
            return false
        }
        let rows = committed.values.reduce(0, +)
        print("\(rounds) rounds, \(kills) kills, \(rotations) rotations, \(rows) rows: nothing lost, nothing grew.")
        return true
    }

    private func round(seconds: Double, kills: Bool, measures: Bool) throws {
        rounds += 1
        let output = directory + "/output"
        try Data().write(to: URL(fileURLWithPath: output))
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/proc/\(getpid())/exe").resolvingSymlinksInPath()
        process.arguments = ["work", directory]
        let input = Pipe()
        process.standardInput = input
        process.standardOutput = try FileHandle(forWritingTo: URL(fileURLWithPath: output))
        let ended = DispatchSemaphore(value: 0)
        process.terminationHandler = { _ in ended.signal() }
        try process.run()
        // How long the store is used, before the worker is killed or told to end.
        Thread.sleep(forTimeInterval: seconds)
        if kills {
            self.kills += 1
            kill(process.processIdentifier, SIGKILL)
        }
        try input.fileHandleForWriting.close()
        guard ended.wait(timeout: .now() + 120) == .success else {
            kill(process.processIdentifier, SIGABRT)
            throw Violation(text: "The worker hangs.")
        }
        process.waitUntilExit()
        let lines = try String(contentsOfFile: output, encoding: .utf8).split(separator: "\n").map(String.init)
        if let failure = lines.first(where: { $0.hasPrefix("failed") }) { throw Violation(text: failure) }
        if !kills {
            guard process.terminationStatus == 0, lines.last == "ended" else {
                throw Violation(
                    text: "The worker ended with \(process.terminationStatus): \(lines.last ?? "no output")."
                )
            }
        }
        rotations += lines.count { $0 == "rotated" }
        for line in lines {
            let words = line.split(separator: " ")
            guard words.count == 3, words[0] == "committed", let writer = Int(words[1]), let number = Int(words[2])
            else {
                continue
            }
            committed[writer] = max(committed[writer] ?? 0, number)
        }
        try compare()
        if measures { try compareUse(lines) }
    }

    private func compare() throws {
        let keys = try Store.keys(in: directory)
        let pool = try Store.openPool(in: directory, keys: keys)
        let committed = committed
        try pool.read { db in
            guard db.tableExists("row") else {
                if committed.isEmpty { return }
                throw Violation(text: "The table is gone.")
            }
            try Store.check(db)
            for (writer, number) in committed {
                let last = try Store.integer(db, "SELECT max(number) FROM row WHERE writer = \(writer)")
                guard last >= number else {
                    throw Violation(
                        text: "Writer \(writer) committed row \(number), and the last one there is \(last)."
                    )
                }
            }
        }
        try pool.writeWithoutTransaction { db in
            let rows = try db.executeQuery("PRAGMA integrity_check", values: nil)
            guard try rows.nextWithError(), rows.string(forColumnIndex: 0) == "ok" else {
                throw Violation(text: "integrity_check: \(rows.string(forColumnIndex: 0) ?? "no answer").")
            }
        }
        pool.releaseAllDatabases()
        var isSound = keys.isEmpty
        for key in keys where !isSound {
            guard let report = try? IntegrityReport.verify(path: Store.path(in: directory), key: key) else { continue }
            isSound = report.isSound
        }
        guard isSound else { throw Violation(text: "The store is not sound.") }
    }

    /// The last quarter of the long round against its second one.
    private func compareUse(_ lines: [String]) throws {
        let uses = lines.filter { $0.hasPrefix("uses ") }.map {
            $0.split(separator: " ").dropFirst().compactMap { Int($0) }
        }
        guard uses.count >= 8 else { return }
        let quarter = uses.count / 4
        for (index, (name, slack)) in [("KiB of memory", 32 * 1024), ("descriptors", 16), ("threads", 16)].enumerated()
        {
            let before = uses[quarter..<quarter * 2].map { $0[index] }.max()!
            let after = uses.suffix(quarter).map { $0[index] }.max()!
            print("\(name): at most \(before) early, \(after) late")
            guard after <= before + before / 4 + slack else {
                throw Violation(text: "\(name) grew from \(before) to \(after).")
            }
        }
    }
}
