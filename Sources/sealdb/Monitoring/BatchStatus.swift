import Foundation

/// What `sealdb status` prints of a journal.
struct BatchStatus: Encodable, Sendable {
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
    /// Stores that have the new key, and whose key file was being replaced.
    let replacing: [Replacing]
    let directory: String

    struct Replacing: Encodable, Sendable {
        let path: String
        let keyFile: String
        let newKeyFile: String
        /// Missing if the journal is of an earlier version.
        let formerKeyFile: String?
    }

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
        replacing = state.stores.compactMap { path in
            guard case .replacing(let files) = state.state(of: path) else { return nil }
            return Replacing(
                path: path,
                keyFile: files.file,
                newKeyFile: files.newFile,
                formerKeyFile: files.formerFile
            )
        }
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
                "\(TerminalText.escaped(operation)), \(stores.counted("store")), begun \(begun), "
                    + "\(runs) \(runs == 1 ? "run" : "runs")"
            ),
            ("last run", lastRun),
            ("done", String(done)),
            ("interrupted", String(interrupted.count)),
            ("failed", String(failed.count)),
            ("not begun", String(notBegun)),
        ]).text
        for store in replacing {
            text += TerminalText.escaped(
                "\(store.path): has the new key; \(store.newKeyFile) is taking the place of \(store.keyFile)"
            )
            text += isRunning ? "\n" : ", unless the run was ended before: keep both until it has gone on\n"
        }
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
