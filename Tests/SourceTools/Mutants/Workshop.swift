import Foundation

/// The rewritten copy of the package, and how it is built.
struct Workshop {
    let package: String
    let folder: String

    var copy: String { folder + "/package" }
    private var excludedPath: String { folder + "/not-compiling" }

    private(set) var mutants: [Mutant] = []
    private(set) var count = 0
    private var firstNumbers: [String: Int] = [:]

    init(package: String, folder: String) {
        self.package = package
        self.folder = folder
    }

    /// Copies what has changed, with mutants, and compiles it; those that do not compile are left out.
    mutating func build() throws {
        while true {
            try write()
            say("\(mutants.count) mutants in \(Set(mutants.map(\.file)).count) files. Building.")
            let child = try Child.run(
                ["/usr/bin/env", "swift", "build", "--build-tests"],
                in: copy,
                environment: [:],
                limit: 7200
            )
            if child.end == .status(0) { return }
            let refused = mutantsRefused(in: child.output)
            guard !refused.isEmpty else {
                for line in Set(child.output.split(separator: "\n").filter { $0.contains("error:") }).sorted() {
                    say("\(line)")
                }
                throw Problem("The copy with the mutants does not compile: see \(copy).")
            }
            say("\(refused.count) do not compile, and are left out.")
            var known = (try? String(contentsOfFile: excludedPath, encoding: .utf8)) ?? ""
            for mutant in refused { known += mutant.signature + "\n" }
            try known.write(toFile: excludedPath, atomically: true, encoding: .utf8)
        }
    }

    /// Those of the lines that the compiler complains of.
    private func mutantsRefused(in output: String) -> [Mutant] {
        var lines: [String: Set<Int>] = [:]
        for match in output.matches(of: /Sources\/([^:\s]+\.swift):([0-9]+):[0-9]+: error:/) {
            if let line = Int(match.output.2) { lines[String(match.output.1), default: []].insert(line) }
        }
        let mutants = mutants.filter { $0.operation != .named }
        let there = mutants.filter { lines[$0.file]?.contains($0.line) == true }
        if !there.isEmpty { return there }
        // A statement of several lines: those that begin before it.
        return mutants.filter { mutant in
            lines[mutant.file]?.contains { (mutant.line...mutant.line + 8).contains($0) } == true
        }
    }

    /// Those of all mutants that a file has, or had, but for the named ones.
    func numbers(of file: String) -> Range<Int> {
        guard let first = firstNumbers[file] else { return 0..<0 }
        return first..<first + FileNumbers.perFile
    }

    private mutating func write() throws {
        let excluded = Set(
            ((try? String(contentsOfFile: excludedPath, encoding: .utf8)) ?? "").split(separator: "\n").map(String.init)
        )
        mutants = []
        var numbers = try FileNumbers(path: folder + "/numbers")
        let unknown = NamedMutant.all.first { !FileManager.default.fileExists(atPath: package + "/Sources/" + $0.file) }
        if let unknown { throw Problem("The mutant \"\(unknown.name)\" is of a file that is gone: \(unknown.file)") }
        var written: Set<String> = []
        for path in try files() {
            let source = package + "/" + path
            var contents = try Data(contentsOf: URL(fileURLWithPath: source))
            if isMutated(path) {
                let file = String(path.dropFirst("Sources/".count))
                let first = numbers.first(of: file)
                firstNumbers[file] = first
                let text = try insertNamed(into: String(decoding: contents, as: UTF8.self), file: file, numbers)
                let rewriter = Rewriter(file: file, text: text, firstID: first) {
                    excluded.contains($0.signature)
                }
                guard rewriter.endID <= first + FileNumbers.perFile else { throw Problem("\(file) is too long.") }
                mutants += rewriter.mutants
                let level = path.hasPrefix("Sources/SealedDB/") ? "internal " : ""
                contents = Data(rewriter.rewritten(prefix: "\(level)import CSealedDBSystem; ").utf8)
            } else if path == "Sources/CSealedDBSystem/include/CSealedDBSystem.h" {
                contents += Data(Switch.header.utf8)
            } else if path == "Sources/CSealedDBSystem/system.c" {
                contents += Data(Switch.implementation.utf8)
            }
            try put(contents, permissionsOf: source, at: copy + "/" + path)
            written.insert(path)
        }
        try numbers.save()
        count = numbers.end
        // What is gone from the package.
        for folder in ["Sources", "Tests"] {
            for case let name as String in FileManager.default.enumerator(atPath: copy + "/" + folder) ?? .init() {
                let path = folder + "/" + name
                if path.hasSuffix(".swift"), !written.contains(path) {
                    try FileManager.default.removeItem(atPath: copy + "/" + path)
                }
            }
        }
    }

    /// Those of the table, before all others.
    private mutating func insertNamed(into source: String, file: String, _ numbers: FileNumbers) throws -> String {
        var text = source
        for (index, named) in NamedMutant.all.enumerated() where named.file == file {
            let id = numbers.firstOfNamed + index
            let before = source.prefix(upTo: source.firstRange(of: named.text)?.lowerBound ?? source.startIndex)
            text = try named.inserted(into: text, question: "sealeddb_mutated(\(id))")
            mutants.append(
                Mutant(
                    id: id,
                    file: file,
                    line: before.count { $0 == "\n" } + 1,
                    function: "",
                    operation: .named,
                    original: named.name,
                    repetition: 0
                )
            )
        }
        return text
    }

    private func isMutated(_ path: String) -> Bool {
        path.hasSuffix(".swift")
            && (Scope.folders.contains { path.hasPrefix("Sources/\($0)/") }
                || NamedMutant.all.contains { path == "Sources/\($0.file)" })
    }

    /// What the package consists of, in a fixed order.
    private func files() throws -> [String] {
        var found = ["Package.swift"]
        if FileManager.default.fileExists(atPath: package + "/Package.resolved") { found.append("Package.resolved") }
        for folder in ["Sources", "Tests", "Examples", "scripts"] {
            for case let name as String in FileManager.default.enumerator(atPath: package + "/" + folder) ?? .init() {
                var isFolder: ObjCBool = false
                let path = folder + "/" + name
                guard FileManager.default.fileExists(atPath: package + "/" + path, isDirectory: &isFolder),
                    !isFolder.boolValue,
                    !path.contains("/.build/"), !path.hasPrefix("Tests/SourceTools/")
                else { continue }
                found.append(path)
            }
        }
        return found.sorted()
    }

    /// Leaves a file that is so already as it is, because what has a new date is compiled again.
    private func put(_ contents: Data, permissionsOf source: String, at path: String) throws {
        let place = URL(fileURLWithPath: path)
        if let present = try? Data(contentsOf: place), present == contents { return }
        try FileManager.default.createDirectory(
            at: place.deletingLastPathComponent(),
            withIntermediateDirectories: true
        )
        try contents.write(to: place)
        let attributes = try FileManager.default.attributesOfItem(atPath: source)
        try FileManager.default.setAttributes(
            [.posixPermissions: attributes[.posixPermissions] ?? 0o644],
            ofItemAtPath: path
        )
    }
}

/// Keeps the numbers of a file's mutants from depending on other files, which would all be compiled again.
private struct FileNumbers {
    static let perFile = 1024
    /// Stands for the table of named mutants, which has numbers of its own.
    private static let named = "named"

    private let path: String
    private var files: [String]

    init(path: String) throws {
        self.path = path
        let text = (try? String(contentsOfFile: path, encoding: .utf8)) ?? ""
        files = text.split(separator: "\n").map(String.init)
        if !files.contains(FileNumbers.named) { files.append(FileNumbers.named) }
    }

    var firstOfNamed: Int { files.firstIndex(of: FileNumbers.named)! * FileNumbers.perFile }

    mutating func first(of file: String) -> Int {
        if !files.contains(file) { files.append(file) }
        return files.firstIndex(of: file)! * FileNumbers.perFile
    }

    var end: Int { files.count * FileNumbers.perFile }

    func save() throws {
        try files.joined(separator: "\n").write(toFile: path, atomically: true, encoding: .utf8)
    }
}

struct Problem: Error, CustomStringConvertible {
    let description: String
    init(_ description: String) { self.description = description }
}
