import ArgumentParser
import Foundation
import SealedDB

/// The source of one key. Makes sure that exactly one source is given.
struct KeyChoice {
    enum Origin: Sendable {
        case source(KeySource)
        case ring(String)
        case prompt

        /// Reads the key. For a ring this is the active key.
        func key(prompt: String, confirm: Bool) throws(DatabaseError) -> Key {
            switch self {
            case .source(let source): try source.key()
            case .ring(let path): try KeyRing(contentsOfFile: path).activeKey()
            case .prompt: try KeySource.prompt(prompt, confirm: confirm).key()
            }
        }
    }

    /// The prefix of the option names: "" or "new-".
    let prefix: String
    /// The options that were given, each with its source, in the order of ``optionNames``.
    private(set) var given: [(name: String, origin: Origin)] = []
    private var usesConfiguration = false

    var isGiven: Bool { !given.isEmpty }

    /// Whether the keys of stores come from the configuration.
    var isConfigured: Bool { given.isEmpty && usesConfiguration && ConfigurationInUse.mayHaveKeys }

    /// The configuration, if the keys of stores come from it.
    func configuration() throws(Failure) -> ConfigurationFile? {
        given.isEmpty && usesConfiguration ? try ConfigurationInUse.file() : nil
    }

    static let optionNames = [
        "key-file", "key-credential", "key-command", "key-fd", "key-ring", "passphrase-file", "passphrase-credential",
        "passphrase-command", "passphrase-fd", "unwrap-command", "prompt",
    ]

    private var optionNames: [String] { KeyChoice.optionNames.map { "--\(prefix)\($0)" } }

    init(prefix: String) {
        self.prefix = prefix
    }

    /// Adds the option if it was given.
    mutating func add<Value>(_ name: String, _ value: Value?, _ origin: (Value) -> Origin) {
        if let value { given.append(("--\(prefix)\(name)", origin(value))) }
    }

    /// The source that a path names: `-` is standard input and `/dev/fd/3` an open descriptor. Neither could be checked as
    /// a file. Whoever started the program has opened them.
    static func file(
        _ path: String,
        _ file: (String) -> KeySource,
        _ descriptor: (Int32) -> KeySource
    ) -> Origin {
        if InputFile.isStandardInput(path) { return .source(descriptor(0)) }
        let directory = "/dev/fd/"
        guard path.begins(with: directory),
            path.utf8.dropFirst(directory.utf8.count).allSatisfy({
                (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0)
            }),
            let number = Int32(String(decoding: path.utf8.dropFirst(directory.utf8.count), as: UTF8.self))
        else { return .source(file(path)) }
        return .source(descriptor(number))
    }

    /// Adds the source that an environment variable names, if no option was given. Variables can only name files; no
    /// variable holds a key. If there is none either, the configuration may have one for each store.
    mutating func addDefaults() {
        usesConfiguration = true
        guard given.isEmpty else { return }
        let variables: [(name: String, origin: (String) -> Origin)] = [
            ("SEALDB_KEY_FILE", { .source(.keyFile($0)) }),
            ("SEALDB_KEY_RING", { .ring($0) }),
            ("SEALDB_PASSPHRASE_FILE", { .source(.passphraseFile($0)) }),
        ]
        for (name, origin) in variables {
            if let file = getenv(name).map({ String(cString: $0) }), !file.isEmpty {
                given.append((name, origin(file)))
            }
        }
    }

    func validate(isRequired: Bool) throws {
        if given.count > 1 {
            let names = given.map(\.name)
            throw ValidationError(
                "\(names.dropLast().joined(separator: ", ")) and \(names.last!) exclude each other: give one key source."
            )
        }
        if isRequired && given.isEmpty && !isConfigured {
            throw ValidationError(
                "A \(prefix.isEmpty ? "" : "new ")key is needed: give "
                    + "\(optionNames.dropLast().joined(separator: ", ")) or \(optionNames.last!)."
            )
        }
        if let descriptor, descriptor < 0 || (1...2).contains(descriptor) {
            throw ValidationError(
                "\(given[0].name) takes the number of a descriptor that is open for reading, such as 0 or 3."
            )
        }
        if let arguments, arguments.first?.begins(with: "/") != true {
            throw ValidationError(
                "\(given[0].name) takes the absolute path of a program, and its arguments. Blanks separate them; quotes "
                    + "and backslashes work as in a shell, and nothing else does."
            )
        }
    }

    /// The descriptor from which the key is read; `nil` for other sources.
    var descriptor: Int32? {
        switch given.first?.origin {
        case .source(.keyDescriptor(let number)), .source(.passphraseDescriptor(let number)): number
        default: nil
        }
    }

    var isRing: Bool {
        if case .ring = given.first?.origin { true } else { false }
    }

    private var arguments: [String]? {
        switch given.first?.origin {
        case .source(.keyCommand(let arguments, _)), .source(.passphraseCommand(let arguments, _)),
            .source(.unwrapCommand(let arguments, _)):
            arguments
        default: nil
        }
    }

    /// The key ring; `nil` for other sources.
    func ring() throws(DatabaseError) -> KeyRing? {
        guard case .ring(let path) = given.first?.origin else { return nil }
        return try KeyRing(contentsOfFile: path)
    }

    /// Reads the key. For a ring this is the active key.
    func key(prompt: String, confirm: Bool) throws -> Key {
        // `validate(isRequired:)` has made sure of this before.
        guard let origin = given.first?.origin else { throw Failure(.usage, "No key source was given.") }
        return try origin.key(prompt: prompt, confirm: confirm)
    }
}

/// The number of an open descriptor. What is no number is taken for -1, which ``KeyChoice/validate(isRequired:)`` refuses
/// without showing what was given: it may be a secret.
struct DescriptorNumber: ExpressibleByArgument {
    let number: Int32

    init?(argument: String) { number = Int32(argument) ?? -1 }
}
