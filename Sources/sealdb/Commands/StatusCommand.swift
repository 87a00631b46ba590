import ArgumentParser
import Foundation

struct StatusCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "status",
        abstract: "Tell from a journal how far a batch is.",
        discussion: """
            Exit 0 when every store is done, and 2 when something is left. No key is needed and no store is opened: a \
            run asks the stores themselves, and may find one done that the journal calls interrupted. A journal that \
            another user could have written is refused (exit 78).

              sealdb status sealdb-rotate.journal
            """
    )

    @Argument(help: "The journal of a batch.", completion: .file())
    var journal: String

    @Flag(help: "Print one JSON object.")
    var json = false

    func run() throws {
        if json { JSONReport.begin(path: StoreItem.identity(of: journal)) }
        guard let state = try JournalFile.state(journal) else {
            throw Failure(.data, "\(journal) is empty: no batch was begun.")
        }
        let report = BatchStatus(state, journal: journal, isRunning: try JournalFile.isInUse(journal))
        let output = ResultOutput()
        if json {
            let exitCode = state.isComplete ? 0 : ExitStatus.partial.rawValue
            let path = StoreItem.identity(of: journal)
            let status = state.isComplete ? "done" : "partial"
            try output.writeJSON(ResultRecord(path: path, status: status, exitCode: exitCode, content: report))
        } else {
            try output.write(report.text)
        }
        JSONReport.end()
        try output.flush()
        guard state.isComplete else { throw ExitCode(ExitStatus.partial.rawValue) }
    }
}

/// What `sealdb status` prints.
private struct BatchStatus: Encodable, Sendable {
    let journal: String
    let operation: String
    let begun: String
    let runs: Int
    let isRunning: Bool
    /// The exit code of the last run; absent while it runs, and if it was killed.
    let lastExitCode: Int32?
    let stores: Int
    let done: Int
    let notBegun: Int
    let interrupted: [String]
    let failed: [Failed]
    let directory: String

    struct Failed: Encodable, Sendable {
        let path: String
        let exitCode: Int32
        let message: String
    }

    init(_ state: JournalState, journal: String, isRunning: Bool) {
        self.journal = journal
        self.isRunning = isRunning
        operation = state.operation
        begun = state.begun.formatted(.iso8601)
        runs = state.runCount
        lastExitCode = state.end?.exitCode
        stores = state.stores.count
        done = state.stores { $0 == .done }.count
        notBegun = state.stores { $0 == .notBegun }.count
        interrupted = state.stores { $0 == .begun || $0 == .stopped }
        failed = state.stores.compactMap { path in
            guard case .failed(let code, let message) = state.state(of: path) else { return nil }
            return Failed(path: path, exitCode: code, message: message)
        }
        directory = state.directory
    }

    private var lastRun: String {
        if isRunning { return "is going on" }
        guard let lastExitCode else { return "was killed" }
        return lastExitCode == 0 ? "ended well" : "ended with exit code \(lastExitCode)"
    }

    var text: String {
        var text = FieldList([
            (
                "batch",
                "\(TerminalText.escaped(operation)), \(stores) stores, begun \(begun), "
                    + "\(runs) \(runs == 1 ? "run" : "runs")"
            ),
            ("last run", lastRun),
            ("done", String(done)),
            ("interrupted", String(interrupted.count)),
            ("failed", String(failed.count)),
            ("not begun", String(notBegun)),
        ]).text
        for path in interrupted {
            text += "\(TerminalText.escaped(path)): \(isRunning ? "begun" : "interrupted; it is whole")\n"
        }
        for store in failed {
            text += TerminalText.escaped("\(store.path): exit code \(store.exitCode): \(store.message)") + "\n"
        }
        if !isRunning, done < stores {
            // The command itself is not shown: it can hold secrets, and whoever can write the journal could have it
            // pasted.
            text += "To go on, run the same command again, in \(TerminalText.escaped(directory))\n"
        }
        return text
    }
}
