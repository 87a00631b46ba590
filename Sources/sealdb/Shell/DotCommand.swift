import SealedDB

/// A command of the shell that begins with a dot, as in the stock shells. https://www.sqlite.org/cli.html
struct DotCommand: Sendable {
    let name: String
    /// What follows the name, for the help.
    let arguments: String
    let help: String
    /// How many words may follow.
    let count: ClosedRange<Int>
    let run: @Sendable (Shell, [String]) throws -> Void

    private init(
        _ name: String,
        _ arguments: String,
        _ count: ClosedRange<Int>,
        _ help: String,
        _ run: @escaping @Sendable (Shell, [String]) throws -> Void
    ) {
        (self.name, self.arguments, self.count, self.help, self.run) = (name, arguments, count, help, run)
    }

    private static let any = 0...Int.max

    static let all: [DotCommand] = [
        DotCommand("backup", "FILE", 1...1, "Make a copy of the store under its key") { try $0.backUp(to: $1[0]) },
        DotCommand("bail", "on|off", 1...1, "Stop at the first error") { $0.stopsAtErrors = try isOn($1[0]) },
        DotCommand("changes", "on|off", 1...1, "Show how many rows a statement has changed") {
            $0.showsChanges = try isOn($1[0])
        },
        DotCommand("databases", "", 0...0, "List the attached stores") { shell, _ in try shell.listDatabases() },
        DotCommand("dump", "[TABLE…]", any, "Write the store as SQL, in plaintext") { try $0.dump($1) },
        DotCommand("echo", "on|off", 1...1, "Show each line before it runs") { $0.echoes = try isOn($1[0]) },
        DotCommand("exit", "", 0...0, "Leave the shell") { shell, _ in shell.leave() },
        DotCommand("explain", "on|off", 1...1, "Show the query plan of each statement before it runs") {
            $0.showsPlans = try isOn($1[0])
        },
        DotCommand("export", "FILE TABLE", 2...2, "Write a table to a new file, in plaintext, in the form of .mode") {
            try $0.export($1[1], to: $1[0])
        },
        DotCommand("headers", "on|off", 1...1, "Show the names of columns") { $0.style.hasHeader = try isOn($1[0]) },
        DotCommand("help", "[COMMAND]", 0...1, "Show this") { try $0.help($1.first) },
        DotCommand("import", "FILE TABLE", 2...2, "Add the rows of a CSV or TSV file to a table, or make the table") {
            try $0.importRows(of: $1[0], into: $1[1])
        },
        DotCommand("indexes", "[TABLE]", 0...1, "List the indexes") { try $0.listIndexes(of: $1.first) },
        DotCommand("mode", "MODE [TABLE]", 0...2, "How rows are written: \(Shell.modes)") { try $0.setMode($1) },
        DotCommand("nullvalue", "TEXT", 1...1, "Write this for NULL") { $0.style.null = $1[0] },
        DotCommand("once", "FILE", 1...1, "Write the rows of the next statement to a new file, in plaintext") {
            try $0.redirect(to: $1[0], isOnce: true)
        },
        DotCommand("output", "[FILE]", 0...1, "Write rows to a new file, in plaintext, or here again") {
            try $0.redirect(to: $1.first.flatMap { $0.isSame(as: "stdout") ? nil : $0 }, isOnce: false)
        },
        DotCommand(
            "parameter",
            "set NAME VALUE | unset NAME | list | clear",
            1...3,
            "Values for :name, @name and $name in statements"
        ) { try $0.parameter($1) },
        DotCommand("print", "TEXT…", any, "Write a text") { try $0.show($1.joined(separator: " ") + "\n") },
        DotCommand("quit", "", 0...0, "Leave the shell") { shell, _ in shell.leave() },
        DotCommand("read", "FILE", 1...1, "Run the statements and commands in a file") { try $0.read($1[0]) },
        DotCommand("schema", "[TABLE…]", any, "Show the statements that made tables, indexes, views and triggers") {
            try $0.showSchema($1)
        },
        DotCommand("show", "", 0...0, "Show the settings") { shell, _ in try shell.showSettings() },
        DotCommand("tables", "[PATTERN]", 0...1, "List tables and views; in a pattern % is any text") {
            try $0.listTables(like: $1.first)
        },
        DotCommand("timer", "on|off", 1...1, "Show how long each statement takes") { $0.showsTimes = try isOn($1[0]) },
    ]

    /// Other names, mostly those of the stock shells.
    private static let aliases = [
        "q": "quit", "indices": "indexes", "header": "headers", "eqp": "explain", "save": "backup",
    ]

    /// Commands of the stock shells that this one does not have, and what to do instead.
    private static let absent = [
        "open": "A shell has one store. Start another one, or use ATTACH.",
        "rekey": "Leave the shell, and use: sealdb rotate",
        "key": "The key is given when the shell is started.",
        "restore": "Leave the shell, and use: sealdb restore",
        "shell": "Programs are not started from here.",
        "system": "Programs are not started from here.",
        "load": "Extensions are not loaded: they could read everything.",
        "separator": "Use .mode csv or .mode tsv.",
        "width": "Columns get the width that they need.",
    ]

    /// Finds the command with the name, or the only one whose name begins with it.
    /// - Throws: ``Failure`` if there is none.
    static func named(_ name: String) throws(Failure) -> DotCommand {
        let full = aliases[name] ?? name
        if let command = all.first(where: { $0.name.isSame(as: full) }) { return command }
        if let advice = absent[name] { throw Failure(.usage, "There is no .\(name). \(advice)") }
        let matches = all.filter { !name.isEmpty && $0.name.begins(with: name) }
        if matches.count == 1 { return matches[0] }
        let names = matches.map { "." + $0.name }.joined(separator: ", ")
        let advice = matches.isEmpty ? ".help lists them." : "It could be \(names)."
        throw Failure(.usage, "There is no command .\(name). \(advice)")
    }

    private static func isOn(_ word: String) throws(Failure) -> Bool {
        switch word.lowercased() {
        case "on", "1", "yes", "true": true
        case "off", "0", "no", "false": false
        default: throw Failure(.usage, "Give on or off.")
        }
    }
}
