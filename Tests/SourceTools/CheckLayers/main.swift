// Finds what a folder of the library uses although CONTRIBUTING.md has it below that folder, and folders that cannot be read
// at a glance.
//
//     CheckLayers CONTRIBUTING.md Sources     # prints FILE:LINE: … and exits with 1 if there is one

import Foundation
import SwiftParser
import SwiftSyntax

/// As many files as one sees at a glance.
let mostFiles = 20

guard CommandLine.arguments.count == 3 else {
    print("Which table, and which folder?")
    exit(2)
}
let layers = try rows(ofTableIn: CommandLine.arguments[1])
let root = CommandLine.arguments[2]

struct Source {
    let path: String
    let layer: String
    let syntax: SourceFileSyntax
}

var sources: [Source] = []
var problems: [String] = []
for folder in try FileManager.default.subpathsOfDirectory(atPath: root).sorted() + [""] {
    let path = root + "/" + folder
    guard let names = try? FileManager.default.contentsOfDirectory(atPath: path) else { continue }
    let files = names.filter { $0.hasSuffix(".swift") }.sorted()
    if files.count > mostFiles { problems.append("\(path): \(files.count) files, more than \(mostFiles)") }
    let parts = folder.split(separator: "/")
    guard parts.count > 1, parts[0] == "SealedDB" else { continue }
    let layer = String(parts[1])
    if !files.isEmpty, !layers.contains(layer) { problems.append("\(path): is not in the table") }
    for file in files {
        let text = try String(contentsOfFile: path + "/" + file, encoding: .utf8)
        sources.append(Source(path: path + "/" + file, layer: layer, syntax: Parser.parse(source: text)))
    }
}

/// The layers that declare a type of this name.
var owners: [String: Set<String>] = [:]
for source in sources {
    for name in Declarations.of(source.syntax) { owners[name, default: []].insert(source.layer) }
}
let places = Dictionary(uniqueKeysWithValues: layers.enumerated().map { ($1, $0) })
for source in sources {
    guard let place = places[source.layer] else { continue }
    for use in Uses.of(source.syntax) {
        // What has the name in several layers may be any of them.
        guard let owners = owners[use.name], let nearest = owners.compactMap({ places[$0] }).min(), nearest > place
        else { continue }
        problems.append(
            "\(source.path):\(use.line): \(use.name) is of \(layers[nearest]), which is below \(source.layer)"
        )
    }
}
for problem in problems { print(problem) }
if problems.isEmpty { print("\(sources.count) files of \(layers.count) layers use those above them alone.") }
exit(problems.isEmpty ? 0 : 1)

/// The layers of the table, from above.
func rows(ofTableIn path: String) throws -> [String] {
    try String(contentsOfFile: path, encoding: .utf8).split(separator: "\n").compactMap { line in
        line.firstMatch(of: /^\| `SealedDB\/(\w+)` \|/).map { String($0.1) }
    }
}
