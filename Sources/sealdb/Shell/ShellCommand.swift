import ArgumentParser
import Foundation
import SealedDB

struct ShellCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "shell",
        abstract: "Type SQL, and see what it gives.",
        discussion: """
            Statements end with a semicolon, and each is stored when it has run, unless BEGIN stands before it. Lines that \
            begin with a dot are commands, as in the shell of SQLite; .help lists them. Tab completes names, the arrow \
            keys bring back former lines, Ctrl-C ends a statement, Ctrl-D or .quit the shell.

              sealdb shell app.db --key-file app.key
              sealdb shell app.db --key-file app.key --read-only < report.sql

            Where standard input is not a terminal, the first error ends the script (see --keep-going). Commands that \
            write files (.backup .export .once .output) never replace one; all but .backup write plaintext.

            The history is kept in $SEALDB_HISTORY, or ~/.local/state/sealdb/history, unless there is a file that is \
            something else: statements that SQLite has accepted and that hold no text, blob, comment or number of more \
            than four digits. An empty SEALDB_HISTORY, /dev/null, or --no-history keeps none. Lines are edited with libedit, \
            if the system has it, and as ~/.editrc says.
            """
    )

    @Argument(help: "The store.", completion: .file())
    var store: String

    @Flag(help: "Refuse statements that change the store.")
    var readOnly = false

    @Flag(help: "Go on after an error in a script; the exit code is that of the first one.")
    var keepGoing = false

    @Flag(help: "Neither read nor write the file of former statements.")
    var noHistory = false

    @OptionGroup(title: "Output")
    var resultOptions: ResultOptions

    @OptionGroup(title: "Key")
    var keyOptions: KeyOptions

    @OptionGroup(title: "Configuration")
    var configurationOptions: ConfigurationOptions

    @OptionGroup(title: "Cipher settings of a store that has other ones than SQLCipher 4's")
    var cipherOptions: CipherOptions

    @OptionGroup
    var lockOptions: LockOptions

    func validate() throws {
        try keyOptions.choice.validate(isRequired: true)
        if keyOptions.choice.descriptor == 0 {
            throw ValidationError("Standard input cannot give both the key and the statements.")
        }
    }

    func run() throws {
        let settings = try cipherOptions.settings(of: store)
        let isTalk = isatty(STDIN_FILENO) == 1 && ResultOutput.isTerminal
        let path = isTalk && !noHistory ? ShellHistory.path(ProcessInfo.processInfo.environment) : nil
        // Read before the store is opened: it may be the store, whose locks the process would lose with its descriptor.
        let history = path.map { ShellHistory(path: $0) }
        var damagedLog: DamagedLog?
        let database = try keyOptions.withKey(of: store) { key in
            damagedLog = try damagedLog ?? DamagedLog(ofStore: store)
            return readOnly
                ? try Store.openReadOnly(store, key: key, settings: settings, lockWait: lockOptions.lockWait)
                : try Store.open(store, key: key, settings: settings, lockWait: lockOptions.lockWait)
        }
        defer { database.close() }
        let shell = Shell(
            database,
            damagedLog: damagedLog,
            interrupts: isTalk ? try ShellInterrupts(of: database) : nil,
            history: history,
            stopsAtErrors: !isTalk && !keepGoing
        )
        shell.format = resultOptions.format
        shell.targetTable = resultOptions.into ?? ""
        shell.style = ResultStyle(hasHeader: !resultOptions.noHeader, null: resultOptions.null)
        if isTalk {
            let engine = EngineInfo.current()
            StandardError.message(
                "\(EngineInfo.version), SQLite \(engine.sqliteVersion). Type .help for commands, .quit to leave."
            )
            try shell.talk()
            return try shell.finish()
        }
        guard let failure = shell.run(PlainLines(try InputFile(path: "-"))) else { return try shell.finish() }
        do {
            try shell.finish()
        } catch {
            StandardError.message(ErrorReport.statusAndMessage(of: error).message)
        }
        // It was told where it happened, and gives the exit code.
        throw ToldError(error: failure)
    }
}

/// An error that was shown already; its exit code is left to give.
struct ToldError: Error {
    let error: any Error
}
