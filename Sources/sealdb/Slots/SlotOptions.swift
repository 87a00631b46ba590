import ArgumentParser
import SealedDB

/// A store with slots, and the key of one of them.
struct SlotAccess: ParsableArguments {
    @Argument(help: "The store.", completion: .file())
    var store: String

    @OptionGroup(title: "Key of any slot")
    var keyOptions: KeyOptions

    @OptionGroup(title: "Configuration")
    var configurationOptions: ConfigurationOptions

    @Flag(
        help: "Use slots that are older than those that the store has seen. Slots may be among them that were removed."
    )
    var acceptOlderSlots = false

    @OptionGroup(title: "Cipher settings of a store that has other ones than SQLCipher 4's")
    var cipherOptions: CipherOptions

    @OptionGroup
    var lockOptions: LockOptions

    @OptionGroup(title: "Output")
    var reportOptions: ReportOptions

    /// Calls `body` with the slots, opened by the key of the options.
    func withSlots<T>(_ body: (KeySlots) throws -> T) throws -> T {
        let path = try Store.literalPath(store)
        let settings = try cipherOptions.settings(of: path)
        return try keyOptions.withKey(of: store) { key in
            try body(
                KeySlots(
                    path: path,
                    key: key,
                    cipherSettings: settings,
                    busyTimeout: .seconds(lockOptions.lockWait),
                    acceptsOlderSlots: acceptOlderSlots
                )
            )
        }
    }

    func begin() throws { reportOptions.begin(try Store.literalPath(store)) }

    /// Reports a change.
    func report(_ report: KeySlots.Report, _ text: String) throws {
        try reportOptions.report("\(TerminalText.escaped(store)): \(text)\n" + report.warnings, report)
    }
}

/// The first slots of a store.
struct FirstSlotOptions: ParsableArguments {
    @Option(help: ArgumentHelp("Label of the slot of the key.", valueName: "label"))
    var label = "main"

    @Option(
        help: ArgumentHelp("Recovery slot: a raw key, whose file is to be kept elsewhere.", valueName: "key-file"),
        completion: .file()
    )
    var recoveryKeyFile: String?

    @Option(
        help: ArgumentHelp(
            "Recovery slot: program and arguments that wrap, such as /usr/bin/age -r …",
            valueName: "command"
        )
    )
    var recoveryWrapCommand: String?

    @Flag(help: "Do without a recovery slot: if the key and all others are lost, so is the store.")
    var noRecovery = false

    func validate() throws {
        let count = [recoveryKeyFile != nil, recoveryWrapCommand != nil, noRecovery].count { $0 }
        guard count <= 1 else {
            throw ValidationError(
                "--recovery-key-file, --recovery-wrap-command and --no-recovery exclude each other: give one."
            )
        }
        if let recoveryWrapCommand { _ = try SlotProgram.arguments(recoveryWrapCommand, "--recovery-wrap-command") }
    }

    var isGiven: Bool { recoveryKeyFile != nil || recoveryWrapCommand != nil || noRecovery }

    func requireRecovery() throws {
        guard !isGiven else { return }
        throw ValidationError(
            "A store whose keys are lost is lost: give --recovery-key-file or --recovery-wrap-command, or --no-recovery."
        )
    }

    /// The slot of the key, and that for recovery.
    func slots(_ key: Key) throws -> [KeySlots.NewSlot] {
        var slots = [KeySlots.NewSlot(.key(key), label: label)]
        if let recoveryKeyFile {
            let key = try KeySource.keyFile(recoveryKeyFile).key()
            slots.append(.init(.key(key), label: "recovery", isRecovery: true))
        } else if let recoveryWrapCommand {
            let wrap = try SlotProgram.arguments(recoveryWrapCommand, "--recovery-wrap-command")
            slots.append(.init(.program(wrap: wrap, unwrap: nil), label: "recovery", isRecovery: true))
        }
        return slots
    }
}

enum SlotProgram {
    /// The words of a command that wraps or unwraps.
    static func arguments(_ text: String, _ option: String) throws -> [String] {
        guard let words = CommandWords.split(text), words.first?.begins(with: "/") == true else {
            throw ValidationError(
                "\(option) takes the absolute path of a program, and its arguments. Blanks separate them; quotes and "
                    + "backslashes work as in a shell, and nothing else does."
            )
        }
        return words
    }
}

extension KeySlots.Report {
    /// What should be known about the slots, in lines.
    var warnings: String {
        var lines = untried.map {
            "\($0) was not tried, because no command that unwraps was given: try it where it can be"
        }
        if !hasRecovery { lines.append("No slot is for recovery: if the keys of all slots are lost, so is the store") }
        return lines.map { $0 + "\n" }.joined()
    }
}
