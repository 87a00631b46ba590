import Foundation
import SealedDB

/// Reads statements and commands, and runs them on one store.
final class Shell {
    let database: Database
    /// `nil` if the log of the store was whole when the shell opened it.
    let damagedLog: DamagedLog?
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
    /// Whether the transaction is one whose commit failed, and which may be stored all the same.
    var hasOpenCommit = false

    private let terminal = ResultOutput()
    private(set) var redirection: (output: ResultOutput, isOnce: Bool)?
    private var isLeaving = false
    /// The lines of the statement that is being typed.
    private var pending = ""
    /// How many inputs there were, and the last of them that was a warning about an open transaction.
    private var (inputCount, warning) = (0, -1)
    /// How many files are being read, each by a command of the one before.
    private var depth = 0

    init(
        _ database: Database,
        damagedLog: DamagedLog?,
        interrupts: ShellInterrupts?,
        history: ShellHistory?,
        stopsAtErrors: Bool
    ) {
        (self.database, self.damagedLog, self.interrupts) = (database, damagedLog, interrupts)
        (self.history, self.stopsAtErrors) = (history, stopsAtErrors)
    }

    // MARK: Reading

    /// Runs what a person types.
    func talk() throws {
        guard let interrupts else { return }
        editor = EditedLines(interrupts, historySize: ShellHistory.capacity) { [unowned self] before in
            Completion(of: before, after: self.pending) { self.names() }
        }
        history?.entries.forEach { editor?.remember($0) }
        let lines: any ShellLines =
            if let editor { editor } else { PlainLines(try InputFile(path: "-"), isTyped: true) }
        // What failed was shown, and the person decides what that means.
        _ = run(lines)
    }

    /// Runs all lines.
    /// - Returns: the first error, which was shown. If errors end the script, it was the last, too.
    func run(_ lines: any ShellLines) -> (any Error)? {
        var input = ShellInput(lines)
        var failure: (any Error)?
        isLeaving = false
        while !isLeaving {
            if lines.name == nil { interrupts?.clear() }
            let endsOnce = redirection?.isOnce ?? false
            do {
                // Ctrl-C ends what is read from files.
                if lines.name != nil { try interrupts?.requireNone() }
                let next = try input.next(prompt: prompt) { line throws in
                    try echo(line, lines)
                } pending: {
                    pending = $0
                }
                inputCount += 1
                switch next {
                case .text(let text): try runInput(text)
                case .interrupted: StandardError.write("^C\n")
                case .end:
                    if lines.name == nil {
                        StandardError.write("\n")
                        leave()
                    } else {
                        return failure
                    }
                }
                if endsOnce { try redirect(to: nil, isOnce: false) }
            } catch {
                failure = failure ?? (error as? ToldError)?.error ?? error
                tell(error, in: lines.name, line: input.start)
                if lines.name != nil, stopsAtErrors || depth > 0 || input.hasFailed || error is LostTransaction {
                    return failure
                }
                if lines.name == nil, input.hasFailed { return failure }
                // It was meant for what has failed.
                if endsOnce { endOnce() }
            }
        }
        return failure
    }

    private func echo(_ line: String, _ lines: any ShellLines) throws {
        if echoes { try show(line + "\n") }
        if lines.name == nil, !line.isEmpty { editor?.remember(line) }
    }

    private func endOnce() {
        do {
            try redirect(to: nil, isOnce: false)
        } catch {
            tell(error, in: nil, line: 0)
        }
    }

    static let continuedPrompt = "   ...> "

    private var prompt: String { database.isInTransaction ? "sealdb*> " : "sealdb> " }

    private func runInput(_ input: String) throws {
        guard input.begins(with: ".") else {
            try execute(input)
            return remember(ShellHistory.entry(of: input))
        }
        guard let words = CommandWords.split(String(input.unicodeScalars.dropFirst())), let name = words.first else {
            throw Failure(.usage, "A quote is not closed, or the command has no name. .help lists the commands.")
        }
        let command = try DotCommand.named(name)
        guard command.count.contains(words.count - 1) else {
            throw Failure(.usage, "Use: .\(command.name) \(command.arguments)")
        }
        let arguments = Array(words.dropFirst())
        try command.run(self, arguments)
        if !output.isHeld { try output.flush() }
        remember(ShellHistory.entry(ofCommand: command.name, input, arguments))
    }

    private func remember(_ entry: String?) {
        guard depth == 0, interrupts != nil, let entry else { return }
        history?.add(entry)
    }

    /// Shows an error, with its place if it is one of a file.
    private func tell(_ error: any Error, in name: String?, line: Int) {
        if error is LostTransaction { output.drop() }
        do {
            // Rows that came before a failure are shown, if they are not those of an open transaction.
            if !output.isHeld { try output.flush() }
        } catch {
            StandardError.message(ErrorReport.statusAndMessage(of: error).message)
        }
        if error is ToldError { return }
        let message: String
        if let lost = error as? LostTransaction {
            tell(lost.error, in: name, line: line)
            message = lost.message
        } else if let located = error as? LocatedError {
            let place = "\(name ?? ""), line \(line + located.line - 1), column \(located.column): "
            message = (name == nil ? "" : place) + located.error.message
        } else {
            message = (name.map { "\($0), line \(line): " } ?? "") + ErrorReport.statusAndMessage(of: error).message
        }
        StandardError.message(message)
    }

    func read(_ path: String) throws {
        try Shell.requireFile(path)
        guard depth < 25 else { throw Failure(.usage, "Files read each other, 25 deep.") }
        let lines = PlainLines(try InputFile(path: path))
        depth += 1
        defer { depth -= 1 }
        let failure = run(lines)
        isLeaving = false
        // It was told already.
        if let failure { throw ToldError(error: failure) }
    }

    static func requireFile(_ path: String) throws(Failure) {
        guard !InputFile.isStandardInput(path) else {
            throw Failure(.usage, "From standard input the shell itself reads. Give a file.")
        }
    }

    /// Leaves the shell after this line. With an open transaction it has to be asked for twice.
    func leave() {
        if database.isInTransaction, interrupts != nil, depth == 0, warning != inputCount - 1 {
            warning = inputCount
            return StandardError.message(
                "A transaction is open. COMMIT stores it; leaving once more gives it up."
            )
        }
        isLeaving = true
    }

    /// Ends what is open.
    /// - Throws: ``Failure`` if a transaction was given up, or if a file could not be written.
    func finish() throws {
        editor = nil
        let isLost = database.isInTransaction
        if isLost {
            output.drop()
            // If this fails, closing the database rolls back.
            _ = database.rollback()
        }
        do {
            try redirect(to: nil, isOnce: false)
            try terminal.flush()
        } catch {
            guard isLost else { throw error }
            tell(error, in: nil, line: 0)
        }
        guard isLost else { return }
        throw Failure(
            .data,
            hasOpenCommit
                ? "A transaction was open whose commit had failed. It may be stored all the same: look before you repeat it."
                : "A transaction was open. It was rolled back; what stands before it is stored."
        )
    }

    // MARK: Writing

    var output: ResultOutput { redirection?.output ?? terminal }

    /// Writes what belongs to the result.
    func show(_ text: String) throws { try output.write(text) }

    /// Writes what is said about it, which no file gets.
    func report(_ text: String) throws {
        try terminal.write(text)
        try terminal.flush()
    }

    /// - Parameter path: a new file; `nil` for standard output.
    func redirect(to path: String?, isOnce: Bool) throws {
        let new = try path.map { (try newFile($0), isOnce) }
        let former = redirection?.output
        redirection = new
        try former?.close()
    }

    /// Makes a file for plaintext.
    /// - Throws: ``Failure`` if it exists, if SQLite would take it for one of its own, or if the name means something else
    ///   in the stock shells.
    func newFile(_ path: String) throws -> ResultOutput {
        if path.isEmpty || ["stderr", "off", "memory"].contains(where: { path.isSame(as: $0) })
            || path.begins(with: "|")
            || path.begins(with: "-")
        {
            throw Failure(.usage, "\(path) is no name of a file here. A file of this name is ./\(path)")
        }
        try Store.requireNoPart(path)
        let stores = try database.executeQuery("PRAGMA database_list").all((Int, String, String?).self)
        let name = Shell.resolved(path)
        for case (_, _, let store?) in stores where !store.isEmpty {
            for suffix in ["-journal", "-wal", "-shm"] where name.isSame(as: Shell.resolved(store) + suffix) {
                throw Failure(.cannotCreate, "\(path) is a name that SQLite uses beside \(store). Nothing was written.")
            }
        }
        return try ResultOutput(newFile: path)
    }

    /// The path without links in it, as far as its directory exists.
    private static func resolved(_ path: String) -> String {
        guard let directory = realpath(path.directoryOfPath, nil) else { return path }
        defer { free(directory) }
        return String(cString: directory) + "/" + path.nameOfPath
    }
}
