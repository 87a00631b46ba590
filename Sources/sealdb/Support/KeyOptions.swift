import ArgumentParser
import Foundation
import SealedDB

/// The options that name one key, and the rule that there is exactly one.
struct KeyChoice {
    /// What precedes the option names: "" or "new-".
    let prefix: String
    let keyFile: String?
    let passphraseFile: String?
    let passphraseDescriptor: Int32?
    let isPrompted: Bool

    private var optionNames: [String] {
        ["key-file", "passphrase-file", "passphrase-fd", "prompt"].map { "--\(prefix)\($0)" }
    }

    private var givenNames: [String] {
        let isGiven = [keyFile != nil, passphraseFile != nil, passphraseDescriptor != nil, isPrompted]
        return zip(optionNames, isGiven).filter(\.1).map(\.0)
    }

    var isGiven: Bool { !givenNames.isEmpty }

    func validate(isRequired: Bool) throws {
        let given = givenNames
        if given.count > 1 {
            throw ValidationError(
                "\(given.dropLast().joined(separator: ", ")) and \(given.last!) exclude each other: give one key source."
            )
        }
        if isRequired && given.isEmpty {
            throw ValidationError(
                "A \(prefix.isEmpty ? "" : "new ")key is needed: give "
                    + "\(optionNames.dropLast().joined(separator: ", ")) or \(optionNames.last!)."
            )
        }
        if let passphraseDescriptor, passphraseDescriptor < 0 || (1...2).contains(passphraseDescriptor) {
            throw ValidationError(
                "--\(prefix)passphrase-fd takes the number of a descriptor that is open for reading, such as 0 or 3."
            )
        }
    }

    /// Reads the key; `nil` if no source was given.
    func key(prompt: String, confirm: Bool) throws(DatabaseError) -> Key? {
        if let keyFile { return try KeySource.keyFile(keyFile).key() }
        if let passphraseFile { return try KeySource.passphraseFile(passphraseFile).key() }
        if let passphraseDescriptor { return try KeySource.passphraseDescriptor(passphraseDescriptor).key() }
        if isPrompted { return try KeySource.prompt(prompt, confirm: confirm).key() }
        return nil
    }
}

struct KeyOptions: ParsableArguments {
    @Option(help: "File with 64 hex digits or 32 raw bytes, readable by its owner alone.", completion: .file())
    var keyFile: String?

    @Option(help: "File with the passphrase, readable by its owner alone.", completion: .file())
    var passphraseFile: String?

    @Option(help: ArgumentHelp("Open file descriptor to read the passphrase from.", valueName: "number"))
    var passphraseFd: Int32?

    @Flag(help: "Ask for the passphrase on the terminal.")
    var prompt = false

    var choice: KeyChoice {
        KeyChoice(
            prefix: "",
            keyFile: keyFile,
            passphraseFile: passphraseFile,
            passphraseDescriptor: passphraseFd,
            isPrompted: prompt
        )
    }

    /// The key of a store that exists.
    func key(of store: String) throws -> Key {
        try Engine.requireEncryption()
        return try required(choice.key(prompt: "Passphrase of \(TerminalText.escaped(store)): ", confirm: false))
    }

    /// The key of a store that is about to be made.
    func keyForNewStore(_ store: String) throws -> Key {
        try Engine.requireEncryption()
        return try required(choice.key(prompt: "Passphrase for \(TerminalText.escaped(store)): ", confirm: true))
    }
}

struct NewKeyOptions: ParsableArguments {
    @Option(help: "New key: file with 64 hex digits or 32 raw bytes.", completion: .file())
    var newKeyFile: String?

    @Option(help: "New key: file with the passphrase.", completion: .file())
    var newPassphraseFile: String?

    @Option(help: ArgumentHelp("New key: open file descriptor with the passphrase.", valueName: "number"))
    var newPassphraseFd: Int32?

    @Flag(help: "New key: ask for the passphrase on the terminal, twice.")
    var newPrompt = false

    var choice: KeyChoice {
        KeyChoice(
            prefix: "new-",
            keyFile: newKeyFile,
            passphraseFile: newPassphraseFile,
            passphraseDescriptor: newPassphraseFd,
            isPrompted: newPrompt
        )
    }

    func key(of store: String) throws -> Key {
        try required(choice.key(prompt: "New passphrase of \(TerminalText.escaped(store)): ", confirm: true))
    }
}

/// `validate(isRequired:)` has run before, so this cannot miss.
private func required(_ key: Key?) throws -> Key {
    guard let key else { throw Failure(.usage, "No key source was given.") }
    return key
}
