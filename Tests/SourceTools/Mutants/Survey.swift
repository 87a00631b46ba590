import Foundation

/// The tests of the copy, and which of them ask for which mutant.
struct Survey {
    struct Test: Codable {
        /// Such as `SealedDBTests.LaneTests/whoCannotHaveAllKeepsNone()`.
        let name: String
        /// Of what it was surveyed with.
        let stamp: String
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

    let workshop: Workshop
    private(set) var tests: [Test] = []

    init(_ workshop: Workshop) { self.workshop = workshop }

    var program: String { workshop.copy + "/.build/debug/SealedDBPackageTests.xctest" }

    func arguments(_ names: [String]) -> [String] {
        let special = /[.()\[\]|?*+^$\\]/
        let filter = names.map { $0.replacing(special) { "\\" + $0.output } }.joined(separator: "|")
        return [
            program, "--disable-xctest", "--testing-library", "swift-testing", "--filter", "^(\(filter))(/|$)",
        ]
    }

    /// Runs each test once, without a mutant, unless that was done before. Those that fail now tell nothing later, and are
    /// left out, and so is the fault harness, which takes minutes.
    mutating func make(limit: Double) throws {
        let record = workshop.folder + "/survey.plist"
        var known: [String: Test] = [:]
        if let data = try? Data(contentsOf: URL(fileURLWithPath: record)),
            let past = try? PropertyListDecoder().decode([Test].self, from: data)
        {
            known = Dictionary(uniqueKeysWithValues: past.map { ($0.name, $0) })
        }
        func save() throws {
            let encoder = PropertyListEncoder()
            encoder.outputFormat = .binary
            try encoder.encode(Array(known.values)).write(to: URL(fileURLWithPath: record), options: .atomic)
        }
        let stamps = try Stamps(package: workshop.package)
        var lastSaved = Date()
        for name in try names() where !name.hasPrefix("FaultTests.") {
            let stamp = stamps.stamp(of: String(name[..<name.firstIndex(of: "/")!]))
            if let test = known[name], test.stamp == stamp {
                tests.append(test)
            } else if let test = try examine(name, stamp, limit) {
                tests.append(test)
                known[name] = test
            }
            if lastSaved.timeIntervalSinceNow < -60 {
                try save()
                lastSaved = Date()
            }
        }
        try save()
    }

    private func examine(_ name: String, _ stamp: String, _ limit: Double) throws -> Test? {
        let asked = workshop.folder + "/asked"
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

    /// Those that ask for a mutant: the cheap ones that ask for few first, the slow ones last.
    func thatCouldNotice(_ mutant: Mutant) -> [Test] {
        tests.filter { $0.asked.contains(mutant.id) }.sorted { $0.rank < $1.rank }
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
}
