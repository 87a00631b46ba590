// Names each public declaration of the library that has no comment, from the symbol graphs that the compiler makes.
//
//     CheckDocs DIRECTORY
//
// What the compiler makes itself has no place in the sources, and needs no comment. An extension is no declaration; its
// members are.

import Foundation

struct SymbolGraph: Decodable {
    struct Symbol: Decodable {
        struct Kind: Decodable {
            let identifier: String
        }
        struct Location: Decodable {
            struct Position: Decodable {
                let line: Int
            }
            let uri: String
            let position: Position
        }
        struct Comment: Decodable {
            struct Line: Decodable {
                let text: String
            }
            let lines: [Line]
        }
        let kind: Kind
        let pathComponents: [String]
        let location: Location?
        let docComment: Comment?
    }
    let symbols: [Symbol]
}

let directory = URL(fileURLWithPath: CommandLine.arguments[1])
let files = try FileManager.default.contentsOfDirectory(at: directory, includingPropertiesForKeys: nil)
var declarations = 0
var missing: [String] = []
for file in files where file.lastPathComponent.hasSuffix(".symbols.json") {
    let graph = try JSONDecoder().decode(SymbolGraph.self, from: Data(contentsOf: file))
    for symbol in graph.symbols where symbol.kind.identifier != "swift.extension" {
        guard let location = symbol.location else { continue }
        declarations += 1
        let text = symbol.docComment?.lines.map(\.text).joined().trimmingCharacters(in: .whitespaces) ?? ""
        guard text.isEmpty else { continue }
        let path = location.uri.components(separatedBy: "/Sources/").last ?? location.uri
        missing.append("Sources/\(path):\(location.position.line + 1): \(symbol.pathComponents.joined(separator: "."))")
    }
}
guard declarations > 500 else {
    print("There are only \(declarations) public declarations in \(directory.path): the wrong symbol graphs?")
    exit(1)
}
guard missing.isEmpty else {
    print(missing.sorted().joined(separator: "\n"))
    print("\(missing.count) of \(declarations) public declarations have no comment.")
    exit(1)
}
print("All \(declarations) public declarations have comments.")
