import ArgumentParser
import SealedDB

struct TablesCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "tables",
        abstract: "Print the names of the tables and views, one on a line.",
        discussion: """
            In the order of their names, without SQLite's own tables and those that virtual tables make for themselves.

              sealdb tables app.db --key-file app.key
            """
    )

    @OptionGroup
    var options: SchemaOptions

    func run() throws {
        let objects = try options.objects().filter(\.isShown)
        let output = ResultOutput()
        for name in objects.map(\.name).sorted() { try output.write(SchemaOptions.shown(name) + "\n") }
        try output.flush()
    }
}

struct SchemaCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "schema",
        abstract: "Print the statements that made the tables, indexes, views and triggers.",
        discussion: """
            With names, only those of these tables and views. Tables that virtual tables make for themselves are left out.

              sealdb schema app.db --key-file app.key
              sealdb schema app.db people --key-file app.key
            """
    )

    @OptionGroup
    var options: SchemaOptions

    @Argument(help: "Tables and views.")
    var names: [String] = []

    func run() throws {
        let output = ResultOutput()
        for object in try SchemaObject.those(of: names, in: options.objects()) where object.kind != .shadowTable {
            try output.write(SchemaOptions.shown(object.statement()))
        }
        try output.flush()
    }
}

/// What both commands need.
struct SchemaOptions: ParsableArguments {
    @Argument(help: "The store.", completion: .file())
    var store: String

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
    }

    /// On a terminal, characters that would control it are escaped.
    static func shown(_ text: String) -> String {
        ResultOutput.isTerminal ? TerminalText.escaped(text, keepingNewlines: true) : text
    }

    func objects() throws -> [SchemaObject] {
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
        let objects = try SchemaObject.all(of: database)
        try database.requireStill()
        return objects
    }
}
