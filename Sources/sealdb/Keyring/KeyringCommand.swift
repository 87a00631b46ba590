import ArgumentParser
import Foundation
import SealedDB

struct KeyringCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "keyring",
        abstract: "Keep several keys in one file, one of them active.",
        discussion: """
            A store opens with whichever key of the ring fits. New stores get the active key, and "sealdb rotate" gives \
            it to those that have another. A change of the ring is one step, and synced to disk. The file is for its \
            owner alone; keep a copy of it.

              sealdb keyring create app.ring 2026
              sealdb create app.db --key-ring app.ring
              sealdb keyring add app.ring 2027 --activate
              sealdb rotate app.db --key-ring app.ring
              sealdb keyring audit app.ring *.db /backups/*.db
              sealdb keyring remove app.ring 2026 *.db /backups/*.db
            """,
        subcommands: [
            Create.self, Add.self, Activate.self, KeyringAuditCommand.self, KeyringRemoveCommand.self, Reinstate.self,
            List.self,
        ]
    )

    /// The options for what an entry of the ring holds.
    struct EntryOptions: ParsableArguments {
        @Option(help: "Refer to a file with a raw key.", completion: .file())
        var keyFile: String?

        @Option(help: "Refer to a file with a passphrase.", completion: .file())
        var passphraseFile: String?

        @Option(help: ArgumentHelp("Refer to a credential of the systemd service with a raw key.", valueName: "name"))
        var keyCredential: String?

        @Option(help: ArgumentHelp("Refer to a credential with a passphrase.", valueName: "name"))
        var passphraseCredential: String?

        @Option(help: ArgumentHelp("Keep the raw key that is read from this descriptor.", valueName: "number"))
        var keyFd: DescriptorNumber?

        private var choice: KeyChoice {
            var choice = KeyChoice(prefix: "")
            choice.add("key-file", keyFile) { .source(.keyFile(absolute($0))) }
            choice.add("passphrase-file", passphraseFile) { .source(.passphraseFile(absolute($0))) }
            choice.add("key-credential", keyCredential) { .source(.keyCredential($0)) }
            choice.add("passphrase-credential", passphraseCredential) { .source(.passphraseCredential($0)) }
            choice.add("key-fd", keyFd) { .source(.keyDescriptor($0.number)) }
            return choice
        }

        func validate() throws {
            try choice.validate(isRequired: false)
            do throws(DatabaseError) {
                // Before it is made absolute.
                if let name = keyFile ?? passphraseFile { try Key.requireName(name, of: "key file") }
            } catch {
                throw ValidationError(error.message)
            }
        }

        private func absolute(_ path: String) -> String {
            path.begins(with: "/") ? path : FileManager.default.currentDirectoryPath + "/" + path
        }

        enum Content {
            case key(Key)
            case source(KeySource)
        }

        /// Without an option, a new random key. A file is read first, to check that it holds a key, and synced before a
        /// ring names it.
        func content() throws -> Content {
            guard case .source(let source) = choice.given.first?.origin else { return .key(try Key.random()) }
            switch source {
            case .keyDescriptor: return .key(try source.key())
            case .keyFile, .passphraseFile: try source.key().confirm()
            default: break
            }
            return .source(source)
        }
    }

    /// A change of one key in a ring.
    struct Change: ParsableArguments {
        @Argument(help: "The ring.", completion: .file())
        var file: String

        @Argument(help: "The key's id.")
        var id: String

        @OptionGroup(title: "Output")
        var reportOptions: ReportOptions

        /// - Parameter text: what the key then is.
        func run(
            _ text: String,
            _ body: (inout KeyRing, String) throws(DatabaseError) -> Void
        ) throws {
            reportOptions.begin(file)
            try KeyRing.update(file: file) { ring throws(DatabaseError) in
                SignalWatch.start()
                try body(&ring, id)
            }
            try reportOptions.report("\(TerminalText.escaped(file)): \(id) \(text)\n", ["keyID": id])
        }
    }

    struct Create: ParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "create",
            abstract: "Make a new ring of one key, which is active.",
            discussion: """
                Without an option the key is a new random one, kept in the ring. A file that exists is never \
                overwritten (exit 73).

                  sealdb keyring create app.ring 2026
                """
        )

        @Argument(help: "The ring to make.", completion: .file())
        var file: String

        @Argument(help: "The key's id: ASCII letters, digits, dots, dashes and underscores.")
        var id: String

        @OptionGroup(title: "Key")
        var entryOptions: EntryOptions

        @OptionGroup(title: "Output")
        var reportOptions: ReportOptions

        func run() throws {
            reportOptions.begin(file)
            let ring =
                switch try entryOptions.content() {
                case .key(let key): try KeyRing(activeID: id, key: key)
                case .source(let source): try KeyRing(activeID: id, source: source)
                }
            SignalWatch.start()
            try ring.write(toNewFile: file)
            try reportOptions.report("\(TerminalText.escaped(file)): new key ring, mode 0600\n", ["keyID": id])
        }
    }

    struct Add: ParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "add",
            abstract: "Add a key.",
            discussion: """
                Without an option the key is a new random one, kept in the ring.

                  sealdb keyring add app.ring 2027 --key-file app.key
                """
        )

        @Argument(help: "The ring.", completion: .file())
        var file: String

        @Argument(help: "The key's id.")
        var id: String

        @OptionGroup(title: "Key")
        var entryOptions: EntryOptions

        @Flag(help: "Make it the active key.")
        var activate = false

        @OptionGroup(title: "Output")
        var reportOptions: ReportOptions

        func run() throws {
            reportOptions.begin(file)
            let content = try entryOptions.content()
            try KeyRing.update(file: file) { ring throws(DatabaseError) in
                SignalWatch.start()
                switch content {
                case .key(let key): try ring.add(key, id: id)
                case .source(let source): try ring.add(source, id: id)
                }
                if activate { try ring.activate(id) }
            }
            let text = "\(TerminalText.escaped(file)): \(id) added\(activate ? " and active" : "")\n"
            try reportOptions.report(text, ["keyID": id])
        }
    }

    struct Activate: ParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "activate",
            abstract: "Make a key the active one.",
            discussion: "  sealdb keyring activate app.ring 2027"
        )

        @OptionGroup
        var change: Change

        func run() throws {
            try change.run("active") { ring, id throws(DatabaseError) in try ring.activate(id) }
        }
    }

    struct Reinstate: ParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "reinstate",
            abstract: "Make a retired key an ordinary one again.",
            discussion: "  sealdb keyring reinstate app.ring 2026"
        )

        @OptionGroup
        var change: Change

        func run() throws {
            try change.run("is no longer retired") { ring, id throws(DatabaseError) in try ring.reinstate(id) }
        }
    }

    struct List: ParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "list",
            abstract: "List the keys' ids.",
            discussion: "  sealdb keyring list app.ring"
        )

        @Argument(help: "The ring.", completion: .file())
        var file: String

        @Flag(help: "Print one JSON object.")
        var json = false

        private struct Contents: Encodable, Sendable {
            let active: String
            let ids: [String]
            let retired: [KeyRing.RetiredKey]
        }

        func run() throws {
            if json { JSONReport.begin(path: StoreItem.identity(of: file)) }
            let ring = try KeyRing(contentsOfFile: file)
            let output = ResultOutput()
            if json {
                let contents = Contents(active: ring.activeID, ids: ring.ids, retired: ring.retiredKeys)
                try JSONReport.complete(ResultRecord(path: JSONReport.path, status: "done", content: contents), output)
            } else {
                for id in ring.ids { try output.write(id == ring.activeID ? "\(id) (active)\n" : "\(id)\n") }
                for key in ring.retiredKeys { try output.write("\(key.id) (retired, kept until \(key.keptUntil))\n") }
            }
            try output.flush()
        }
    }
}
