import ArgumentParser
import SealedDB

struct DiffCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "diff",
        abstract: "Tell what two stores hold otherwise, such as a store and its backup.",
        discussion: """
            Compares tables, rows, indexes, views, triggers, the last row ids of AUTOINCREMENT, the encoding, user_version \
            and application_id, each store as it is at one moment. Rows are matched by their primary key, or by their row \
            id if there is none. Exit 0 if both hold the same, 1 if they differ.

              sealdb diff app.db /backups/app-monday.db --key-file app.key
              sealdb diff app.db old.db --key-file app.key --other-key-file old.key
              sealdb diff app.db wanted.db --key-file app.key --sql |
                  sealdb exec app.db - --key-file app.key

            With --sql: statements, in one transaction, that make the first store hold what the second one holds. A table \
            that was made by another statement is made anew, with its rows. They show values in plaintext. With --table, \
            user_version, application_id and the encoding are left out.

            Not compared: row ids beside a primary key, what ANALYZE has collected, and the index of a full-text table \
            that has its text elsewhere. --sql builds it anew, and refuses where that would make another one. A full-text \
            table that keeps no text is refused.
            """
    )

    @Argument(help: "The first store.", completion: .file())
    var first: String

    @Argument(help: "The second store.", completion: .file())
    var second: String

    @Option(
        name: .customLong("table"),
        help: ArgumentHelp("Only this table or view; may be repeated.", valueName: "name")
    )
    var tables: [String] = []

    @Flag(help: "Leave out the rows.")
    var schemaOnly = false

    @Flag(help: "Write SQL that makes the first store hold what the second one holds.")
    var sql = false

    @OptionGroup(title: "Output")
    var reportOptions: ReportOptions

    @OptionGroup(title: "Key of both stores, or of the first")
    var keyOptions: KeyOptions

    @OptionGroup(title: "Configuration")
    var configurationOptions: ConfigurationOptions

    @OptionGroup(title: "Key of the second store, if it has another one")
    var otherKeyOptions: OtherKeyOptions

    @OptionGroup(title: "Cipher settings of stores that have other ones than SQLCipher 4's")
    var cipherOptions: CipherOptions

    @OptionGroup
    var lockOptions: LockOptions

    func validate() throws {
        try keyOptions.choice.validate(isRequired: true)
        try otherKeyOptions.choice.validate(isRequired: false)
        if let descriptor = keyOptions.choice.descriptor, descriptor == otherKeyOptions.choice.descriptor {
            throw ValidationError("One descriptor cannot give both keys.")
        }
        guard !sql || !schemaOnly else {
            throw ValidationError("--sql and --schema-only exclude each other: rows of tables made anew would be lost.")
        }
        guard !sql || !reportOptions.json && !reportOptions.quiet else {
            throw ValidationError("--sql excludes --json and --quiet.")
        }
    }

    func run() throws {
        reportOptions.begin(try Store.literalPath(first))
        var known: Key?
        let database = try keyOptions.withKey(of: first) { key in
            known = key
            return try open(first, key)
        }
        defer { database.close() }
        let other = try openSecond(known)
        defer { other.close() }
        var comparison = StoreComparison(
            first: try ComparedStore(first, database),
            second: try ComparedStore(second, other),
            comparesRows: !schemaOnly
        )
        try comparison.restrict(to: tables)
        let differences = try comparison.differences()
        let output = ResultOutput()
        if sql {
            let script = try DifferenceScript(comparison, differences, output: output)
            try script.write()
        } else {
            try write(differences, to: output)
        }
        try output.flush()
        guard differences.isEmpty else { throw ExitCode(ExitStatus.different.rawValue) }
    }

    private func write(_ differences: [StoreDifference], to output: ResultOutput) throws {
        guard !reportOptions.quiet else { return }
        guard reportOptions.json else {
            for difference in differences {
                try output.write(TerminalText.escaped(difference.text(first, second)) + "\n")
            }
            return
        }
        let paths = try Paths(path: JSONReport.path, otherPath: StoreItem.identity(of: Store.literalPath(second)))
        for difference in differences { try output.writeJSON(Record(paths: paths, difference: difference)) }
        let record = ResultRecord(
            path: paths.path,
            status: differences.isEmpty ? "same" : "different",
            exitCode: differences.isEmpty ? 0 : ExitStatus.different.rawValue,
            content: Total(otherPath: paths.otherPath, differenceCount: differences.count)
        )
        try JSONReport.complete(record, output)
    }

    private struct Paths: Encodable {
        let path: String?
        let otherPath: String
    }

    private struct Total: Encodable, Sendable {
        let otherPath: String
        let differenceCount: Int
    }

    /// A line of JSON for one difference.
    private struct Record: Encodable {
        let paths: Paths
        let difference: StoreDifference

        private enum Names: String, CodingKey { case kind }

        func encode(to encoder: any Encoder) throws {
            try difference.encode(to: encoder)
            try paths.encode(to: encoder)
            var container = encoder.container(keyedBy: Names.self)
            try container.encode("difference", forKey: .kind)
        }
    }

    private func open(_ path: String, _ key: Key) throws -> Database {
        let settings = try cipherOptions.settings(of: path, or: first)
        return try Store.openWhole(path, key: key, settings: settings, lockWait: lockOptions.lockWait)
    }

    /// The key of the first store is not read again: a descriptor gives it once.
    private func openSecond(_ known: Key?) throws -> Database {
        if otherKeyOptions.choice.isGiven { return try otherKeyOptions.withKey(of: second) { try open(second, $0) } }
        guard let known, !keyOptions.choice.isRing, try keyOptions.choice.configuration() == nil else {
            return try keyOptions.withKey(of: second, or: first) { try open(second, $0) }
        }
        return try open(second, known)
    }
}
