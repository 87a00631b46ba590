import ArgumentParser
import SealedDB

/// The slots that get a new data key, as `--keep` names them.
enum KeptSlot {
    /// - Parameter store: whose placeholders the source may have; `nil` if braces are none.
    static func slot(_ text: String, of store: StoreItem? = nil) throws -> KeySlots.NewSlot {
        let (label, source) = try parts(text)
        if let command = command(in: source) {
            return .init(.program(wrap: try SlotProgram.arguments(command, "--keep"), unwrap: nil), label: label)
        }
        let origin = try KeySourceText(source).origin(for: store)
        return .init(.key(try origin.key(prompt: "", confirm: false)), label: label)
    }

    /// Throws if the text is no label with a source. Reads nothing.
    static func validate(_ text: String) throws {
        let source = try parts(text).source
        if let command = command(in: source) {
            _ = try SlotProgram.arguments(command, "--keep")
        } else {
            try KeyTableOptions.check(source)
        }
    }

    private static func parts(_ text: String) throws -> (label: String, source: String) {
        guard let equals = text.utf8.firstIndex(of: UInt8(ascii: "=")) else {
            throw ValidationError(
                "--keep takes a label, = and a key source, such as on-call=passphrase-file:/etc/keys/p."
            )
        }
        return (String(text[..<equals]), String(text[text.utf8.index(after: equals)...]))
    }

    private static func command(in source: String) -> String? {
        let mark = "wrap-command:"
        return source.begins(with: mark) ? String(decoding: source.utf8.dropFirst(mark.utf8.count), as: UTF8.self) : nil
    }

    /// Throws if slots would be removed, and nobody says that they may be.
    static func requireConsent(_ lost: [String], asks: Bool) throws {
        guard !lost.isEmpty else { return }
        let names = lost.joined(separator: ", ")
        if asks, try Confirmation.ask("These slots will be removed: \(names). Go on? [yes/no] ") { return }
        throw Failure(
            .usage,
            "The slots \(names) would be removed, which was not confirmed: give --keep for each, or --yes. Nothing was done."
        )
    }
}

/// What `sealdb rotate --reencrypt` takes.
struct ReencryptionOptions: ParsableArguments {
    @Flag(
        help: ArgumentHelp(
            "In a store with key slots: replace the data key too, by copy, verify, swap.",
            discussion: "Other slots are removed unless --keep is given for each; asks then, unless --yes is given."
        )
    )
    var reencrypt = false

    @Option(
        help: ArgumentHelp(
            "With --reencrypt: keep this slot too. May be given several times.",
            discussion: "A label, = and a source as in a key map, or wrap-command: with the program of a slot.",
            valueName: "label=source"
        )
    )
    var keep: [String] = []

    @Flag(help: "With --reencrypt: do not ask whether the other slots may be removed.")
    var yes = false

    func validate() throws {
        guard reencrypt || keep.isEmpty && !yes else {
            throw ValidationError("\(keep.isEmpty ? "--yes" : "--keep") belongs to --reencrypt.")
        }
        for text in keep { try KeptSlot.validate(text) }
    }
}
