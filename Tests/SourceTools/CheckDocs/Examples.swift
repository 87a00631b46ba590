// Finds the declarations that no example uses: none of the articles, the README, Examples and the comments.

import Foundation
import SwiftParser
import SwiftSyntax

/// The names that stand in one piece of code, outside of comments and texts.
struct Example {
    /// All of them, and operators.
    private(set) var names: Set<String>
    /// Those after a dot or a word that declares something, and labels.
    private(set) var members: Set<String> = []
    /// Those that are called.
    private(set) var calls: Set<String> = []
    private(set) var hasSubscript = false

    /// - Parameter owner: what the code is about, if that is known.
    init(_ code: String, about owner: [String] = []) {
        names = Set(owner)
        let tokens = Array(Parser.parse(source: code).tokens(viewMode: .sourceAccurate))
        for (index, token) in tokens.enumerated() {
            if case .stringSegment = token.tokenKind { continue }
            let name = token.text.trimmingCharacters(in: ["`"])
            let before = index > 0 ? tokens[index - 1] : token
            let after = index + 1 < tokens.count ? tokens[index + 1].text : ""
            let isLabel = after == ":" && ["(", ","].contains(before.text)
            let isMember = [".", "func", "var", "let", "case"].contains(before.text) || name == "init"
            names.insert(name)
            if isMember || isLabel { members.insert(name) }
            if after == "(" || after == "." { calls.insert(name) }
            if case .identifier = before.tokenKind, case .leftSquare = token.tokenKind, before.trailingTrivia.isEmpty {
                hasSubscript = true
            }
        }
    }

    /// Those of a text in Markdown.
    static func blocks(of text: String) -> [String] {
        var blocks: [String] = []
        var isInside = false
        for line in text.components(separatedBy: "\n") {
            let start = line.trimmingCharacters(in: .whitespaces)
            if start.hasPrefix("```") {
                isInside = !isInside && start == "```swift"
                if isInside { blocks.append("") }
            } else if isInside {
                blocks[blocks.count - 1] += line + "\n"
            }
        }
        return blocks
    }
}

/// A type is shown if its name or one of its members is. A member is shown if an example speaks of the type: by its name,
/// or by that of a declaration in which it stands, such as the function that returns it. Overloads count as one.
struct ExampleCheck {
    private let declarations: [Declaration]
    private let examples: [Example]
    private let articles: String
    /// For each type the names by which an example speaks of it.
    private var signs: [String: Set<String>] = [:]

    private static let types: Set = ["swift.struct", "swift.class", "swift.enum", "swift.protocol"]
    /// Types whose values the examples have at hand.
    private static let atHand = [
        "Database": ["db"], "DatabaseQueue": ["queue", "store"], "DatabasePool": ["pool"],
        "DatabaseAccess": ["queue", "pool"],
    ]

    // What needs no example, besides what a protocol asks for and what is deprecated:

    /// Names that C or FMDB has, of which one of each kind tells how they are used.
    private static let alike = ["SQLITE_", "kFTS", "FM", "CipherLogLevel"]
    /// What is written by `\(…)`.
    private static let interpolation = "appendInterpolation"
    /// Long tables of constants, if an article names each: in code one asks for a few of them.
    private static let tables = ["AuthorizerAction", "DatabaseError.Reason", "StoreDiagnosis.Finding"]

    init(_ declarations: [Declaration]) throws {
        self.declarations = declarations
        let pages = try texts(in: "Sources/SealedDB/SealedDB.docc", ending: ".md")
        articles = pages.joined()
        let readme = try String(contentsOfFile: "README.md", encoding: .utf8)
        let programs = try texts(in: "Examples", ending: ".swift")
        let blocks = (pages + [readme]).flatMap(Example.blocks) + programs
        examples =
            blocks.map { Example($0) }
            + declarations.flatMap { one in Example.blocks(of: one.comment).map { Example($0, about: one.owner) } }
        let mentions = Dictionary(grouping: declarations.flatMap { one in one.types.map { ($0, one) } }, by: \.0)
        for type in declarations where Self.types.contains(type.kind) {
            let users = mentions[type.identifier, default: []].map(\.1)
            let names = users.map { $0.name == "init" ? $0.owner.last ?? "" : $0.name }
            signs[type.path, default: [type.name]].formUnion(names + Self.atHand[type.path, default: []])
        }
    }

    /// The declarations that no example uses.
    var missing: [Declaration] { declarations.filter { !isExempt($0) && !isShown($0) } }

    private func isExempt(_ one: Declaration) -> Bool {
        if one.isRequired || one.isDeprecated || one.name == Self.interpolation { return true }
        if let start = Self.alike.first(where: one.name.hasPrefix), one.name != start {
            return declarations.contains {
                $0.owner == one.owner && $0.kind == one.kind && $0.name.hasPrefix(start) && isShown($0)
            }
        }
        return Self.tables.contains(one.owner.joined(separator: "."))
            && articles.contains("``" + (one.owner + [one.name]).joined(separator: "/"))
    }

    private func isShown(_ one: Declaration) -> Bool {
        let members = declarations.lazy.filter { $0.owner == one.owner + [one.name] }
        if Self.types.contains(one.kind), members.contains(where: isShown) { return true }
        guard let type = one.owner.last else { return examples.contains { $0.names.contains(one.name) } }
        let signs = signs[one.owner.joined(separator: ".")]
        return examples.contains { example in
            guard signs.map({ !example.names.isDisjoint(with: $0) }) ?? true else { return false }
            return switch one.name {
            case "init": example.calls.contains(type) || example.members.contains("init")
            case "subscript": example.hasSubscript
            case let name where name.first?.isLetter == false: example.names.contains(name)
            default: example.members.contains(one.name)
            }
        }
    }
}

private func texts(in directory: String, ending: String) throws -> [String] {
    let files = FileManager.default.enumerator(atPath: directory)?.compactMap { $0 as? String } ?? []
    return try files.filter { $0.hasSuffix(ending) }.sorted()
        .map { try String(contentsOfFile: "\(directory)/\($0)", encoding: .utf8) }
}
