import ArgumentParser
import Foundation
import SealedDB

struct ExecCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "exec",
        abstract: "Run statements, and print their rows and the number of changed rows.",
        discussion: """
            Several statements, separated by semicolons, run in one transaction: if one fails, the store is as it \
            was (exit 65). SQL that begins or ends transactions itself, or holds PRAGMA, VACUUM, ATTACH or DETACH, \
            runs as it is. Parameters go with a single statement, and are bound as "sealdb query" does. Rows that \
            statements return are printed first, those of a transaction only when it is stored.

              sealdb exec app.db 'DELETE FROM people WHERE age < ?' 18 --key-file app.key
              sealdb dump app.db --key-file app.key |
                  sealdb exec copy.db - --key-file copy.key

            The number of changed rows is the last line. It does not include rows that triggers and foreign keys changed.
            """
    )

    @Argument(help: "The store.", completion: .file())
    var store: String

    @OptionGroup
    var sqlOptions: SQLOptions

    @OptionGroup(title: "Parameters")
    var parameterOptions: ParameterOptions

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

    @OptionGroup(title: "Output")
    var reportOptions: ReportOptions

    func validate() throws {
        try keyOptions.choice.validate(isRequired: true)
        guard !reportOptions.json || resultOptions.format == .table else {
            throw ValidationError("--json and --format exclude each other.")
        }
        if sqlOptions.readsStandardInput || parameterOptions.readsStandardInput, keyOptions.choice.descriptor == 0 {
            throw ValidationError("Standard input cannot give both the key and the SQL or a value.")
        }
    }

    func run() throws {
        reportOptions.begin(try Store.literalPath(store))
        let source = try sqlOptions.source(parameterOptions)
        let script = source.script
        try script.requireUsable()
        if script.statements.isEmpty { throw Failure(.usage, "The SQL holds no statement.") }
        if source.hasValues { try BoundStatement.requireOne(script) }
        let output = ResultOutput()
        let settings = try cipherOptions.settings(of: store)
        let database = try keyOptions.withKey(of: store) {
            try Store.open(store, key: $0, settings: settings, lockWait: lockOptions.lockWait)
        }
        defer { database.close() }
        let count: Int
        if script.managesTransactions {
            count = try execute(source, on: database, output, showsWhatIsStored: true)
            guard !database.isInTransaction else {
                // If this fails, closing the database rolls back.
                _ = database.rollback()
                throw Failure(
                    .data,
                    "The SQL leaves a transaction open. That was rolled back; what stands before it is stored."
                )
            }
        } else {
            guard database.beginImmediateTransaction() else { throw database.lastError() }
            // If a statement fails, nothing is stored: closing the database rolls back. So no row is shown before that.
            output.isHeld = true
            count = try execute(source, on: database, output)
            try commit(database)
            output.isHeld = false
        }
        try reportOptions.report("\(count)\n", ["changeCount": count], to: output)
    }

    private func writer(to output: ResultOutput, statement: Int) -> any ResultWriter {
        guard reportOptions.json, let path = JSONReport.path else { return resultOptions.writer(to: output) }
        return JSONRowWriter(output: output, path: path, statement: statement)
    }

    /// Commits. Until now a signal ended the process, with nothing stored. From now on signals are only noted: if
    /// COMMIT succeeds, the changes are stored and the exit code says so. While COMMIT waits for readers, a signal ends
    /// the wait.
    private func commit(_ database: Database) throws {
        SignalWatch.start()
        let start = ContinuousClock.now
        database.maxBusyRetryTimeInterval = min(0.1, lockOptions.lockWait)
        while !database.commit() {
            let error = database.lastError()
            // After SQLITE_BUSY the transaction stays open, and COMMIT can be tried again.
            // https://www.sqlite.org/lang_transaction.html
            guard let busy = error as? DatabaseError, busy.code == SQLITE_BUSY, database.isInTransaction else {
                throw error
            }
            if SignalWatch.wasInterrupted { throw Failure(.interrupted, "Interrupted. Nothing was stored.") }
            guard start.duration(to: .now) < .seconds(lockOptions.lockWait) else {
                throw Failure(
                    .busy,
                    """
                    Others kept COMMIT waiting for \(lockOptions.lockWait) s. Nothing was stored. Its last attempt: \
                    \(busy.message)
                    """
                )
            }
            // SQLite does not wait if it sees that two connections wait for each other.
            usleep(1000)
        }
    }

    /// - Returns: the number of changed rows. This is not SQLite's total, which would include rows behind virtual
    ///   tables, and rows of transactions that the script rolls back. Changes that `ROLLBACK TO` undoes are counted, as
    ///   SQLite counts them.
    private func execute(
        _ source: SQLOptions.Source,
        on database: Database,
        _ output: ResultOutput,
        showsWhatIsStored: Bool = false
    ) throws -> Int {
        var count = 0
        var countBefore = 0
        var savepoints = Savepoints()
        for (index, statement) in source.script.statements.enumerated() {
            if !database.isInTransaction { countBefore = count }
            do {
                let rows = try BoundStatement.start(statement.text, of: source, on: database)
                defer { rows.close() }
                // Rows of a transaction or of a statement that writes are not shown before they are stored.
                if database.isInTransaction || !rows.isReadOnlyStatement { output.isHeld = true }
                try rows.writeAll(remark: {
                    // A transaction that is open is rolled back.
                    database.isInTransaction ? "" : " The statement was executed, and what it changed is stored."
                }) { writer(to: output, statement: index + 1) }
                if statement.countsChanges && !rows.isReadOnlyStatement { count += Int(database.changes) }
            } catch let error as DatabaseError where source.isFile || source.script.statements.count > 1 {
                throw source.script.located(error, at: index)
            }
            savepoints.note(statement, output)
            guard !database.isInTransaction, showsWhatIsStored else { continue }
            if statement.verb == "ROLLBACK" {
                count = countBefore
                output.drop()
            }
            output.isHeld = false
            try output.flush()
        }
        return count
    }
}

/// The savepoints that are open in a script, and how much output there was when each began. Rows of what is undone are
/// not shown. <https://www.sqlite.org/lang_savepoint.html>
private struct Savepoints {
    private var open: [(name: String, mark: Int)] = []

    /// Call it when the statement has been executed.
    mutating func note(_ statement: SQLScript.Statement, _ output: ResultOutput) {
        let words = Array(statement.text.utf8).withUnsafeBufferPointer { bytes in
            var tokenizer = SQLTokenizer(bytes)
            return (0..<6).compactMap { _ in tokenizer.next().map { tokenizer.name($0).foldedForSQL } }
                .filter { $0 != ";" }
        }
        guard let verb = words.first else { return }
        switch verb {
        case "savepoint":
            if let name = words.dropFirst().first { open.append((name, output.heldCount)) }
        case "release":
            if let index = index(of: words.dropFirst()) { open.removeSubrange(index...) }
        case "rollback" where words.contains("to"):
            guard let index = index(of: words.drop { $0 != "to" }.dropFirst()) else { return }
            output.drop(after: open[index].mark)
            open.removeSubrange((index + 1)...)
        case "begin", "commit", "end", "rollback": open = []
        default: break
        }
    }

    /// SQLite takes the last one of the name, before which the word SAVEPOINT may stand.
    private func index(of words: ArraySlice<String>) -> Int? {
        let name = words.count > 1 ? words.dropFirst().first : words.first
        return open.lastIndex { $0.name == name }
    }
}
