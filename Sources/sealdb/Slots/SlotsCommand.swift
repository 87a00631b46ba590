import ArgumentParser
import SealedDB

struct SlotsCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "slots",
        abstract: "Let several keys open a store, each by a slot of its own.",
        discussion: """
            A store with slots has a random data key. STORE.slots and STORE.slots.2 beside it hold that key once for each \
            slot, wrapped under the key of the slot: a raw key, a passphrase, or what a program wraps and unwraps, such as \
            age, gpg, or the client of a key service. Every command opens the store with the key of any slot, and \
            "sealdb rotate" replaces one in milliseconds. Without both files, or with the keys of all slots lost, the \
            store is lost: "sealdb backup" takes them along.

              sealdb create app.db --slots --key-file ops.key --recovery-key-file safe.key
              sealdb slots init old.db --key-file old.key --no-recovery
              sealdb slots add app.db on-call --key-file ops.key --new-passphrase-file p
              sealdb slots add app.db safe --key-file ops.key --recovery \\
                  --new-wrap-command '/usr/bin/age -r age1…'
              sealdb query app.db 'SELECT 1' --unwrap-command '/usr/bin/age -d -i id.txt'
              sealdb slots remove app.db on-call --key-file ops.key --yes
              sealdb rotate app.db --key-file ops.key --new-key-file new.key

            A program that wraps reads the data key, 64 hex digits and a newline, from its standard input; what it prints \
            is kept. The one that unwraps does the reverse. They are run like the program of --key-command.

            Whoever has a slot's key and a copy of the slots from a time when it was there can open the store and its \
            copies, until "sealdb slots reencrypt" gives it a new data key.
            """,
        subcommands: [
            Init.self, Add.self, List.self, Remove.self, Rename.self, Test.self, Export.self, Import.self,
            SlotsReencryptCommand.self,
        ]
    )

    struct Init: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Give slots to a store that has none.",
            discussion: """
                The store is not rewritten: its present key becomes the data key, and whoever knows it can open the store \
                without any slot. With --fresh-data-key the store is then encrypted under a new one.

                  sealdb slots init app.db --key-file app.key \\
                      --recovery-key-file safe.key --fresh-data-key
                """
        )

        @OptionGroup
        var access: SlotAccess

        @OptionGroup(title: "Slots")
        var first: FirstSlotOptions

        @Flag(help: "Encrypt the store under a new data key, by copy, verify, swap.")
        var freshDataKey = false

        @OptionGroup
        var progressOptions: ProgressOptions

        func validate() throws {
            try access.keyOptions.choice.validate(isRequired: true)
            try first.requireRecovery()
            if freshDataKey, first.recoveryWrapCommand == nil, first.recoveryKeyFile == nil, !first.noRecovery {
                throw ValidationError("--fresh-data-key needs to know the recovery slot.")
            }
        }

        func run() throws {
            try access.begin()
            SignalWatch.start()
            let report = try access.withSlots { slots in
                let new = try first.slots(slots.keyOfStore)
                let report = try slots.initialize(new)
                guard freshDataKey else { return report }
                let others = Array(new.dropFirst())
                do {
                    return try progressOptions.watchingSignals { try slots.reencrypt(keeping: others, progress: $0) }
                } catch let error as DatabaseError {
                    let (status, message) = ErrorReport.statusAndMessage(of: error)
                    throw Failure(
                        error.reason == .interrupted ? .interrupted : ExitStatus(rawValue: status) ?? .software,
                        "\(message) The store has its slots by now, and its former key is still the data key, which opens it "
                            + "without slots. To go on, run sealdb slots reencrypt."
                    )
                }
            }
            let remark =
                freshDataKey
                ? "" : "; the key it had is its data key, which opens it without slots: see sealdb slots reencrypt"
            try access.report(report, "\(report.slots.count) key slots\(remark)")
        }
    }

    struct Add: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Add a slot, and try it.",
            discussion: """
                The new key is read again from where it came, unwraps what was written, and opens the store, before \
                success is reported. A slot whose program only wraps cannot be tried.

                  sealdb slots add app.db backup --key-file ops.key --new-key-file backup.key
                  sealdb slots add app.db safe --key-file ops.key --recovery \\
                      --new-wrap-command '/usr/bin/age -r age1…'
                """
        )

        @OptionGroup
        var access: SlotAccess

        @Argument(
            help: ArgumentHelp(
                "The slot's label: ASCII letters, digits, dots, dashes and underscores.",
                valueName: "label"
            )
        )
        var labelArgument: String?

        @Option(name: .customLong("label"), help: ArgumentHelp("The slot's label, as an option.", valueName: "label"))
        var labelOption: String?

        private var label: String { labelArgument ?? labelOption ?? "" }

        @OptionGroup(title: "New key")
        var newKeyOptions: NewKeyOptions

        @Option(
            help: ArgumentHelp(
                "New key: program and arguments that wrap; --new-unwrap-command, if given, is tried.",
                valueName: "command"
            )
        )
        var newWrapCommand: String?

        @Flag(help: "The slot is for the case that all others are lost.")
        var recovery = false

        func validate() throws {
            guard (labelArgument == nil) != (labelOption == nil) else {
                throw ValidationError("A slot gets one label: as the argument after the store, or by --label.")
            }
            try access.keyOptions.choice.validate(isRequired: true)
            let new = newKeyOptions.choice
            guard let newWrapCommand else {
                try new.validate(isRequired: true)
                guard newKeyOptions.unwrapCommand == nil else {
                    throw ValidationError("--new-unwrap-command needs --new-wrap-command: what unwraps cannot wrap.")
                }
                return
            }
            _ = try SlotProgram.arguments(newWrapCommand, "--new-wrap-command")
            try new.validate(isRequired: false)
            guard new.given.allSatisfy({ $0.name.hasSuffix("unwrap-command") }) else {
                throw ValidationError(
                    "\(new.given[0].name) and --new-wrap-command exclude each other: give one key source."
                )
            }
        }

        func run() throws {
            try access.begin()
            let content = try content()
            SignalWatch.start()
            let new = KeySlots.NewSlot(content, label: label, isRecovery: recovery)
            let report = try access.withSlots { try $0.add(new) }
            let tried = report.untried.isEmpty ? ", opened the store with it" : ""
            try access.report(report, "\(label) added\(tried)")
        }

        private func content() throws -> KeySlots.Content {
            guard let newWrapCommand else { return .key(try newKeyOptions.key(of: access.store)) }
            return .program(
                wrap: try SlotProgram.arguments(newWrapCommand, "--new-wrap-command"),
                unwrap: try newKeyOptions.unwrapCommand.map { try SlotProgram.arguments($0, "--new-unwrap-command") }
            )
        }
    }

    struct Remove: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Remove a slot.",
            discussion: """
                Neither the last one nor the one that the given key opens can be removed: so one is left whose key was just \
                used. Asks, unless --yes is given.

                  sealdb slots remove app.db on-call --key-file ops.key --yes
                """
        )

        @OptionGroup
        var access: SlotAccess

        @Argument(help: "The slot's label.")
        var label: String

        @Flag(help: "Do not ask.")
        var yes = false

        static let remark =
            "Whoever has its key and an old copy of the slots, or of a backup, can still open the store: the data key is the "
            + "same. sealdb slots reencrypt replaces it"

        func validate() throws {
            try access.keyOptions.choice.validate(isRequired: true)
        }

        func run() throws {
            try access.begin()
            if !yes {
                let name = "\(TerminalText.escaped(label)) of \(TerminalText.escaped(access.store))"
                guard try Confirmation.ask("\(Remove.remark). Remove \(name)? [yes/no] ") else {
                    throw Failure(
                        .usage,
                        "Not confirmed, or there is no terminal to ask on: give --yes. Nothing was done."
                    )
                }
            }
            SignalWatch.start()
            let report = try access.withSlots { try $0.remove(label) }
            try access.report(report, "\(TerminalText.escaped(label)) removed. \(Remove.remark)")
        }
    }

    struct Rename: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Give a slot another label.",
            discussion: "  sealdb slots rename app.db main ops --key-file ops.key"
        )

        @OptionGroup
        var access: SlotAccess

        @Argument(help: "The slot's label.")
        var label: String

        @Argument(help: "Its new label.")
        var newLabel: String

        func validate() throws {
            try access.keyOptions.choice.validate(isRequired: true)
        }

        func run() throws {
            try access.begin()
            SignalWatch.start()
            let report = try access.withSlots { try $0.rename(label, to: newLabel) }
            try access.report(report, "\(TerminalText.escaped(label)) is \(newLabel) now")
        }
    }
}
