import Foundation
import Synchronization

/// The tests of the copy, and which of them ask for which mutant.
struct Survey {
    struct Test: Codable {
        /// Such as `SealedDBTests.LaneTests/whoCannotHaveAllKeepsNone()`.
        let name: String
        /// Of its suite, as it was surveyed.
        let stamp: String
        /// The state of the sources then.
        let sources: UInt64
        /// Alone, without a mutant.
        let seconds: Double
        let asked: NumberSet

        /// Such as `SealedDBTests.LaneTests`.
        var suite: Substring { name[..<name.firstIndex(of: "/")!] }
        /// Such as `whoCannotHaveAllKeepsNone()`, as Swift Testing prints it.
        var function: Substring { name[name.index(after: name.lastIndex(of: "/")!)...] }
        /// Whether it comes after all others have found nothing.
        var isSlow: Bool { seconds > 8 }
        /// The sooner, the less it takes and the more it is about this.
        fileprivate var rank: Double { (isSlow ? 1e9 : 0) + seconds * Double(asked.count) }
    }

    /// What is kept from run to run.
    private struct Record: Codable {
        var tests: [Test] = []
        /// The files of each state of the sources with which one of the tests was surveyed.
        var sources: [UInt64: [String: UInt64]] = [:]
    }

    let workshop: Workshop
    private let stamps: Stamps
    private var sources: [UInt64: [String: UInt64]] = [:]
    private(set) var tests: [Test] = []

    init(_ workshop: Workshop) throws {
        self.workshop = workshop
        stamps = try Stamps(package: workshop.package)
    }

    var program: String { workshop.copy + "/.build/debug/SealedDBPackageTests.xctest" }

    func arguments(_ names: [String]) -> [String] {
        let special = /[.()\[\]|?*+^$\\]/
        let filter = names.map { $0.replacing(special) { "\\" + $0.output } }.joined(separator: "|")
        return [
            program, "--disable-xctest", "--testing-library", "swift-testing", "--filter", "^(\(filter))(/|$)",
        ]
    }

    /// Runs each test once, without a mutant, unless that was done before with the same tests. Those that fail now tell
    /// nothing later, and are left out, and so is the fault harness, which takes minutes.
    /// - Parameter jobs: so many at a time.
    mutating func make(limit: Double, jobs: Int) throws {
        let record = workshop.folder + "/survey.plist"
        // What cannot be read, or was written in another form, is made anew.
        let past =
            (try? PropertyListDecoder().decode(Record.self, from: Data(contentsOf: URL(fileURLWithPath: record))))
            ?? Record()
        sources = past.sources
        sources[stamps.state] = stamps.sources
        var known = Dictionary(uniqueKeysWithValues: past.tests.map { ($0.name, $0) })
        func save() throws {
            let states = Set(known.values.map(\.sources))
            let encoder = PropertyListEncoder()
            encoder.outputFormat = .binary
            try encoder.encode(Record(tests: Array(known.values), sources: sources.filter { states.contains($0.key) }))
                .write(to: URL(fileURLWithPath: record), options: .atomic)
        }
        var left: [(name: String, stamp: String)] = []
        for name in try names() where !name.hasPrefix("FaultTests.") {
            let stamp = stamps.stamp(of: String(name[..<name.firstIndex(of: "/")!]))
            if let test = known[name], test.stamp == stamp, sources[test.sources] != nil {
                tests.append(test)
            } else {
                left.append((name, stamp))
            }
        }
        let old = tests.count(where: isOld)
        if old > 0 { say("\(old) tests were surveyed with other sources.") }
        let count = max(1, jobs)
        // Some at a time, so that what is known by then is kept when somebody stops it.
        while !left.isEmpty {
            let some = left.prefix(50)
            left.removeFirst(some.count)
            for test in try examine(Array(some), limit, jobs: count) {
                tests.append(test)
                known[test.name] = test
            }
            try save()
        }
    }

    private func examine(_ some: [(name: String, stamp: String)], _ limit: Double, jobs: Int) throws -> [Test] {
        let results = Mutex<(next: Int, tests: [Test], failure: (any Error)?)>((0, [], nil))
        DispatchQueue.concurrentPerform(iterations: jobs) { job in
            while let index = results.withLock({ results -> Int? in
                guard results.next < some.count, results.failure == nil else { return nil }
                defer { results.next += 1 }
                return results.next
            }) {
                do {
                    let test = try examine(some[index].name, some[index].stamp, limit, job: job)
                    if let test { results.withLock { $0.tests.append(test) } }
                } catch {
                    results.withLock { $0.failure = error }
                }
            }
        }
        return try results.withLock { results in
            if let failure = results.failure { throw failure }
            return results.tests
        }
    }

    private func examine(_ name: String, _ stamp: String, _ limit: Double, job: Int) throws -> Test? {
        let asked = workshop.folder + "/asked\(job)"
        try Data(count: workshop.count).write(to: URL(fileURLWithPath: asked))
        let began = Date()
        let child = try Child.run(
            arguments([name]),
            in: workshop.copy,
            environment: ["SEALEDDB_MUTANTS_ASKED": asked],
            limit: limit
        )
        let seconds = Date().timeIntervalSince(began)
        guard child.end == .status(0) else {
            say("\(name) fails without a mutant (\(child.end)): left out.")
            let log = workshop.folder + "/\(name.replacing("/", with: " ")).log"
            try child.output.write(toFile: log, atomically: true, encoding: .utf8)
            return nil
        }
        let bytes = try Data(contentsOf: URL(fileURLWithPath: asked))
        let test = Test(
            name: name,
            stamp: stamp,
            sources: stamps.state,
            seconds: seconds,
            asked: NumberSet(bytes.indices.filter { bytes[$0] != 0 })
        )
        if test.isSlow { say("\(name) takes \(Int(seconds)) s, and comes last.") }
        return test
    }

    private func names() throws -> [String] {
        let child = try Child.run(
            [program, "--disable-xctest", "--testing-library", "swift-testing", "--list-tests"],
            in: workshop.copy,
            environment: [:],
            limit: 120
        )
        return child.output.split(separator: "\n").filter { $0.contains("/") && $0.contains("Tests.") }
            .map(String.init).sorted()
    }

    /// Whether the sources were others when the test was surveyed. It may fail by now without a mutant, too.
    func isOld(_ test: Test) -> Bool { test.sources != stamps.state }

    /// What the start of the test program takes, as far as the tests tell.
    var startSeconds: Double { tests.map(\.seconds).min() ?? 0 }

    /// Those that ask for a mutant: the cheap ones that ask for few first, the slow ones last.
    func thatCouldNotice(_ mutant: Mutant) -> [Test] {
        tests.filter { asks($0, for: mutant) }.sorted { $0.rank < $1.rank }
    }

    private func asks(_ test: Test, for mutant: Mutant) -> Bool {
        let then = sources[test.sources] ?? [:]
        let places = [mutant.file] + (mutant.operation == .named ? [Stamps.table] : [])
        guard places.contains(where: { then[$0] != stamps.sources[$0] }) else { return test.asked.contains(mutant.id) }
        return test.asked.containsAny(of: workshop.numbers(of: mutant.file))
    }
}

/// A set of numbers, some thousand of some hundred thousand.
struct NumberSet: Codable {
    private let bits: Data
    let count: Int

    init(_ numbers: [Int]) {
        var bits = Data(count: (numbers.max() ?? 0) / 8 + 1)
        for number in numbers { bits[number / 8] |= 1 << (number % 8) }
        self.bits = bits
        count = numbers.count
    }

    func contains(_ number: Int) -> Bool {
        number / 8 < bits.count && bits[number / 8] & 1 << (number % 8) != 0
    }

    func containsAny(of numbers: Range<Int>) -> Bool { numbers.contains(where: contains) }
}
