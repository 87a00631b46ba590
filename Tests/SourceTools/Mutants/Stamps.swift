import Foundation

/// Tells whether a suite would still ask for the same mutants: of the library's and the command's sources, the table of
/// named mutants, what tests share, and the suite's own file.
struct Stamps {
    private let common: UInt64
    private let tests: [String: UInt64]
    private let allTests: UInt64

    init(package: String) throws {
        common = try Stamps.hash(
            package,
            Stamps.files(package, "Sources") + [
                "Tests/SourceTools/Mutants/NamedMutants+Table.swift",
                "Tests/SourceTools/Mutants/NamedMutants+Answers.swift", "Tests/SourceTools/Mutants/Rewriter.swift",
            ]
                + Stamps.files(package, "Tests").filter { $0.contains("/Support/") }
        )
        var tests: [String: UInt64] = [:]
        let files = Stamps.files(package, "Tests").filter { $0.hasSuffix("Tests.swift") }
        for file in files {
            let parts = file.split(separator: "/")
            tests["\(parts[1]).\(parts.last!.dropLast(6))"] = try Stamps.hash(package, [file])
        }
        self.tests = tests
        allTests = try Stamps.hash(package, files)
    }

    /// A suite that is not named after its file depends on all of them.
    func stamp(of suite: String) -> String { "\(common) \(tests[suite] ?? allTests)" }

    private static func files(_ package: String, _ folder: String) -> [String] {
        var found: [String] = []
        for case let name as String in FileManager.default.enumerator(atPath: package + "/" + folder) ?? .init()
        where [".swift", ".c", ".h"].contains(where: name.hasSuffix) {
            found.append(folder + "/" + name)
        }
        return found.sorted()
    }

    /// FNV-1a.
    private static func hash(_ package: String, _ files: [String]) throws -> UInt64 {
        var hash: UInt64 = 0xcbf2_9ce4_8422_2325
        for file in files {
            for byte in Array(file.utf8) + [UInt8](try Data(contentsOf: URL(fileURLWithPath: package + "/" + file))) {
                hash = (hash ^ UInt64(byte)) &* 0x100_0000_01b3
            }
        }
        return hash
    }
}
