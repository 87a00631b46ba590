import ArgumentParser
import SealedDB

struct ExecCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "exec",
        abstract: "Run statements that write, and print the number of changed rows.",
        discussion: """
            Several statements, separated by semicolons, run in one transaction: if one fails, the store is as it \
            was (exit 65). SQL that begins or ends transactions itself, or holds PRAGMA, VACUUM, ATTACH or DETACH, \
            runs as it is. Parameters go with a single statement, and are bound as "sealdb query" does. Rows that a \
            statement returns are not printed.

              sealdb exec app.db 'DELETE FROM people WHERE age < ?' 18 --key-file app.key

            The number does not include rows that triggers and foreign keys changed.
            """
    )

    @Argument(help: "The store.", completion: .file())
    var store: String

    @Argument(help: "SQL statements.")
    var sql: String

    @Argument(help: "Values for the statement's parameters, in order.")
    var parameters: [String] = []

    @OptionGroup(title: "Key")
    var keyOptions: KeyOptions

    @OptionGroup(title: "Cipher settings of a store that has other ones than SQLCipher 4's")
    var cipherOptions: CipherOptions

    @OptionGroup
    var lockOptions: LockOptions

    func validate() throws {
        try keyOptions.choice.validate(isRequired: true)
    }

    func run() throws {
        let script = SQLScript(sql)
        try script.refuseKeyStatements()
        if script.statements.isEmpty { throw Failure(.usage, "The SQL holds no statement.") }
        if !parameters.isEmpty { try BoundStatement.requireOne(script) }
        let settings = try cipherOptions.settings
        let database = try keyOptions.withKey(of: store) {
            try Store.open(store, key: $0, settings: settings, lockWait: lockOptions.lockWait)
        }
        defer { database.close() }
        let count: Int
        if script.managesTransactions {
            count = try execute(script, on: database)
            guard !database.isInTransaction else {
                // If it fails, closing does it.
                _ = database.rollback()
                throw Failure(
                    .data,
                    "The SQL leaves a transaction open. That was rolled back; what stands before it is stored."
                )
            }
        } else {
            count = try database.inTransaction {
                let count = try execute(script, on: database)
                // Until now a signal ends the process, and nothing is stored. From now on it is, and the exit code says so.
                SignalWatch.start()
                return count
            }
        }
        let output = StandardOutput()
        try output.write("\(count)\n")
        try output.flush()
    }

    /// - Returns: the number of changed rows. Not SQLite's total, which would count those behind a virtual table, and those of
    ///   transactions that the script rolls back. What `ROLLBACK TO` takes back is counted, as SQLite counts it.
    private func execute(_ script: SQLScript, on database: Database) throws -> Int {
        var count = 0
        var countBefore = 0
        for statement in script.statements {
            if !database.isInTransaction { countBefore = count }
            let rows = try BoundStatement.start(statement.text, parameters: parameters, on: database)
            defer { rows.close() }
            while try rows.nextWithError() {}
            if statement.countsChanges && !rows.isReadOnlyStatement { count += Int(database.changes) }
            if statement.verb == "ROLLBACK", !database.isInTransaction { count = countBefore }
        }
        return count
    }
}
