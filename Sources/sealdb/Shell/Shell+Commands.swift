import Foundation
import SealedDB

/// What the commands that begin with a dot do.
extension Shell {
    static let modes = ResultFormat.allCases.map(\.rawValue).joined(separator: ", ")

    func help(_ name: String?) throws {
        let commands = try name.map { [try DotCommand.named($0.begins(with: ".") ? String($0.dropFirst()) : $0)] }
        for command in commands ?? DotCommand.all {
            let usage = ".\(command.name) \(command.arguments)"
            let padding = String(repeating: " ", count: max(2, 24 - usage.count))
            try show(
                usage + (usage.count > 22 ? "\n" + String(repeating: " ", count: 24) : padding) + command.help + "\n"
            )
        }
        guard name == nil else { return }
        try show(
            """

            SQL ends with a semicolon. Tab completes names, the arrow keys bring back former lines, Ctrl-R finds them, \
            Ctrl-C ends a statement, Ctrl-D leaves.

            """
        )
    }

    func showSettings() throws {
        let isOn = { ($0 as Bool) ? "on" : "off" }
        let settings = [
            ("bail", isOn(stopsAtErrors)), ("changes", isOn(showsChanges)), ("echo", isOn(echoes)),
            ("explain", isOn(showsPlans)), ("headers", isOn(style.hasHeader)), ("mode", format.rawValue),
            ("nullvalue", "\"\(TerminalText.escaped(style.null ?? ""))\""), ("timer", isOn(showsTimes)),
        ]
        for (name, value) in settings {
            try show(String(repeating: " ", count: 9 - name.count) + "\(name): \(value)\n")
        }
    }

    // MARK: Schema

    private func shown(_ text: String) -> String {
        ResultOutput.isTerminal ? TerminalText.escaped(text, keepingNewlines: true) : text
    }

    func listTables(like pattern: String?) throws {
        let matching = try pattern.map { pattern in
            Set(
                try database.executeQuery(
                    "SELECT name FROM sqlite_schema WHERE name LIKE \(pattern)"
                ).all(String.self).map { ExactText($0) }
            )
        }
        let names = try SchemaObject.all(of: database).filter(\.isShown).map(\.name)
        for name in names.sorted() where matching?.contains(ExactText(name)) ?? true { try show(shown(name) + "\n") }
    }

    /// The pragma is a statement here: as a table, it is what the store has of that name, if it has anything.
    func listDatabases() throws {
        let stores = try database.executeQuery("PRAGMA database_list").all((Int, String, String?).self)
        let selections: [SQL] = stores.map { "SELECT \($0.1) AS name, \($0.2) AS file" }
        let rows = try database.executeQuery(selections.joined(separator: " UNION ALL "))
        defer { rows.close() }
        try rows.writeAll { resultWriter(to: output) }
    }

    func listIndexes(of table: String?) throws {
        let objects = try SchemaObject.those(of: table.map { [$0] } ?? [], in: SchemaObject.all(of: database))
        for name in objects.filter({ $0.kind == .index }).map(\.name).sorted() { try show(shown(name) + "\n") }
    }

    func showSchema(_ names: [String]) throws {
        for object in try SchemaObject.those(of: names, in: SchemaObject.all(of: database))
        where object.kind != .shadowTable {
            try show(shown(object.statement()))
        }
    }

    // MARK: Rows

    func setMode(_ words: [String]) throws(Failure) {
        guard let name = words.first else {
            do {
                return try show(format.rawValue + "\n")
            } catch {
                throw error as? Failure ?? Failure(.inputOutput, "\(error)")
            }
        }
        let aliases = ["column": "table", "columns": "table", "box": "table", "tabs": "tsv", "lines": "line"]
        guard let format = ResultFormat(rawValue: aliases[name] ?? name) else {
            throw Failure(.usage, "There is no mode \(name). Modes: \(Shell.modes).")
        }
        guard (format == .insert) == (words.count == 2) else {
            throw Failure(.usage, "Use: .mode insert TABLE; the other modes take no table.")
        }
        self.format = format
        targetTable = words.count == 2 ? words[1] : ""
    }

    func parameter(_ words: [String]) throws {
        switch (words[0], words.count) {
        case ("set", 3):
            guard let name = Shell.parameterName(words[1]) else {
                throw Failure(.usage, "The name of a parameter is as :name, @name or $name.")
            }
            parameters[name] = .some(Shell.parameterValue(words[2]))
        case ("unset", 2): parameters[Shell.parameterName(words[1]) ?? words[1]] = nil
        case ("clear", 1): parameters = [:]
        case ("list", 1):
            for name in parameters.keys.sorted() {
                let value = parameters[name].flatMap { $0 }
                let text = (value as? String).map { SQLLiteral.text(of: .text($0)) } ?? value.map { "\($0)" } ?? "NULL"
                try show("\(TerminalText.escaped(name))  \(TerminalText.escaped(text))\n")
            }
        default: throw Failure(.usage, "Use: .parameter set NAME VALUE, unset NAME, list, or clear")
        }
    }

    /// As in the stock shells, NULL is NULL, and `"'NULL'"` the text. The form of a number is a number, as on the command
    /// line; everything else is text.
    private static func parameterValue(_ word: String) -> (any Bindable)? {
        if word.foldedForSQL == "null" { return nil }
        let bytes = word.utf8
        if bytes.count >= 2, bytes.first == UInt8(ascii: "'"), bytes.last == UInt8(ascii: "'") {
            return String(word.unicodeScalars.dropFirst().dropLast()).replacing("''", with: "'")
        }
        return NumberForm(bytes).bindable(text: word) as? any Bindable
    }

    private static func parameterName(_ word: String) -> String? {
        guard let sign = word.utf8.first, ":@$".utf8.contains(sign), word.utf8.count > 1 else { return nil }
        return String(word.unicodeScalars.dropFirst())
    }

    func export(_ table: String, to path: String) throws {
        try damagedLog?.refuseCopy()
        let rows = try database.executeQuery("SELECT * FROM \(identifier: table)")
        defer { rows.close() }
        let file = try newFile(path)
        do {
            let writer = format.writer(to: file, style, table: targetTable)
            try writer.begin(columns: rows)
            var count = 0
            while try rows.nextWithError() {
                try interrupts?.requireNone()
                try writer.write(row: rows)
                count += 1
            }
            try writer.end()
            try file.close()
            try report("\(TerminalText.escaped(path)): \(count) row\(count == 1 ? "" : "s")\n")
        } catch {
            // It was made here, and is not whole. If it stays, its name says to whom it belongs.
            unlink(path)
            throw error
        }
    }

    func importRows(of path: String, into table: String) throws {
        try Shell.requireFile(path)
        try requireNoTransaction()
        let progress = ProgressReporter(mode: interrupts == nil ? .never : .auto)
        defer { progress.finish() }
        let importer = Importer(
            input: try InputFile(path: path),
            format: ImportFormat(path: path),
            table: table,
            appends: try exists(table),
            guessesTypes: true,
            progress: progress
        )
        let count = try importer.run(on: database)
        progress.finish()
        try report("\(TerminalText.escaped(table)): \(count) row\(count == 1 ? "" : "s") imported\n")
    }

    private func exists(_ table: String) throws -> Bool {
        let name = ExactText(name: table)
        return try SchemaObject.all(of: database).contains { $0.isShown && ExactText(name: $0.name) == name }
    }

    // MARK: Stores

    func dump(_ names: [String]) throws {
        try damagedLog?.refuseCopy()
        try requireNoTransaction()
        try SQLDump(database: database, output: output, names: names).run()
    }

    func backUp(to path: String) throws {
        try damagedLog?.refuseCopy()
        try requireNoTransaction()
        guard database.beginDeferredTransaction() else { throw database.lastError() }
        // Only read: there is nothing to commit.
        defer { _ = database.rollback() }
        // The transaction sees the state of its first read.
        _ = try database.executeQuery("SELECT count(*) FROM sqlite_schema").scalar(Int.self)
        let progress = ProgressReporter(mode: interrupts == nil ? .never : .auto)
        defer { progress.finish() }
        let result = try database.backup(toNewFile: try Store.literalPath(path), key: nil) { state in
            progress.update(state)
            guard let interrupts = self.interrupts, interrupts.hasCome else { return }
            throw DatabaseError(
                extendedCode: SQLITE_INTERRUPT,
                reason: .interrupted,
                message: "Interrupted. No backup was made."
            )
        }
        progress.finish()
        try report("\(TerminalText.escaped(path)): backup of \(result.pageCount.counted("page"))\n")
    }

    private func requireNoTransaction() throws(Failure) {
        guard !database.isInTransaction else {
            throw Failure(.usage, "A transaction is open. Commit it or roll it back first.")
        }
    }
}
