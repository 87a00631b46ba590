import Foundation
import SealedDB

/// Reads statements and commands, and runs them on one store.
final class Shell {
    let database: Database
    /// `nil` if nobody sits at the shell: then Ctrl-C ends the process.
    let interrupts: ShellInterrupts?
    private let history: ShellHistory?
    private var editor: EditedLines?

    var format = ResultFormat.table
    /// The table of `INSERT` statements.
    var targetTable = ""
    var style = ResultStyle()
    var parameters: [String: (any Bindable)?] = [:]
    var showsChanges = false
    var showsTimes = false
    var showsPlans = false
    var echoes = false
    var stopsAtErrors: Bool

    private let terminal = ResultOutput()
    private var redirection: (output: ResultOutput, isOnce: Bool)?
    private var isLeaving = false
    private var hasWarned = false
    /// How many files are being read, each by a command of the one before.
    private var depth = 0

    init(_ database: Database, interrupts: ShellInterrupts?, history: ShellHistory?, stopsAtErrors: Bool) {
        (self.database, self.interrupts) = (database, interrupts)
        (self.history, self.stopsAtErrors) = (history, stopsAtErrors)
    }

    // MARK: Reading

    /// Runs what a person types.
    func talk() throws {
        guard let interrupts else { return }
        editor = EditedLines(interrupts, historySize: ShellHistory.capacity) { [unowned self] before in
            Completion(of: before) { self.names() }
        }
        history?.entries.forEach { editor?.remember($0) }
        let lines: any ShellLines =
            if let editor { editor } else { PlainLines(try InputFile(path: "-"), isTyped: true) }
        _ = try run(lines)
    }

    /// Runs all lines.
    /// - Returns: the first error. If errors end the script, it was the last, too.
    func run(_ lines: any ShellLines) throws -> (any Error)? {
        var pending = ""
        var (number, start) = (0, 1)
        var failure: (any Error)?
        isLeaving = false
        while !isLeaving {
            if lines.name == nil { interrupts?.clear() }
            let line = try lines.next(prompt: prompt(isContinued: !pending.isEmpty))
            number += 1
            var isLast = false
            switch line {
            case .interrupted:
                StandardError.write("^C\n")
                pending = ""
                continue
            case .end:
                isLast = true
                if lines.name == nil {
                    StandardError.write("\n")
                    pending = ""
                    leave()
                    if !isLeaving { continue }
                }
            case .text(let text):
                if echoes { try show(text + "\n") }
                editor.map { if lines.name == nil, !text.isEmpty { $0.remember(text) } }
                if pending.isEmpty { start = number }
                if pending.isEmpty, text.begins(with: ".") {
                    pending = text
                } else {
                    // Blank lines before a statement are no part of it.
                    if pending.isEmpty, text.utf8.allSatisfy({ $0 <= 0x20 }) { continue }
                    pending += text + "\n"
                    guard text.utf8.contains(UInt8(ascii: ";")), SQLKeywords.isComplete(pending) else { continue }
                }
            }
            let input = pending
            pending = ""
            do {
                try runInput(input)
            } catch {
                failure = failure ?? error
                tell(error, in: lines.name, line: start)
                if lines.name != nil, stopsAtErrors || depth > 0 { return failure }
            }
            if isLast { break }
        }
        return failure
    }

    private func prompt(isContinued: Bool) -> String {
        if isContinued { return "   ...> " }
        return database.isInTransaction ? "sealdb*> " : "sealdb> "
    }

    private func runInput(_ input: String) throws {
        guard input.begins(with: ".") else {
            try execute(input)
            return remember(ShellHistory.entry(of: input), input)
        }
        guard let words = CommandWords.split(String(input.unicodeScalars.dropFirst())), let name = words.first else {
            throw Failure(.usage, "A quote is not closed, or the command has no name. .help lists the commands.")
        }
        let command = try DotCommand.named(name)
        guard command.count.contains(words.count - 1) else {
            throw Failure(.usage, "Use: .\(command.name) \(command.arguments)")
        }
        try command.run(self, Array(words.dropFirst()))
        try output.flush()
        // Values are not kept in a file.
        if !["parameter", "print"].contains(command.name) { remember(input, input) }
    }

    private func remember(_ entry: String?, _ input: String) {
        guard depth == 0, interrupts != nil, let entry else { return }
        history?.add(entry)
    }

    /// Shows an error, with its place if it is one of a file.
    private func tell(_ error: any Error, in name: String?, line: Int) {
        // Rows that came before a failure are shown. What cannot be written is told with the next ones.
        try? output.flush()
        let message: String
        if let located = error as? LocatedError {
            let place = "\(name ?? ""), line \(line + located.line - 1), column \(located.column): "
            message = (name == nil ? "" : place) + located.error.message
        } else {
            message = (name.map { "\($0), line \(line): " } ?? "") + ErrorReport.statusAndMessage(of: error).message
        }
        StandardError.message(message)
    }

    func read(_ path: String) throws {
        guard depth < 25 else { throw Failure(.usage, "Files read each other, 25 deep.") }
        let lines = PlainLines(try InputFile(path: path))
        depth += 1
        defer { depth -= 1 }
        // It was told already.
        if try run(lines) != nil { throw Failure(.data, "\(path) was not read to its end.") }
        isLeaving = false
    }

    /// Leaves the shell after this line. With an open transaction it has to be asked for twice.
    func leave() {
        if database.isInTransaction, interrupts != nil, !hasWarned {
            hasWarned = true
            return StandardError.message(
                "A transaction is open. COMMIT stores it; leaving once more gives it up."
            )
        }
        isLeaving = true
    }

    /// Ends what is open.
    /// - Throws: ``Failure`` if a transaction was given up.
    func finish() throws {
        editor = nil
        try redirect(to: nil, isOnce: false)
        guard database.isInTransaction else { return }
        // If this fails, closing the database rolls back.
        _ = database.rollback()
        throw Failure(.data, "A transaction was open. It was rolled back; what stands before it is stored.")
    }

    // MARK: Writing

    var output: ResultOutput { redirection?.output ?? terminal }

    func show(_ text: String) throws { try output.write(text) }

    /// - Parameter path: a new file; `nil` for standard output.
    func redirect(to path: String?, isOnce: Bool) throws {
        let former = redirection?.output
        redirection = nil
        try former?.close()
        if let path { redirection = (try ResultOutput(newFile: path), isOnce) }
    }

    // MARK: SQL

    /// Runs statements, one by one.
    /// - Throws: ``LocatedError``, ``Failure``.
    func execute(_ sql: String) throws {
        let script = SQLScript(sql)
        try script.refuseKeyStatements()
        for (index, statement) in script.statements.enumerated() {
            do {
                try execute(statement)
            } catch let error as DatabaseError {
                throw script.located(error, at: index)
            }
        }
    }

    private func execute(_ statement: SQLScript.Statement) throws {
        let times = ShellTimes()
        if showsPlans, !statement.isExplained { try showPlan(of: statement) }
        let rows = try start(statement.text, statement)
        defer { rows.close() }
        // What a statement returns is not shown before it is stored.
        output.isHeld = !rows.isReadOnlyStatement
        defer {
            if output.isHeld { output.drop() }
            output.isHeld = false
        }
        try write(rows, isExplained: statement.isExplained)
        output.isHeld = false
        if showsChanges, statement.countsChanges, !rows.isReadOnlyStatement {
            try show("changes: \(database.changes)\n")
        }
        if showsTimes { try show(times.text() + "\n") }
        try output.flush()
        if redirection?.isOnce == true { try redirect(to: nil, isOnce: false) }
        hasWarned = hasWarned && database.isInTransaction
    }

    private func start(_ sql: String, _ statement: SQLScript.Statement) throws -> ResultSet {
        let names = statement.parameterNames
        let values = parameters.filter { names.contains($0.key) }
        guard !values.isEmpty else { return try database.executeQuery(sql, values: []) }
        return try database.executeQuery(sql, values)
    }

    private func write(_ rows: ResultSet, isExplained: Bool) throws {
        var writer: (any ResultWriter)?
        while try rows.nextWithError() {
            try interrupts?.requireNone()
            if writer == nil {
                writer = isExplained ? PlanWriter(rows, output) : nil
                writer = writer ?? resultWriter(to: output)
                try writer?.begin(columns: rows)
            }
            try writer?.write(row: rows)
        }
        try writer?.end()
    }

    func resultWriter(to output: ResultOutput) -> any ResultWriter {
        format.writer(to: output, style, table: targetTable)
    }

    private func showPlan(of statement: SQLScript.Statement) throws {
        let rows = try start("EXPLAIN QUERY PLAN " + statement.text, statement)
        defer { rows.close() }
        try write(rows, isExplained: true)
    }

    /// The names of tables, views, indexes and columns, for completion.
    private func names() -> [String] {
        // If the store is locked or damaged, no name is completed.
        let names = try? database.executeQuery(
            """
            SELECT name FROM sqlite_schema WHERE name NOT LIKE 'sqlite\\_%' ESCAPE '\\' UNION
            SELECT c.name FROM sqlite_schema AS s, pragma_table_info(s.name) AS c WHERE s.type IN ('table', 'view')
            """
        ).all(String.self)
        return names ?? []
    }
}
