import ArgumentParser
import SealedDB

struct KeyOptions: ParsableArguments {
    @Option(
        help:
            "File with 64 hex digits or 32 raw bytes, closed to group and others; - is standard input. Default: $SEALDB_KEY_FILE.",
        completion: .file()
    )
    var keyFile: String?

    @Option(help: ArgumentHelp("Credential of this systemd service with a raw key.", valueName: "name"))
    var keyCredential: String?

    @Option(help: ArgumentHelp("Program (absolute path) and arguments that print a raw key.", valueName: "command"))
    var keyCommand: String?

    @Option(help: ArgumentHelp("Open file descriptor to read a raw key from.", valueName: "number"))
    var keyFd: Int32?

    @Option(help: "Key ring: the active key, then the others. Default: $SEALDB_KEY_RING.", completion: .file())
    var keyRing: String?

    @Option(
        help: "File with the passphrase, closed to group and others. Default: $SEALDB_PASSPHRASE_FILE.",
        completion: .file()
    )
    var passphraseFile: String?

    @Option(help: ArgumentHelp("Credential of this systemd service with the passphrase.", valueName: "name"))
    var passphraseCredential: String?

    @Option(help: ArgumentHelp("Program and arguments that print the passphrase.", valueName: "command"))
    var passphraseCommand: String?

    @Option(help: ArgumentHelp("Open file descriptor to read the passphrase from.", valueName: "number"))
    var passphraseFd: Int32?

    @Flag(help: "Ask for the passphrase on the terminal.")
    var prompt = false

    var choice: KeyChoice {
        var choice = KeyChoice(prefix: "")
        choice.add("key-file", keyFile) { KeyChoice.file($0, KeySource.keyFile, KeySource.keyDescriptor) }
        choice.add("key-credential", keyCredential) { .source(.keyCredential($0)) }
        choice.add("key-command", keyCommand) { .source(.keyCommand(CommandWords.split($0) ?? [])) }
        choice.add("key-fd", keyFd) { .source(.keyDescriptor($0)) }
        choice.add("key-ring", keyRing) { .ring($0) }
        choice.add("passphrase-file", passphraseFile) {
            KeyChoice.file($0, KeySource.passphraseFile, KeySource.passphraseDescriptor)
        }
        choice.add("passphrase-credential", passphraseCredential) { .source(.passphraseCredential($0)) }
        choice.add("passphrase-command", passphraseCommand) {
            .source(.passphraseCommand(CommandWords.split($0) ?? []))
        }
        choice.add("passphrase-fd", passphraseFd) { .source(.passphraseDescriptor($0)) }
        choice.add("prompt", prompt ? true : nil) { _ in .prompt }
        choice.addEnvironment()
        return choice
    }

    /// Calls `body` with the key of an existing store. For a ring, calls `body` with one key after the other, together
    /// with the ring, until a call does not throw a wrong-key error.
    func withKey<T>(of store: String, _ body: (Key, (ring: KeyRing, id: String)?) throws -> T) throws -> T {
        try Engine.requireEncryption()
        guard let ring = try choice.ring() else {
            let prompt = "Passphrase of \(TerminalText.escaped(store)): "
            return try body(try choice.key(prompt: prompt, confirm: false), nil)
        }
        return try ring.withKey(toOpen: store) { key, id in try body(key, (ring, id)) }
    }

    func withKey<T>(of store: String, _ body: (Key) throws -> T) throws -> T {
        try withKey(of: store) { key, _ in try body(key) }
    }

    /// Reads the key for a new store.
    func keyForNewStore(_ store: String) throws -> Key {
        try Engine.requireEncryption()
        return try choice.key(prompt: "Passphrase for \(TerminalText.escaped(store)): ", confirm: true)
    }
}

struct NewKeyOptions: ParsableArguments {
    @Option(help: "New key: file with 64 hex digits or 32 raw bytes.", completion: .file())
    var newKeyFile: String?

    @Option(help: ArgumentHelp("New key: credential of this systemd service.", valueName: "name"))
    var newKeyCredential: String?

    @Option(help: ArgumentHelp("New key: program and arguments that print a raw key.", valueName: "command"))
    var newKeyCommand: String?

    @Option(help: ArgumentHelp("New key: open file descriptor with a raw key.", valueName: "number"))
    var newKeyFd: Int32?

    @Option(help: "New key: the active one of a key ring. Default: that of --key-ring.", completion: .file())
    var newKeyRing: String?

    @Option(help: "New key: file with the passphrase.", completion: .file())
    var newPassphraseFile: String?

    @Option(help: ArgumentHelp("New key: credential with the passphrase.", valueName: "name"))
    var newPassphraseCredential: String?

    @Option(help: ArgumentHelp("New key: program and arguments that print the passphrase.", valueName: "command"))
    var newPassphraseCommand: String?

    @Option(help: ArgumentHelp("New key: open file descriptor with the passphrase.", valueName: "number"))
    var newPassphraseFd: Int32?

    @Flag(help: "New key: ask for the passphrase on the terminal, twice.")
    var newPrompt = false

    var choice: KeyChoice {
        var choice = KeyChoice(prefix: "new-")
        choice.add("key-file", newKeyFile) { KeyChoice.file($0, KeySource.keyFile, KeySource.keyDescriptor) }
        choice.add("key-credential", newKeyCredential) { .source(.keyCredential($0)) }
        choice.add("key-command", newKeyCommand) { .source(.keyCommand(CommandWords.split($0) ?? [])) }
        choice.add("key-fd", newKeyFd) { .source(.keyDescriptor($0)) }
        choice.add("key-ring", newKeyRing) { .ring($0) }
        choice.add("passphrase-file", newPassphraseFile) {
            KeyChoice.file($0, KeySource.passphraseFile, KeySource.passphraseDescriptor)
        }
        choice.add("passphrase-credential", newPassphraseCredential) { .source(.passphraseCredential($0)) }
        choice.add("passphrase-command", newPassphraseCommand) {
            .source(.passphraseCommand(CommandWords.split($0) ?? []))
        }
        choice.add("passphrase-fd", newPassphraseFd) { .source(.passphraseDescriptor($0)) }
        choice.add("prompt", newPrompt ? true : nil) { _ in .prompt }
        return choice
    }

    func key(of store: String) throws -> Key {
        try choice.key(prompt: "New passphrase of \(TerminalText.escaped(store)): ", confirm: true)
    }
}
