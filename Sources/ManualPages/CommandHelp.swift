/// The help of a command, as `sealdb --experimental-dump-help` prints it in JSON.
struct CommandHelp: Decodable {
    struct Tool: Decodable { let command: CommandHelp }

    struct Name: Decodable {
        let kind: String
        let name: String
    }

    struct Argument: Decodable {
        let kind: String
        let isOptional: Bool
        let isRepeating: Bool
        let shouldDisplay: Bool
        let sectionTitle: String?
        let names: [Name]?
        let valueName: String?
        let defaultValue: String?
        let allValues: [String]?
        let abstract: String?
        let discussion: String?

        var isPositional: Bool { kind == "positional" }
    }

    let commandName: String
    let superCommands: [String]?
    let abstract: String?
    let discussion: String?
    let arguments: [Argument]?
    let subcommands: [CommandHelp]?
    let shouldDisplay: Bool

    /// The words that call it.
    var words: [String] { (superCommands ?? []) + [commandName] }

    /// The name of its page.
    var pageName: String { words.joined(separator: "-") }

    /// The commands below it that have pages.
    var children: [CommandHelp] { (subcommands ?? []).filter { $0.shouldDisplay && $0.commandName != "help" } }

    /// This one and all below it.
    var all: [CommandHelp] { [self] + children.flatMap(\.all) }

    var shownArguments: [Argument] { (arguments ?? []).filter(\.shouldDisplay) }
}

/// The parts of the text below the abstract of a help.
struct HelpText {
    enum Block {
        case paragraph(String)
        case literal([String])
    }

    /// A section with a heading in capitals, whose lines are names and what they mean.
    struct Table {
        let title: String
        var rows: [(name: String, text: String)] = []
    }

    private(set) var blocks: [Block] = []
    private(set) var examples: [[String]] = []
    private(set) var tables: [Table] = []

    init(_ text: String) {
        for part in text.split(separator: "\n\n") {
            let lines = part.split(separator: "\n", omittingEmptySubsequences: false).map(String.init)
            let isIndented = lines.count > 1 && lines.dropFirst().allSatisfy { $0.hasPrefix("  ") }
            if isIndented, lines[0] == lines[0].uppercased() {
                tables.append(HelpText.table(lines))
            } else if lines.allSatisfy({ $0.hasPrefix("  ") }) {
                let literal = lines.map { String($0.dropFirst(2)) }
                // What calls the command is an example; anything else belongs to the text around it.
                if literal.contains(where: { $0.contains("sealdb ") }) {
                    examples.append(literal)
                } else if case .literal(let former) = blocks.last {
                    blocks[blocks.count - 1] = .literal(former + [""] + literal)
                } else {
                    blocks.append(.literal(literal))
                }
            } else {
                blocks.append(.paragraph(lines.joined(separator: " ")))
            }
        }
    }

    /// A line that begins further to the right goes on with the one before it.
    private static func table(_ lines: [String]) -> Table {
        var table = Table(title: lines[0])
        for line in lines.dropFirst() {
            if line.hasPrefix("    "), !table.rows.isEmpty {
                table.rows[table.rows.count - 1].text += " " + line.drop { $0 == " " }
            } else {
                let content = line.dropFirst(2)
                let gap = content.firstRange(of: "  ")
                let name = gap.map { content[..<$0.lowerBound] } ?? content
                table.rows.append((String(name), String(content[name.endIndex...].drop { $0 == " " })))
            }
        }
        return table
    }
}
