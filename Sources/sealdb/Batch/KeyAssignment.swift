import ArgumentParser
import SealedDB

/// Which key opens which store: one key or ring for all stores, or a source for each store.
enum KeyAssignment: Sendable {
    case key(Key)
    /// A passphrase that was typed. If it does not open the store, it is asked for again.
    case typed(Key, prompt: String)
    case ring(KeyRing)
    case each(@Sendable (StoreItem) throws -> KeyChoice.Origin)

    /// Calls `body` with the key of an existing store. For a ring, calls `body` with one key after the other, together
    /// with the ring, until a call does not throw a wrong-key error.
    func withKey<T>(
        of store: StoreItem,
        _ body: (Key, (ring: KeyRing, id: String)?) throws -> T
    ) throws -> T {
        switch self {
        case .key(let key):
            return try body(key, nil)
        case .typed(let key, let prompt):
            return try KeyAssignment.withPassphrase(key, prompt, of: store) { key in try body(key, nil) }
        case .ring(let ring):
            return try ring.withKey(toOpen: store.name) { key, id in try body(key, (ring, id)) }
        case .each(let origin):
            let origin = try origin(store)
            if case .ring(let path) = origin {
                return try KeyAssignment.ring(KeyRing(contentsOfFile: path)).withKey(of: store, body)
            }
            return try body(try origin.key(prompt: "", confirm: false), nil)
        }
    }

    /// How often a passphrase may be wrong, as with other programs.
    private static let attempts = 3

    private static func withPassphrase<T>(
        _ first: Key,
        _ prompt: String,
        of store: StoreItem,
        _ body: (Key) throws -> T
    ) throws -> T {
        var key = first
        for _ in 1..<attempts {
            do {
                return try body(key)
            } catch let error as DatabaseError where error.reason == .wrongKey {
                StandardError.message("This is not the passphrase of \(TerminalText.escaped(store.name)). Try again.")
            }
            key = try KeyChoice.Origin.prompt.key(prompt: prompt, confirm: false)
        }
        return try body(key)
    }

    /// The key that the store is to get. For a ring this is the active key.
    func newKey(of store: StoreItem) throws -> Key {
        switch self {
        case .key(let key), .typed(let key, _): key
        case .ring(let ring): try ring.activeKey()
        case .each(let origin): try origin(store).key(prompt: "", confirm: false)
        }
    }
}

extension KeyChoice {
    /// Reads the key or the ring now, for all stores, or has the configuration give each its own.
    /// - Parameter asksAgain: whether a passphrase that is typed may be typed again if it does not open the store.
    func assignment(prompt: String, confirm: Bool, asksAgain: Bool = false) throws -> KeyAssignment {
        if let file = try configuration() { return .each { store in try file.keyOrigin(for: store) } }
        if let ring = try ring() { return .ring(ring) }
        let key = try key(prompt: prompt, confirm: confirm)
        if asksAgain, case .prompt = given.first?.origin { return .typed(key, prompt: prompt) }
        return .key(key)
    }

    /// Where the key of the store comes from.
    func origin(for store: StoreItem) throws -> Origin {
        if let file = try configuration() { return try file.keyOrigin(for: store) }
        // `validate(isRequired:)` has made sure of this before.
        guard let origin = given.first?.origin else { throw Failure(.usage, "No key source was given.") }
        return origin
    }

    /// Whether the source comes from an option, and not from the environment.
    var isGivenByOption: Bool { given.first?.name.hasPrefix("--") == true }
}

/// The options that give each store a key of its own.
struct KeyTableOptions: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "Key source for each store, such as key-file:/etc/keys/{stem}.key.",
            discussion: """
                It begins with \(KeySourceText.kinds.map { $0 + ":" }.joined(separator: ", ")). Replaced are {path} by the \
                store's absolute path, {dir} by its directory, {name} by its file name, {stem} by that without extension.
                """,
            valueName: "source"
        )
    )
    var keyTemplate: String?

    @Option(
        help: ArgumentHelp(
            "File with the path of a store, a tab and its key source on each line.",
            discussion: """
                For rotate, another tab and the source of the new key; other commands take the last source. Without names \
                of stores, the command works on all that the file names.
                """,
            valueName: "map"
        ),
        completion: .file()
    )
    var keyMap: String?

    func validate() throws {
        if keyTemplate != nil, keyMap != nil {
            throw ValidationError("--key-template and --key-map exclude each other: give one key source.")
        }
        if let keyTemplate { try KeyTableOptions.check(keyTemplate) }
    }

    /// Refuses a template that could not be right for any store.
    static func check(_ template: String) throws {
        do throws(Failure) {
            _ = try KeySourceText(template).origin(for: StoreItem("/store"))
        } catch {
            throw ValidationError(error.message)
        }
    }

    var isGiven: Bool { keyTemplate != nil || keyMap != nil }

    /// Makes sure that there is exactly one source of keys.
    func validate(with choice: KeyChoice, isRequired: Bool = true) throws {
        guard isGiven else { return try choice.validate(isRequired: isRequired) }
        guard !choice.isGivenByOption else {
            let own = keyTemplate == nil ? "--key-map" : "--key-template"
            throw ValidationError("\(choice.given[0].name) and \(own) exclude each other: give one key source.")
        }
    }

    func map() throws -> KeyMap? {
        try keyMap.map { path throws(Failure) in try KeyMap(contentsOfFile: path) }
    }

    /// The keys for a command that needs only one key for each store.
    func assignment(_ choice: KeyChoice, _ map: KeyMap?, _ stores: [StoreItem]) throws -> KeyAssignment {
        try Engine.requireEncryption()
        if let map { return .each { store in try map.current(store) } }
        if let keyTemplate { return try KeyTableOptions.assignment(template: keyTemplate) }
        let whose = stores.count == 1 ? TerminalText.escaped(stores[0].name) : "the stores"
        let prompt = "Passphrase of \(whose): "
        return try choice.assignment(prompt: prompt, confirm: false, asksAgain: stores.count == 1)
    }

    static func assignment(template: String) throws(Failure) -> KeyAssignment {
        let source = try KeySourceText(template)
        return .each { store in try source.origin(for: store) }
    }
}
