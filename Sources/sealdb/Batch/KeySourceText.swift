import SealedDB

/// A key source as one word, as templates and key maps contain it: `key-file:/etc/keys/app.key`.
struct KeySourceText: Sendable {
    let kind: String
    let value: String

    static let kinds = [
        "key-file", "key-credential", "key-command", "key-ring", "passphrase-file", "passphrase-credential",
        "passphrase-command", "unwrap-command",
    ]

    /// - Throws: ``Failure``. Its message does not show what follows the colon.
    init(_ text: String) throws(Failure) {
        guard let colon = text.utf8.firstIndex(of: UInt8(ascii: ":")),
            KeySourceText.kinds.contains(String(text[..<colon]))
        else {
            throw Failure(
                .usage,
                "A key source begins with one of: \(KeySourceText.kinds.map { $0 + ":" }.joined(separator: " "))"
            )
        }
        kind = String(text[..<colon])
        value = String(text[text.utf8.index(after: colon)...])
        guard !value.isEmpty else { throw Failure(.usage, "Nothing follows \(kind): in a key source.") }
    }

    private var isCommand: Bool { kind.hasSuffix("-command") }

    /// The source that the text stands for, with every `{placeholder}` replaced.
    func origin(for store: StoreItem? = nil) throws(Failure) -> KeyChoice.Origin {
        if isCommand {
            // Split into words before replacing placeholders, so that the name of a store does not become several
            // words.
            guard let words = CommandWords.split(value), words.first?.begins(with: "/") == true else {
                throw Failure(.usage, "\(kind): takes the absolute path of a program, and its arguments.")
            }
            var arguments: [String] = []
            for word in words {
                let argument = try replacePlaceholders(in: word, store)
                guard !argument.begins(with: "-") || word.begins(with: "-") else {
                    throw Failure(
                        .configuration,
                        "The program of \(kind): would take the name of this store for an option. Nothing was run. Rename the "
                            + "store, or give its path ({path})."
                    )
                }
                arguments.append(argument)
            }
            switch kind {
            case "key-command": return .source(.keyCommand(arguments))
            case "unwrap-command": return .source(.unwrapCommand(arguments))
            default: return .source(.passphraseCommand(arguments))
            }
        }
        let value = try replacePlaceholders(in: value, store)
        switch kind {
        case "key-file": return .source(.keyFile(value))
        case "key-credential": return .source(.keyCredential(value))
        case "key-ring": return .ring(value)
        case "passphrase-file": return .source(.passphraseFile(value))
        default: return .source(.passphraseCredential(value))
        }
    }

    /// The source as it may be shown: of a command only the program, because its arguments can hold a secret.
    func shown(for store: StoreItem) throws(Failure) -> String {
        switch try origin(for: store) {
        case .source(.keyCommand(let arguments, _)), .source(.passphraseCommand(let arguments, _)),
            .source(.unwrapCommand(let arguments, _)):
            return "\(kind):\(arguments[0])"
        default:
            return "\(kind):\(try replacePlaceholders(in: value, store))"
        }
    }

    private static let placeholders: [(name: String, value: @Sendable (StoreItem) -> String)] = [
        ("path", { $0.identity }), ("dir", { $0.identity.directoryOfPath }),
        ("name", { $0.fileName }), ("stem", { $0.stem }),
    ]

    /// - Parameter store: `nil` if braces are not placeholders.
    private func replacePlaceholders(in text: String, _ store: StoreItem?) throws(Failure) -> String {
        guard let store else { return text }
        var result = ""
        var rest = text[...]
        while let open = rest.utf8.firstIndex(of: UInt8(ascii: "{")) {
            result += rest[..<open]
            let inner = rest[rest.utf8.index(after: open)...]
            guard let close = inner.utf8.firstIndex(of: UInt8(ascii: "}")),
                let placeholder = KeySourceText.placeholders.first(where: { $0.name == inner[..<close] })
            else {
                let names = KeySourceText.placeholders.map { "{\($0.name)}" }.joined(separator: ", ")
                throw Failure(.usage, "In the template of a key source, braces enclose only one of: \(names).")
            }
            result += placeholder.value(store)
            rest = inner[inner.utf8.index(after: close)...]
        }
        return result + rest
    }
}

extension StoreItem {
    fileprivate var fileName: String { identity.nameOfPath }

    /// The file name without its last extension.
    fileprivate var stem: String {
        guard let dot = fileName.utf8.lastIndex(of: UInt8(ascii: ".")), dot != fileName.startIndex else {
            return fileName
        }
        return String(fileName[..<dot])
    }
}
