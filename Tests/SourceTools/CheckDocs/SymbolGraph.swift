// What the compiler says of the public declarations: as much of it as the checks ask for.

import Foundation

struct SymbolGraph: Decodable {
    struct Symbol: Decodable {
        struct Kind: Decodable {
            let identifier: String
        }
        struct Identifier: Decodable {
            let precise: String
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
        struct Availability: Decodable {
            let isUnconditionallyDeprecated: Bool?
        }
        struct Fragment: Decodable {
            let spelling: String
            let preciseIdentifier: String?
        }
        let kind: Kind
        let identifier: Identifier
        let pathComponents: [String]
        let location: Location?
        let docComment: Comment?
        let availability: [Availability]?
        let declarationFragments: [Fragment]?
    }
    struct Relationship: Decodable {
        struct Origin: Decodable {
            let displayName: String
        }
        let source: String
        let sourceOrigin: Origin?
    }
    let symbols: [Symbol]
    let relationships: [Relationship]
}

/// A public declaration that stands in the sources.
struct Declaration {
    let kind: String
    /// The name of the type, if it is a member, and its own without parameters.
    let owner: [String]
    let name: String
    let comment: String
    let place: String
    /// The text of the declaration, and the types of the library in it.
    let text: String
    let types: Set<String>
    let identifier: String
    /// Whether a protocol asks for it: the one who uses it does so by what the protocol is for.
    let isRequired: Bool
    let isDeprecated: Bool

    var path: String { (owner + [name]).joined(separator: ".") }

    /// What the compiler makes itself has no place in the sources, and an extension is no declaration; its members are.
    static func all(in directory: URL) throws -> [Declaration] {
        let files = try FileManager.default.contentsOfDirectory(at: directory, includingPropertiesForKeys: nil)
        return try files.filter { $0.lastPathComponent.hasSuffix(".symbols.json") }.flatMap { file in
            let graph = try JSONDecoder().decode(SymbolGraph.self, from: Data(contentsOf: file))
            let required = Set(graph.relationships.filter { $0.sourceOrigin != nil }.map(\.source))
            return graph.symbols.compactMap { symbol -> Declaration? in
                guard symbol.kind.identifier != "swift.extension", let location = symbol.location,
                    let name = symbol.pathComponents.last
                else { return nil }
                let file = location.uri.components(separatedBy: "/Sources/").last ?? location.uri
                let fragments = symbol.declarationFragments ?? []
                return Declaration(
                    kind: symbol.kind.identifier,
                    owner: symbol.pathComponents.dropLast(),
                    name: name.firstIndex(of: "(").map { String(name[..<$0]) } ?? name,
                    comment: symbol.docComment?.lines.map(\.text).joined(separator: "\n") ?? "",
                    place: "Sources/\(file):\(location.position.line + 1)",
                    text: fragments.map(\.spelling).joined(),
                    types: Set(fragments.compactMap(\.preciseIdentifier)),
                    identifier: symbol.identifier.precise,
                    isRequired: required.contains(symbol.identifier.precise),
                    isDeprecated: symbol.availability?.contains { $0.isUnconditionallyDeprecated ?? false } ?? false
                )
            }
        }
    }
}
