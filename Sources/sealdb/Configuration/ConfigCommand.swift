import ArgumentParser
import Foundation
import SealedDB

struct ConfigCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "config",
        abstract: "Check the configuration file, and tell what it says of a store.",
        discussion: """
            The file is what --config names, else $SEALDB_CONFIG, else /etc/sealdb/sealdb.conf, if that exists. It says \
            where the keys of stores come from, what is particular about stores, and defaults of options:

              # Comments have lines of their own.
              [defaults]
              lock-wait = 10
              state-directory = /var/lib/sealdb

              [store "/srv/app/*.db"]
              key-file = /etc/keys/{stem}.key
              rotate-after = 90d

            A store belongs to the first section whose pattern its path matches, with links followed, and to that one \
            alone; so put the particular before the general. In a pattern, * is any text and ? any character but a \
            slash, [a-z] one of these, and ** any number of directories.

            In [defaults]: lock-wait, jobs, continue-on-error (yes or no), progress and max-rate, as the options of these \
            names; state-directory, where "sealdb status" finds what was done. In [store]: one source of the key, as \
            in --key-template; cipher settings, as the options of these names. In both: rotate-after, verify-after and \
            backup-after, such as 36h, 90d or 4w, for "sealdb status".

            An option outranks the environment, and that the file. The file never holds a key. It, its directories and \
            links must belong to root or to you, and nobody else may be able to write to them (else exit 78). With \
            --config /dev/null there is none.

              sealdb config check
              sealdb config show /srv/app/app.db
            """,
        subcommands: [Check.self, Show.self]
    )

    struct Check: ParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "check",
            abstract: "Check a configuration file, and the key files that it names for the stores on disk.",
            discussion: """
                Tells for each section which stores on disk it is for. Key files and rings are read and their modes \
                checked; programs that print keys are looked for and not run; no store is opened. Exit 78 if anything is \
                wrong.

                  sealdb config check
                  sealdb config check ./new.conf --json
                """
        )

        @Argument(help: "The file. Default: the one that commands use.", completion: .file())
        var file: String?

        @OptionGroup(title: "Output")
        var reportOptions: ReportOptions

        func run() throws {
            let path =
                file ?? ConfigurationFile.path(option: nil, ProcessInfo.processInfo.environment).path
            reportOptions.begin(path)
            guard let file = try ConfigurationFile.load(path) else {
                return try reportOptions.report("\(TerminalText.escaped(path)): no configuration is used\n")
            }
            let check = try ConfigurationCheck(file)
            let count = check.problems.count
            let failure =
                count == 0
                ? nil
                : Failure(
                    .configuration,
                    "\(path) has \(count == 1 ? "a problem" : "\(count) problems"); see above. Nothing was changed."
                )
            try reportOptions.report(check.text, check, failure: failure, failureStatus: "failed")
        }
    }

    struct Show: ParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "show",
            abstract: "Tell what is used for a store, and from which line of the configuration.",
            discussion: """
                The store need not exist, and is not opened. Keys are not read; of a program that prints one only its \
                path is shown.

                  sealdb config show app.db
                """
        )

        @Argument(help: "The store.", completion: .file())
        var store: String

        @OptionGroup(title: "Configuration")
        var configurationOptions: ConfigurationOptions

        @OptionGroup(title: "Output")
        var reportOptions: ReportOptions

        /// The members of the JSON object.
        private struct Content: Encodable, Sendable {
            let configuration: String?
            let pattern: String?
            let settings: [Setting]
        }

        private struct Setting: Encodable, Sendable {
            let name: String
            let value: String
            /// `nil` if it does not come from the file.
            let line: Int?

            init(_ name: String, _ value: String, line: Int? = nil) {
                (self.name, self.value, self.line) = (name, value, line)
            }
        }

        func run() throws {
            reportOptions.begin(store)
            let item = try StoreItem(store)
            let file = try ConfigurationInUse.file()
            let section = file?.section(for: item)
            let settings = try settings(item, file, section)
            var rows = [
                ("store", item.identity), ("configuration", file?.path ?? "none"),
                ("section", section.map { "\($0.pattern.text) (line \($0.text.line))" } ?? "none"),
            ]
            rows += settings.map { ($0.name, $0.value + ($0.line.map { " (line \($0))" } ?? "")) }
            let content = Content(configuration: file?.path, pattern: section?.pattern.text, settings: settings)
            try reportOptions.report(FieldList(rows).text, content)
        }

        private func settings(
            _ item: StoreItem,
            _ file: ConfigurationFile?,
            _ section: StoreSection?
        ) throws -> [Setting] {
            var settings: [Setting] = []
            var choice = KeyChoice(prefix: "")
            choice.addDefaults()
            if let variable = choice.given.first?.name {
                settings.append(Setting("key", "as $\(variable) says"))
            } else if let key = section?.key {
                settings.append(Setting("key", try key.shown(for: item), line: section?.text.entry(key.kind)?.line))
            } else {
                settings.append(Setting("key", "none"))
            }
            let own = section?.text.entries.filter { !KeySourceText.kinds.contains($0.name) } ?? []
            let general = file?.defaultsText?.entries.filter { entry in !own.contains { $0.name == entry.name } } ?? []
            return settings + (own + general).map { Setting($0.name, $0.value, line: $0.line) }
        }
    }
}
