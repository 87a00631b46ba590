import ArgumentParser
import SealedDB

struct DumpCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "dump",
        abstract: "Write a store as SQL, in plaintext, to standard output.",
        discussion: """
            The SQL makes the same tables, rows, indexes, views and triggers: the stock shells read it, and so does \
            "sealdb exec DB -". It shows the store at one moment. Everybody who can read the output can read everything \
            in the store.

              sealdb dump app.db --key-file app.key |
                  sealdb exec copy.db - --key-file copy.key
              sealdb dump app.db --table people --data-only --key-file app.key

            Row ids are kept. Values are exact, also blobs, NUL and text that is not UTF-8. What ANALYZE has collected is \
            left out. The index of a full-text table that has its text elsewhere is made anew ("rebuild"): one that is not \
            that of all the text there is refused before anything is written, as is a full-text table that keeps no \
            text. If something cannot be read, the exit code is not 0, and the output ends with ROLLBACK and a \
            statement that fails, so that whoever loads it fails, too.
            """
    )

    @Argument(help: "The store.", completion: .file())
    var store: String

    @Option(
        name: .customLong("table"),
        help: ArgumentHelp("Only this table or view; may be repeated.", valueName: "name")
    )
    var tables: [String] = []

    @Flag(help: "Leave out the rows.")
    var schemaOnly = false

    @Flag(help: "Leave out what makes tables, indexes, views and triggers.")
    var dataOnly = false

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
        guard !schemaOnly || !dataOnly else { throw ValidationError("--schema-only and --data-only leave nothing.") }
    }

    func run() throws {
        let settings = try cipherOptions.settings(of: store)
        let database = try keyOptions.withKey(of: store) {
            try Store.openWhole(store, key: $0, settings: settings, lockWait: lockOptions.lockWait, looks: true)
        }
        defer { database.close() }
        let output = ResultOutput()
        try SQLDump(
            database: database,
            output: output,
            writesSchema: !dataOnly,
            writesRows: !schemaOnly,
            names: tables
        ).run()
        try output.flush()
    }
}
