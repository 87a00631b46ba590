import ArgumentParser
import SealedDB

struct ImportCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "import",
        abstract: "Fill a table from a file of CSV, TSV or JSON.",
        discussion: """
            Everything happens in one transaction: if a row is bad, the error names its line (exit 65) and the store is \
            as it was. The text must be UTF-8. What "sealdb query" writes as json or jsonl is read back as the very same \
            values, and so is csv where the columns have types, but for an empty text in a column of numbers, which \
            becomes NULL. In tsv, which has no quotes, only the type of its column tells the text 42 from the number, or \
            a blob from the text X'…'.

            CSV and TSV: the first row names the columns, unless --no-header says that there is none; the columns are \
            then those that --columns names, or with --append those of the table, in its order. CSV follows RFC 4180: \
            fields that hold a comma, a quote or a line break stand in quotes. A field with nothing in it is NULL, and "" \
            an empty text. TSV has no quotes but the escapes \\t \\n \\r \\0 \\\\, and \\N for NULL.

            A column of which every value is a whole number becomes INTEGER, one of numbers REAL, one of blobs (X'…') \
            BLOB. In CSV, X'…' is a blob in every column, unless it stands in quotes. All other columns become TEXT; \
            so do those whose values would not survive being numbers, such as 007 or 1.10, and a message says so. A \
            number in quotes is a text, unless all fields are in quotes. Types are found by reading the file twice, so \
            standard input and pipes give TEXT. --types says them where they are known: --types id=INTEGER,code=TEXT. \
            With --append the types are those of the table: 007 becomes 7 in a column of numbers, and a column without \
            a type keeps each value as it is written. It is an error if a column would change digits before the point, \
            as a REAL one does to most numbers of 19 digits.

            JSON is objects one after the other (JSON lines), or one array of them. Each member is a column; a row \
            without it has NULL there, and with --upsert it is an error. A number of which a REAL would lose digits is \
            an error, too, but in a column of TEXT, which keeps it as it is written. A column of several types is made without one, so that each value stays what it \
            is. true is 1, false is 0, and an array or object is stored as JSON text. --columns names the members that \
            are wanted. Standard input is read once: there, the first object must have all members.

              sealdb import app.db people people.csv --key-file app.key
              sealdb import app.db people new.csv --upsert id --rejects bad.csv \\
                  --key-file app.key
              dpkg-query -W -f '${Package}\\t${Version}\\n' |
                  sealdb import app.db p - --no-header --columns package,version \\
                  --format tsv --key-file app.key
            """
    )

    @Argument(help: "The store.", completion: .file())
    var store: String

    @Argument(help: "The table to make, or with --append or --upsert the one to add to.")
    var table: String

    @Argument(help: "The file to read, or - for standard input.", completion: .file())
    var file: String

    @Option(
        help: """
            csv, tsv, json or jsonl. Without it, the file's extension tells: .tsv, .tab, .json, .jsonl, .ndjson; all else is \
            csv.
            """
    )
    var format: ImportFormat?

    @Flag(help: "Make every column TEXT.")
    var text = false

    @Flag(help: "The first row is not a header.")
    var noHeader = false

    @Option(
        help: ArgumentHelp(
            "The names of the columns, instead of those of the header. Of JSON, the members that are wanted.",
            valueName: "a,b,…"
        )
    )
    var columns: String?

    @Option(
        help: ArgumentHelp(
            "Types of columns: INTEGER, REAL, NUMERIC, TEXT, BLOB, or ANY for none.",
            valueName: "a=TYPE,…"
        )
    )
    var types: String?

    @Option(help: ArgumentHelp("What separates the fields of CSV, instead of a comma.", valueName: "character"))
    var delimiter: String?

    @Option(
        help: ArgumentHelp(
            "What stands for NULL where it is not quoted, as \"sealdb query --null\" writes it. Without it, an empty field in CSV, and \\N in TSV.",
            valueName: "text"
        )
    )
    var null: String?

    @Flag(help: "Add rows to the table if it exists. Its columns are matched by name; others get their defaults.")
    var append = false

    @Option(
        help: ArgumentHelp(
            "A row whose values of these columns are in the table already replaces the other values of that row. The table must exist, and keep these columns unique.",
            valueName: "a,b,…"
        )
    )
    var upsert: String?

    @Option(
        help: ArgumentHelp(
            "Rows that cannot be stored go into this new file, and the others are stored; exit 2 if there were any.",
            valueName: "file"
        ),
        completion: .file()
    )
    var rejects: String?

    @OptionGroup(title: "Key")
    var keyOptions: KeyOptions

    @OptionGroup(title: "Configuration")
    var configurationOptions: ConfigurationOptions

    @OptionGroup(title: "Cipher settings of a store that has other ones than SQLCipher 4's")
    var cipherOptions: CipherOptions

    @OptionGroup
    var lockOptions: LockOptions

    @OptionGroup
    var progressOptions: ProgressOptions

    @OptionGroup(title: "Output")
    var reportOptions: ReportOptions

    func validate() throws {
        try keyOptions.choice.validate(isRequired: true)
        if table.isEmpty { throw ValidationError("The name of the table is empty.") }
        if let delimiter {
            // A character of one byte is an ASCII character.
            let bytes = Array(delimiter.utf8)
            guard bytes.count == 1, !"\"\r\n\0".utf8.contains(bytes[0]) else {
                throw ValidationError("The delimiter is one ASCII character, and no quote or end of a line.")
            }
            guard (format ?? ImportFormat(path: file)) == .csv else {
                throw ValidationError("--delimiter is for CSV. Give --format csv.")
            }
        }
        if let problem = style.problemOfNull(in: format ?? ImportFormat(path: file)) { throw ValidationError(problem) }
        if (format ?? ImportFormat(path: file)).isJSON {
            if noHeader { throw ValidationError("--no-header is for CSV and TSV: objects of JSON name their columns.") }
            if null != nil { throw ValidationError("--null is for CSV and TSV: JSON has null.") }
        }
        if noHeader, columns == nil, !appends {
            throw ValidationError("Without a header, a new table needs --columns.")
        }
        if types != nil, appends || text {
            throw ValidationError("--types is for a new table, and does not go with --append, --upsert or --text.")
        }
        _ = try (columnNames(), columnTypes(), keyNames())
        if InputFile.isStandardInput(file) && keyOptions.choice.descriptor == 0 {
            throw ValidationError("Standard input cannot give both the key and the rows.")
        }
    }

    private var style: DelimitedStyle {
        DelimitedStyle(
            delimiter: delimiter?.utf8.first ?? DelimitedStyle().delimiter,
            null: null.map { Array($0.utf8) }
        )
    }

    private var appends: Bool { append || upsert != nil }

    private func columnNames() throws -> [String]? { try columns.map { try names($0, of: "--columns") } }

    private func keyNames() throws -> [String] { try upsert.map { try names($0, of: "--upsert") } ?? [] }

    private func names(_ text: String, of option: String) throws -> [String] {
        let names = text.parts(between: ",").map(String.init)
        guard !names.contains("") else { throw ValidationError("\(option) names a column with no name.") }
        guard Set(names.map { ExactText(name: $0) }).count == names.count else {
            throw ValidationError("\(option) names a column twice.")
        }
        return names
    }

    private func columnTypes() throws -> [ExactText: ColumnType] {
        var result: [ExactText: ColumnType] = [:]
        for part in types?.parts(between: ",") ?? [] {
            let words = part.parts(between: "=")
            guard words.count == 2, !words[0].isEmpty, let type = ColumnType(word: String(words[1])) else {
                throw ValidationError(
                    "--types takes pairs such as id=INTEGER, of INTEGER, REAL, NUMERIC, TEXT, BLOB and ANY."
                )
            }
            guard result.updateValue(type, forKey: ExactText(name: String(words[0]))) == nil else {
                throw ValidationError("--types names a column twice.")
            }
        }
        return result
    }

    func run() throws {
        reportOptions.begin(try Store.literalPath(store))
        // Opened before the key is asked for, so that after a mistyped file name no passphrase has to be typed.
        let input = try InputFile(path: file)
        let format = format ?? ImportFormat(path: file)
        try rejects.map(RejectedRows.requireAbsent)
        let settings = try cipherOptions.settings(of: store)
        let database = try keyOptions.withKey(of: store) {
            try Store.open(store, key: $0, settings: settings, lockWait: lockOptions.lockWait)
        }
        defer { database.close() }
        let progress = progressOptions.reporter()
        // From here on a signal does not leave the file.
        SignalWatch.start()
        let rejected = try rejects.map { try RejectedRows(path: $0, format: format, style: style) }
        var importer = Importer(
            input: input,
            format: format,
            table: table,
            appends: appends,
            guessesTypes: !text,
            progress: progress
        )
        importer.style = style
        importer.hasHeader = !noHeader
        importer.names = try columnNames()
        importer.types = try columnTypes()
        importer.keys = try keyNames()
        importer.rejects = rejected
        let count: Int
        do {
            defer { progress.finish() }
            count = try importer.run(on: database)
        }
        let text = "\(TerminalText.escaped(table)): \(count) row\(count == 1 ? "" : "s") imported\n"
        let content = Imported(table: table, rowCount: count, rejectedCount: rejected?.count)
        guard let rejected, rejected.count > 0 else { return try reportOptions.report(text, content) }
        let rows = "\(rejected.count) row\(rejected.count == 1 ? " was" : "s were")"
        let failure = Failure(.partial, "\(rows) not imported, and went into \(rejected.path).")
        // How many went well is not what is asked for quietly.
        try reportOptions.report(reportOptions.quiet ? "" : text, content, failure: failure)
    }

    /// The members of the JSON object.
    private struct Imported: Encodable, Sendable {
        let table: String
        let rowCount: Int
        let rejectedCount: Int?
    }
}
