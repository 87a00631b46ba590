import Foundation

/// The tests of the copy, and which of them ask for which mutant.
struct Suites {
    struct Suite: Codable {
        let name: String
        /// Alone, without a mutant.
        let seconds: Double
        /// For each mutant, whether the suite asked for it.
        let asked: Data
    }

    let workshop: Workshop
    private(set) var suites: [Suite] = []

    init(_ workshop: Workshop) { self.workshop = workshop }

    var program: String { workshop.copy + "/.build/debug/SealedDBPackageTests.xctest" }

    func arguments(_ filter: String) -> [String] {
        [program, "--disable-xctest", "--testing-library", "swift-testing", "--filter", filter]
    }

    /// A pattern for all tests of some suites.
    static func filter(_ names: [String]) -> String {
        "^(" + names.map { $0.replacing(".", with: "\\.") }.joined(separator: "|") + ")/"
    }

    /// Runs each suite once, without a mutant. Those that fail now tell nothing later, and are left out.
    mutating func survey(includingFaults: Bool, limit: Double) throws {
        let record = workshop.folder + "/survey.json"
        let stamp = try stampOfProgram()
        var known: [String: Suite] = [:]
        if let data = try? Data(contentsOf: URL(fileURLWithPath: record)),
            let past = try? JSONDecoder().decode(Survey.self, from: data), past.stamp == stamp
        {
            known = Dictionary(uniqueKeysWithValues: past.suites.map { ($0.name, $0) })
        }
        let names = try names().filter { includingFaults || !$0.hasPrefix("FaultTests.") }
        for name in names {
            if let suite = known[name] {
                suites.append(suite)
                continue
            }
            let asked = workshop.folder + "/asked"
            try Data(count: workshop.count).write(to: URL(fileURLWithPath: asked))
            let began = Date()
            let child = try Child.run(
                arguments(Suites.filter([name])),
                in: workshop.copy,
                environment: ["SEALEDDB_MUTANTS_ASKED": asked],
                limit: limit
            )
            let seconds = Date().timeIntervalSince(began)
            guard child.end == .status(0) else {
                say("\(name) fails without a mutant (\(child.end)): left out.")
                try? child.output.write(toFile: workshop.folder + "/\(name).log", atomically: true, encoding: .utf8)
                continue
            }
            let suite = Suite(name: name, seconds: seconds, asked: try Data(contentsOf: URL(fileURLWithPath: asked)))
            suites.append(suite)
            say(
                "\(name): \(suite.asked.count { $0 != 0 }) mutants in \(seconds.formatted(.number.precision(.fractionLength(1)))) s"
            )
            let survey = Survey(
                stamp: stamp,
                suites: suites + known.values.filter { one in !suites.contains { $0.name == one.name } }
            )
            try JSONEncoder().encode(survey).write(to: URL(fileURLWithPath: record))
        }
    }

    private struct Survey: Codable {
        let stamp: String
        let suites: [Suite]
    }

    private func stampOfProgram() throws -> String {
        let attributes = try FileManager.default.attributesOfItem(atPath: program)
        return "\(attributes[.size] ?? "") \(attributes[.modificationDate] ?? "")"
    }

    private func names() throws -> [String] {
        let child = try Child.run(
            [program, "--disable-xctest", "--testing-library", "swift-testing", "--list-tests"],
            in: workshop.copy,
            environment: [:],
            limit: 120
        )
        let tests = child.output.split(separator: "\n").filter { $0.contains("/") && $0.contains("Tests.") }
        return Set(tests.map { String($0[..<$0.firstIndex(of: "/")!]) }).sorted()
    }

    /// Those that ask for a mutant: the cheap ones that ask for few first.
    func thatCouldNotice(_ mutant: Mutant) -> [Suite] {
        suites.filter { mutant.id < $0.asked.count && $0.asked[mutant.id] != 0 }
            .sorted {
                $0.seconds * Double($0.asked.count { $0 != 0 }) < $1.seconds * Double($1.asked.count { $0 != 0 })
            }
    }
}
