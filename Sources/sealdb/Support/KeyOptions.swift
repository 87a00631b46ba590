import ArgumentParser
import SealedDB

/// Whose key it is that options name.
protocol KeyRole: Sendable {
    /// What the names of the options begin with.
    static var prefix: String { get }
    /// What their helps begin with.
    static var help: String { get }
    /// Whether the environment may name the source.
    static var isInEnvironment: Bool { get }
    static var ringHelp: String { get }
}

enum StoreKeyRole: KeyRole {
    static let prefix = ""
    static let help = ""
    static let isInEnvironment = true
    static let ringHelp = "Key ring: the active key, then the others."
}

enum NewKeyRole: KeyRole {
    static let prefix = "new-"
    static let help = "New key: "
    static let isInEnvironment = false
    static let ringHelp = "New key: the active one of a key ring. Default: that of --key-ring."
}

enum OtherKeyRole: KeyRole {
    static let prefix = "other-"
    static let help = "Other store: "
    static let isInEnvironment = false
    static let ringHelp = "Other store: key ring."
}

typealias StoreKeyOptions = KeySourceOptions<StoreKeyRole>
typealias NewKeyOptions = KeySourceOptions<NewKeyRole>
typealias OtherKeyOptions = KeySourceOptions<OtherKeyRole>

/// The options that name the source of one key.
struct KeySourceOptions<Role: KeyRole>: ParsableArguments {
    @Option(
        name: name("key-file"),
        help: help(
            "File with 64 hex digits or 32 raw bytes, closed to group and others; - is standard input.",
            variable: "SEALDB_KEY_FILE",
            value: "key-file"
        ),
        completion: .file()
    )
    var keyFile: String?

    @Option(
        name: name("key-credential"),
        help: help("Credential of this systemd service with a raw key.", value: "name")
    )
    var keyCredential: String?

    @Option(
        name: name("key-command"),
        help: help("Program (absolute path) and arguments that print a raw key.", value: "command")
    )
    var keyCommand: String?

    @Option(name: name("key-fd"), help: help("Open file descriptor to read a raw key from.", value: "number"))
    var keyFd: DescriptorNumber?

    @Option(
        name: name("key-ring"),
        help: ArgumentHelp("\(Role.ringHelp)\(environment("SEALDB_KEY_RING"))", valueName: "key-ring"),
        completion: .file()
    )
    var keyRing: String?

    @Option(
        name: name("passphrase-file"),
        help: help(
            "File with the passphrase, closed to group and others.",
            variable: "SEALDB_PASSPHRASE_FILE",
            value: "passphrase-file"
        ),
        completion: .file()
    )
    var passphraseFile: String?

    @Option(
        name: name("passphrase-credential"),
        help: help("Credential of this systemd service with the passphrase.", value: "name")
    )
    var passphraseCredential: String?

    @Option(
        name: name("passphrase-command"),
        help: help("Program and arguments that print the passphrase.", value: "command")
    )
    var passphraseCommand: String?

    @Option(
        name: name("passphrase-fd"),
        help: help("Open file descriptor to read the passphrase from.", value: "number")
    )
    var passphraseFd: DescriptorNumber?

    @Option(
        name: name("unwrap-command"),
        help: help("Program and arguments that unwrap a key slot; see \"sealdb help slots\".", value: "command")
    )
    var unwrapCommand: String?

    @Flag(name: name("prompt"), help: help("Ask for the passphrase on the terminal."))
    var prompt = false

    private static func name(_ option: String) -> NameSpecification { .customLong(Role.prefix + option) }

    private static func environment(_ variable: String) -> String {
        Role.isInEnvironment ? " Default: $\(variable)." : ""
    }

    private static func help(_ text: String, variable: String? = nil, value: String? = nil) -> ArgumentHelp {
        ArgumentHelp("\(Role.help)\(text)\(variable.map(environment) ?? "")", valueName: value)
    }

    var choice: KeyChoice {
        var choice = KeyChoice(prefix: Role.prefix)
        choice.add("key-file", keyFile) { KeyChoice.file($0, KeySource.keyFile, KeySource.keyDescriptor) }
        choice.add("key-credential", keyCredential) { .source(.keyCredential($0)) }
        choice.add("key-command", keyCommand) { .source(.keyCommand(CommandWords.split($0) ?? [])) }
        choice.add("key-fd", keyFd) { .source(.keyDescriptor($0.number)) }
        choice.add("key-ring", keyRing) { .ring($0) }
        choice.add("passphrase-file", passphraseFile) {
            KeyChoice.file($0, KeySource.passphraseFile, KeySource.passphraseDescriptor)
        }
        choice.add("passphrase-credential", passphraseCredential) { .source(.passphraseCredential($0)) }
        choice.add("passphrase-command", passphraseCommand) {
            .source(.passphraseCommand(CommandWords.split($0) ?? []))
        }
        choice.add("passphrase-fd", passphraseFd) { .source(.passphraseDescriptor($0.number)) }
        choice.add("unwrap-command", unwrapCommand) { .source(.unwrapCommand(CommandWords.split($0) ?? [])) }
        choice.add("prompt", prompt ? true : nil) { _ in .prompt }
        if Role.isInEnvironment { choice.addDefaults() }
        return choice
    }

    /// Calls `body` with the key of an existing store. For a ring, calls `body` with one key after the other, together
    /// with the ring, until a call does not throw a wrong-key error.
    func withKey<T>(of store: String, _ body: (Key, (ring: KeyRing, id: String)?) throws -> T) throws -> T {
        try Engine.requireEncryption()
        let item = try StoreItem(store)
        let prompt = "Passphrase of \(TerminalText.escaped(store)): "
        return try choice.assignment(prompt: prompt, confirm: false, asksAgain: true).withKey(of: item, body)
    }

    func withKey<T>(of store: String, _ body: (Key) throws -> T) throws -> T {
        try withKey(of: store) { key, _ in try body(key) }
    }
}

/// The key of the store, from the options, the environment or the configuration: a command that has these options has
/// ``ConfigurationOptions`` too.
///
/// They are two groups of the command, and not one within the other: in a debug build, ArgumentParser checks a group
/// several times for each of its levels, which made a command take eight times as long to start.
typealias KeyOptions = StoreKeyOptions

extension KeySourceOptions where Role == StoreKeyRole {
    /// Calls `body` with the key of a store such as a backup: if the configuration has none for it, with that of the
    /// store to which it belongs.
    func withKey<T>(of store: String, or owner: String, _ body: (Key) throws -> T) throws -> T {
        let item = try StoreItem(store)
        guard let file = try choice.configuration(), !file.hasKey(for: item) else {
            return try withKey(of: store, body)
        }
        try Engine.requireEncryption()
        let origin = try file.keyOrigin(for: StoreItem(owner))
        return try KeyAssignment.each { _ in origin }.withKey(of: item) { key, _ in try body(key) }
    }

    /// Reads the key for a new store.
    func keyForNewStore(_ store: String) throws -> Key {
        try Engine.requireEncryption()
        let prompt = "Passphrase for \(TerminalText.escaped(store)): "
        return try choice.assignment(prompt: prompt, confirm: true).newKey(of: StoreItem(store))
    }
}

extension KeySourceOptions<NewKeyRole> {
    func key(of store: String) throws -> Key {
        try choice.key(prompt: "New passphrase of \(TerminalText.escaped(store)): ", confirm: true)
    }
}
