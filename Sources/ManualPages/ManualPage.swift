/// The manual page of a command. All that it says of the command comes from its help.
struct ManualPage {
    let command: CommandHelp
    let root: CommandHelp
    /// As `.Dd` wants it.
    let date: String

    private var help: HelpText { HelpText(command.discussion ?? "") }
    private var isRoot: Bool { command.pageName == root.pageName }

    var text: String {
        var text = ".Dd \(date)\n.Dt \(command.pageName.uppercased()) 1\n.Os SealedDB\n"
        text += ".Sh NAME\n.Nm \(command.pageName)\n.Nd \(Roff.escaped(withoutStop(command.abstract ?? "")))\n"
        text += ".Sh SYNOPSIS\n" + synopsis
        text += ".Sh DESCRIPTION\n" + description
        text += options
        for title in ["ENVIRONMENT", "FILES"] {
            let rows = rows(of: title).filter { isRoot || mentions($0.name) }
            if !rows.isEmpty { text += ".Sh \(title)\n" + list(rows, title == "FILES" ? "Pa" : "Ev") }
        }
        text += ".Sh EXIT STATUS\n"
        text +=
            isRoot
            ? list(rows(of: "EXIT STATUS"), nil) : "0 if all is done.\nThe others are listed in\n.Xr sealdb 1 .\n"
        if !help.examples.isEmpty { text += ".Sh EXAMPLES\n" + help.examples.map(Roff.literal).joined() }
        return text + ".Sh SEE ALSO\n" + references
    }

    private func rows(of title: String) -> [(name: String, text: String)] {
        HelpText(root.discussion ?? "").tables.first { $0.title == title }?.rows ?? []
    }

    private func withoutStop(_ text: String) -> String { text.hasSuffix(".") ? String(text.dropLast()) : text }

    // MARK: What is typed

    private var synopsis: String {
        var text = ".Nm sealdb\n"
        if !isRoot { text += ".Cm \(command.words.dropFirst().map(Roff.argument).joined(separator: " "))\n" }
        if !command.children.isEmpty { return text + ".Ar command\n.Op Ar arguments\n" }
        if command.shownArguments.contains(where: { !$0.isPositional && $0.isOptional }) { text += ".Op Ar options\n" }
        for argument in command.shownArguments where argument.isPositional || !argument.isOptional {
            let name = argument.isPositional ? "Ar \(value(argument))" : names(argument)
            let item = name + (argument.isRepeating ? " ..." : "")
            text += argument.isOptional ? ".Op \(item)\n" : ".\(item)\n"
        }
        return text
    }

    private func value(_ argument: CommandHelp.Argument) -> String { Roff.argument(argument.valueName ?? "value") }

    /// All names of an option, and its value.
    private func names(_ argument: CommandHelp.Argument) -> String {
        let names = (argument.names ?? []).map { "Fl \($0.kind == "long" ? "\\-" : "")\(Roff.escaped($0.name))" }
        return names.joined(separator: " , ") + (argument.kind == "option" ? " Ar \(value(argument))" : "")
    }

    private var description: String {
        // The line at the top says it already.
        var text = help.blocks.isEmpty ? Roff.paragraph(command.abstract ?? "") : ""
        for block in help.blocks {
            switch block {
            case .paragraph(let paragraph): text += (text.isEmpty ? "" : ".Pp\n") + Roff.paragraph(paragraph)
            case .literal(let lines): text += Roff.literal(lines)
            }
        }
        let positional = command.shownArguments.filter(\.isPositional)
        if !positional.isEmpty {
            text += ".Pp\nThe arguments are:\n" + items(positional.map { ("Ar \(value($0))", self.text(of: $0)) })
        }
        if !command.children.isEmpty {
            text += ".Pp\nThe commands are:\n"
            text += items(command.children.map { ("Xr \($0.pageName) 1", Roff.paragraph($0.abstract ?? "")) })
        }
        return text
    }

    /// By the titles of their groups, in the order of the help; those without a title last.
    private var options: String {
        let options = command.shownArguments.filter { !$0.isPositional }
        var titles: [String] = []
        for title in options.compactMap(\.sectionTitle) where !titles.contains(title) { titles.append(title) }
        guard !options.isEmpty else { return "" }
        var text = ".Sh OPTIONS\n"
        for title in titles.map(Optional.some) + [nil] {
            let group = options.filter { $0.sectionTitle == title }
            guard !group.isEmpty else { continue }
            if !titles.isEmpty { text += ".Ss \(Roff.escaped(title ?? "Others"))\n" }
            text += items(paired(group))
        }
        return text
    }

    /// The options of a group with their texts; `--x` and `--no-x` are one item.
    private func paired(_ group: [CommandHelp.Argument]) -> [(head: String, text: String)] {
        var items: [(head: String, text: String)] = []
        var former: String?
        for option in group {
            let name = option.names?.last?.name
            if let former, name == "no-" + former {
                items[items.count - 1].head += " , " + names(option)
            } else {
                items.append((names(option), text(of: option)))
            }
            former = name
        }
        return items
    }

    private func text(of argument: CommandHelp.Argument) -> String {
        var text = Roff.paragraph([argument.abstract, argument.discussion].compactMap(\.self).joined(separator: " "))
        // Where the help names them itself, they need not be named again.
        if let values = argument.allValues, !values.allSatisfy({ argument.abstract?.contains($0) == true }) {
            text += Roff.paragraph("Values: \(values.joined(separator: ", ")).")
        }
        if let value = argument.defaultValue { text += Roff.paragraph("Default: \(value).") }
        return text
    }

    // MARK: Lists

    private func items(_ items: [(head: String, text: String)]) -> String {
        ".Bl -tag -width Ds\n" + items.map { ".It \($0.head)\n\($0.text)" }.joined() + ".El\n"
    }

    private func list(_ rows: [(name: String, text: String)], _ macro: String?) -> String {
        items(
            rows.map { row in
                let name = Roff.argument(row.name)
                return (macro.map { "\($0) \(name)" } ?? name, Roff.paragraph(row.text))
            }
        )
    }

    // MARK: Other pages

    private func mentions(_ name: String) -> Bool {
        let texts = command.shownArguments.flatMap { [$0.abstract, $0.discussion] } + [command.discussion]
        return texts.compactMap(\.self).contains { $0.contains(name) }
    }

    private var references: String {
        let others = root.all.filter { $0.pageName != command.pageName }
        var pages = isRoot ? root.children : others.filter(isRelated)
        pages.sort { $0.pageName < $1.pageName }
        let names = pages.map(\.pageName) + (isRoot ? ["sqlite3"] : [])
        return names.enumerated().map { ".Xr \($1) 1\($0 < names.count - 1 ? " ," : "")\n" }.joined()
    }

    /// The commands above and below it, and those that its help names.
    private func isRelated(_ other: CommandHelp) -> Bool {
        if other.pageName == root.pageName || command.pageName.hasPrefix(other.pageName + "-") { return true }
        if other.superCommands == command.words { return true }
        let call = other.words.joined(separator: " ")
        let text = command.discussion ?? ""
        return text.ranges(of: call).contains { range in
            let next = text[range.upperBound...].first
            return next?.isLetter != true && next != "-"
        }
    }
}
