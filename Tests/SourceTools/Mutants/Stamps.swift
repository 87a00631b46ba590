import Foundation

/// Tells what has changed since a test was surveyed.
///
/// A survey takes half an hour, so it outlives changes of the sources. What it does not know of them it makes up for in a
/// way that can only let fewer mutants be found: in a file that has changed, a test that came to the file may notice each
/// mutant, and who comes there for the first time is not known.
struct Stamps {
    /// Of each file of `Sources`, and of the table of named mutants, whose numbers depend on their order.
    let sources: [String: UInt64]
    /// Of all of `sources`, and how mutants are made.
    let state: UInt64

    static let table = "named mutants"

    private let rewriter: UInt64
    private let tests: [String: UInt64]
    private let allTests: UInt64

    init(package: String) throws {
        var sources: [String: UInt64] = [:]
        for file in Stamps.files(package, "Sources") {
            sources[String(file.dropFirst("Sources/".count))] = try Stamps.hash(package, [file])
        }
        let tools = Stamps.files(package, "Tests/SourceTools/Mutants")
        sources[Stamps.table] = try Stamps.hash(package, tools.filter { $0.contains("/NamedMutants+") })
        self.sources = sources
        rewriter = try Stamps.hash(package, tools.filter { $0.hasSuffix("/Rewriter.swift") })
        var tests: [String: UInt64] = [:]
        let files = Stamps.files(package, "Tests").filter { $0.hasSuffix("Tests.swift") }
        for file in files {
            let parts = file.split(separator: "/")
            tests["\(parts[1]).\(parts.last!.dropLast(6))"] = try Stamps.hash(package, [file])
        }
        self.tests = tests
        allTests = try Stamps.hash(package, files)
        state = Stamps.hash("\(rewriter) \(sources.sorted { $0.key < $1.key })".utf8)
    }

    /// What a suite was surveyed with, but for the sources. One that is not named after its file depends on all of them.
    func stamp(of suite: String) -> String { "\(rewriter) \(tests[suite] ?? allTests)" }

    private static func files(_ package: String, _ folder: String) -> [String] {
        var found: [String] = []
        for case let name as String in FileManager.default.enumerator(atPath: package + "/" + folder) ?? .init()
        where [".swift", ".c", ".h"].contains(where: name.hasSuffix) {
            found.append(folder + "/" + name)
        }
        return found.sorted()
    }

    private static func hash(_ package: String, _ files: [String]) throws -> UInt64 {
        try hash(files.flatMap { Array($0.utf8) + (try Data(contentsOf: URL(fileURLWithPath: package + "/" + $0))) })
    }

    /// FNV-1a.
    private static func hash(_ bytes: some Sequence<UInt8>) -> UInt64 {
        bytes.reduce(0xcbf2_9ce4_8422_2325) { ($0 ^ UInt64($1)) &* 0x100_0000_01b3 }
    }
}
