import ArgumentParser
import SealedDB

struct QueryCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "query",
        abstract: "Run one statement that reads, and print its rows.",
        discussion: """
            Opens the store read-only and refuses a statement that writes (exit 64). Each ? in the SQL takes one \
            parameter. A parameter that is a number in its plain form, such as 40 or -1.5, is bound as a number, \
            everything else as text: 007, 1.10 and NULL are texts. Parameters that begin with a dash go last, after --.

              sealdb query app.db 'SELECT * FROM people WHERE age > ?' 40 \\
                  --key-file app.key --format csv
              sealdb query app.db 'SELECT * FROM people WHERE name = :n' \\
                  --text n=007 --key-file app.key

            NULL is nothing in table, line and markdown, nothing in csv (where an empty text is ""), \\N in tsv, and \
            null in json. A blob is X'…' in hex, in json {"$blob":"…"} in Base64. In csv a text stands in quotes that \
            would read as a number or a blob. In json, an infinite number is 1e999, and a column name that occurs \
            again becomes name:1. In a table, control characters are shown escaped. jsonl is one object on each line, \
            line is one value on each line, insert is INSERT statements for a table that --into names. "sealdb import" \
            reads csv, tsv, json and jsonl; "sealdb exec DB -" reads insert.
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

    func validate() throws {
        try keyOptions.choice.validate(isRequired: true)
        if sqlOptions.readsStandardInput || parameterOptions.readsStandardInput, keyOptions.choice.descriptor == 0 {
            throw ValidationError("Standard input cannot give both the key and the SQL or a value.")
        }
    }

    func run() throws {
        let source = try sqlOptions.source(parameterOptions)
        try BoundStatement.requireOne(source.script)
        let settings = try cipherOptions.settings(of: store)
        let database = try keyOptions.withKey(of: store) {
            try Store.openReadOnly(
                store,
                key: $0,
                settings: settings,
                lockWait: lockOptions.lockWait,
                looks: true
            )
        }
        defer { database.close() }
        let rows = try BoundStatement.start(source, on: database)
        defer { rows.close() }
        guard rows.isReadOnlyStatement else {
            throw Failure(.usage, "The statement writes, and query only reads. Nothing was changed. Use: sealdb exec")
        }
        let output = ResultOutput()
        let writer = resultOptions.writer(to: output)
        try writer.begin(columns: rows)
        while try rows.nextWithError() { try writer.write(row: rows) }
        try writer.end()
        try output.flush()
        try database.requireStill()
    }
}
