import ArgumentParser
import SealedDB

struct ExportCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "export",
        abstract: "Copy a store into a PostgreSQL database, schema and rows.",
        discussion: """
            The store is read as it is at one moment, and may be in use. Everything is written in one transaction, read back \
            and compared before it is committed: PostgreSQL has all of it or nothing. It holds the rows in plaintext.

              sealdb export app.db --dry-run --key-file app.key
              sealdb export app.db --key-file app.key \\
                  --to 'postgresql://app@db.example.org/app?sslmode=verify-full'

            A column becomes what it is declared as, if all that it holds fits; else nothing is done, and the first row that does \
            not fit is told (exit 65). With --widen it becomes text or another type that holds all. What PostgreSQL does not get, \
            such as triggers, views and full-text tables, is listed. With --dry-run nothing is sent: it prints the SQL and \
            that list, with the same exit code.

            Tables must not be there yet. With --resume each is committed by itself, and one that is there with the same columns, \
            and the same rows by number and digest, is left out: so the same command goes on after an interruption.

            Passwords come from where libpq takes them: ~/.pgpass, a service file, PGPASSWORD. One in the URL is seen by everybody \
            who lists processes. A connection to another machine must be encrypted; whether it is the right machine only \
            sslmode=verify-full makes sure. "sealdb help" tells the exit codes; 69 is a server that cannot be reached, 73 a \
            table that is there, 70 rows that did not arrive as they were sent.
            """
    )

    @Argument(help: "The store.", completion: .file())
    var store: String

    @Option(
        name: .customLong("to"),
        help: ArgumentHelp(
            "The PostgreSQL database, as libpq names it: postgresql://USER@HOST:PORT/NAME.",
            valueName: "url"
        )
    )
    var target: String?

    @Option(
        name: .customLong("table"),
        help: ArgumentHelp("Only this table; may be repeated.", valueName: "name")
    )
    var tables: [String] = []

    @Option(
        help: ArgumentHelp(
            "The schema of PostgreSQL to write to; made if there is none. Default: public.",
            valueName: "name"
        )
    )
    var schema = "public"

    @Flag(help: "Leave out the rows.")
    var schemaOnly = false

    @Flag(help: "Send nothing; print the SQL, and what is not taken.")
    var dryRun = false

    @Flag(help: "Commit table by table, and go on where a former run with this option stopped.")
    var resume = false

    @Flag(help: "Give columns types that hold what does not fit, and leave out NOT NULL where there is NULL.")
    var widen = false

    @Option(
        name: .customLong("without"),
        help: ArgumentHelp(
            "Leave these out: foreign-keys, indexes, checks or defaults; may be repeated.",
            valueName: "part"
        )
    )
    var omitted: [OmittedPart] = []

    @Flag(help: "Send rows through the network in plaintext if the server has no TLS.")
    var allowUnencrypted = false

    @OptionGroup(title: "Key")
    var keyOptions: KeyOptions

    @OptionGroup(title: "Configuration")
    var configurationOptions: ConfigurationOptions

    @OptionGroup(title: "Cipher settings of a store that has other ones than SQLCipher 4's")
    var cipherOptions: CipherOptions

    @OptionGroup
    var progressOptions: ProgressOptions

    @OptionGroup(title: "Output")
    var reportOptions: ReportOptions

    @OptionGroup
    var lockOptions: LockOptions

    func validate() throws {
        try keyOptions.choice.validate(isRequired: true)
        guard dryRun || target != nil else { throw ValidationError("Give --to, or --dry-run.") }
        guard !dryRun || !reportOptions.quiet else { throw ValidationError("--dry-run and --quiet leave nothing.") }
        if let problem = TargetName.problem(of: schema) { throw ValidationError("--schema \(problem).") }
        guard !schema.begins(with: "pg_") else {
            throw ValidationError("PostgreSQL keeps schemas that begin with pg_ to itself.")
        }
    }

    func run() throws {
        reportOptions.begin(try Store.literalPath(store))
        if !dryRun { try ExportAddress.requireSupport() }
        let settings = try cipherOptions.settings(of: store)
        let database = try keyOptions.withKey(of: store) {
            try Store.openWhole(store, key: $0, settings: settings, lockWait: lockOptions.lockWait, looks: true)
        }
        defer { database.close() }
        let reporter = progressOptions.reporter()
        defer { reporter.finish() }
        SignalWatch.start()
        guard database.beginDeferredTransaction() else { throw database.lastError() }
        // Only read: there is nothing to commit.
        defer { _ = database.rollback() }
        var plan = try ExportPlan(
            of: database,
            tables: tables,
            schema: schema,
            omitted: Set(omitted),
            widens: widen,
            progress: { reporter.update(phase: "read", completed: $0, total: 0) }
        )
        try plan.makeStatements()
        if dryRun {
            try database.requireStill()
            return try print(plan)
        }
        try requireNoProblems(plan)
        let address = ExportAddress(text: target ?? "", allowsUnencrypted: allowUnencrypted)
        let target = try address.connect()
        defer { target.close() }
        let total = plan.size
        var exporter = Exporter(
            plan: plan,
            database: database,
            target: target,
            schemaOnly: schemaOnly,
            resumes: resume,
            progress: { reporter.update(phase: $0, completed: $1, total: total) }
        )
        let reports = try exporter.run()
        reporter.finish()
        try report(reports, plan, target.name)
    }

    private func requireNoProblems(_ plan: ExportPlan) throws(Failure) {
        guard !plan.problems.isEmpty else { return }
        throw Failure(.data, (plan.problems + ["Nothing was done."]).joined(separator: "\n"))
    }

    /// The members of the JSON object.
    private struct Content: Encodable, Sendable {
        var target: String?
        let schema: String
        var tables: [Exporter.TableReport]?
        var statements: [String]?
        let notTaken: [ExportPlan.NotTaken]
        var problems: [String]?
    }

    private func report(_ reports: [Exporter.TableReport], _ plan: ExportPlan, _ name: String) throws {
        var lines = reports.map { report in
            let rows = report.digest == nil ? "" : ": \(report.rowCount.counted("row")), as they were sent"
            return report.status == "skipped"
                ? "\(report.table): there already, with the same rows" : "\(report.table)\(rows)"
        }
        lines += plan.notTaken.map { "not taken: \($0.text)" }
        lines.append("\(reports.count.counted("table")) in \(name), schema \(schema)")
        try reportOptions.report(
            lines.map { TerminalText.escaped($0) + "\n" }.joined(),
            Content(target: name, schema: schema, tables: reports, notTaken: plan.notTaken)
        )
    }

    /// What a run would do, as SQL.
    private func print(_ plan: ExportPlan) throws {
        let statements = plan.statements
        var text = statements.map { $0 + ";\n" }.joined()
        // In a comment, nothing may end it.
        text += plan.notTaken.map { "-- not taken: \(TerminalText.escaped($0.text))\n" }.joined()
        let failure =
            plan.problems.isEmpty
            ? nil : Failure(.data, (plan.problems + ["An export would do nothing."]).joined(separator: "\n"))
        let output = ResultOutput()
        guard reportOptions.json else {
            try output.write(text)
            try output.flush()
            if let failure { throw failure }
            return
        }
        try reportOptions.report(
            "",
            Content(schema: schema, statements: statements, notTaken: plan.notTaken, problems: plan.problems),
            status: "planned",
            failure: failure,
            failureStatus: "failed",
            to: output
        )
    }
}
