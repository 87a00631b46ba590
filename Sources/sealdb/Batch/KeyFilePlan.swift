import Foundation
import SealedDB
import Synchronization

/// Which key files a rotation replaces, which stores use each of them, and which of these have the new key by now.
final class KeyFilePlan: Sendable {
    /// A key file, and the stores that use it.
    private struct Group {
        var replacement: KeyFileReplacement
        var stage = KeyFileReplacement.Stage.pending
        var missing: [StoreItem] = []
        /// The key that the stores of the group got.
        var newKey: Key?
        /// The key that one of them had before; `nil` if that is not known.
        var oldKey: Key?
    }

    private struct State {
        var groups: [Group] = []
        var places: [ExactText: Int] = [:]
        /// The keys that stores got, until that is noted.
        var keys: [ExactText: Key] = [:]
    }

    private let state: Mutex<State>

    typealias Origins = (old: KeyChoice.Origin, new: KeyChoice.Origin)

    /// - Parameter ending: what is appended to the name of an old key file.
    /// - Throws: ``Failure`` or `DatabaseError` if the key of a store is not in a file, or if the files of several stores do
    ///   not go together. Nothing but names is looked at.
    init(_ stores: [StoreItem], ending: String, _ origins: (StoreItem) throws -> Origins) throws {
        var state = State()
        var roles: [ExactText: (role: String, group: Int)] = [:]
        for store in stores {
            let origins = try origins(store)
            let replacement = try KeyFileReplacement(
                KeyFilePlan.source(origins.old, of: store),
                by: KeyFilePlan.source(origins.new, of: store),
                ending: ending
            )
            if let known = roles[ExactText(replacement.file)], known.role == "old",
                state.groups[known.group].replacement.newFile.isSame(as: replacement.newFile)
            {
                state.groups[known.group].missing.append(store)
                state.places[ExactText(store.identity)] = known.group
                continue
            }
            let files = [("old", replacement.file), ("new", replacement.newFile), ("former", replacement.formerFile)]
            for (role, file) in files {
                guard roles.updateValue((role, state.groups.count), forKey: ExactText(file)) == nil else {
                    throw Failure(
                        .usage,
                        "\(store.name): the key file \(file) would have more than one part: each old key file is replaced "
                            + "by one new file of its own. Nothing was done."
                    )
                }
            }
            state.places[ExactText(store.identity)] = state.groups.count
            state.groups.append(Group(replacement: replacement, missing: [store]))
        }
        self.state = Mutex(state)
    }

    private static func source(_ origin: KeyChoice.Origin, of store: StoreItem) throws(Failure) -> KeySource {
        switch origin {
        case .source(let source): return source
        case .ring(let path):
            throw Failure(
                .usage,
                "\(store.name): its keys are in the key ring \(path), which needs no replacement: see sealdb help "
                    + "keyring. --replace-key-files is for keys in files. Nothing was done."
            )
        case .prompt:
            throw Failure(
                .usage,
                "\(store.name): a passphrase that is typed is in no file. --replace-key-files is for keys in files. "
                    + "Nothing was done."
            )
        }
    }

    // MARK: Before the rotation

    /// Looks for all that would make a replacement fail later.
    /// - Parameter known: what the journal says of an unfinished batch of the stores.
    func check(_ known: JournalState?, isLooking: Bool) throws {
        for index in state.withLock({ $0.groups.indices }) {
            let group = state.withLock { $0.groups[index] }
            var files = group.replacement
            let begun = known?.replacement(of: files.file, by: files.newFile)
            // The ending that is given now may be another one, such as the day.
            if let former = begun?.formerFile { files = files.keeping(formerFile: former) ?? files }
            let found = try files.check(isLooking: isLooking)
            if found == .complete, begun == nil {
                throw Failure(
                    .noInput,
                    "The new key file \(files.newFile) does not exist. If an earlier run has put it in the place of "
                        + "\(files.file), whose former key is \(files.formerFile), there is nothing to do for "
                        + "\(group.missing.map(\.name).joined(separator: ", ")). Otherwise make it. Nothing was changed."
                )
            }
            state.withLock { state in
                state.groups[index].replacement = files
                state.groups[index].stage = found
            }
        }
    }

    /// What is to be done about the key file of a store.
    func replacement(of store: StoreItem) -> KeyFileReplacement? {
        state.withLock { state in state.places[ExactText(store.identity)].map { state.groups[$0].replacement } }
    }

    /// The key of a store whose key file an earlier run has replaced already; `nil` if none has.
    func keyInPlace(of store: StoreItem) throws -> Key? {
        let group = state.withLock { state in state.places[ExactText(store.identity)].map { state.groups[$0] } }
        guard let group, group.stage != .pending else { return nil }
        return try group.replacement.source.key()
    }

    // MARK: After the rotation

    /// Holds the key that a store has now.
    /// - Parameter old: the one that it had before; `nil` if that is not known.
    func hold(_ key: Key, of store: StoreItem, replacing old: Key? = nil) {
        state.withLock { state in
            state.keys[ExactText(store.identity)] = key
            if let old, let place = state.places[ExactText(store.identity)] { state.groups[place].oldKey = old }
        }
    }

    /// Notes that the store has the key that is held for it.
    /// - Returns: the replacement that is to be carried out now, because no store needs the old key any more.
    /// - Throws: if another store got another key from the same file.
    func completed(by store: StoreItem) throws -> (files: KeyFileReplacement, key: Key, old: Key?)? {
        try state.withLock { state in
            guard let place = state.places[ExactText(store.identity)],
                let key = state.keys.removeValue(forKey: ExactText(store.identity))
            else { throw Failure(.software, "\(store.name) has its new key, but which is not known any more.") }
            let known = state.groups[place].newKey ?? key
            let files = state.groups[place].replacement
            guard known == key else {
                throw Failure(
                    .unavailable,
                    "\(files.newFile) was changed while the stores got the key that is in it. This store has the key that "
                        + "is there now, others have the one before. \(files.file) is not replaced."
                )
            }
            state.groups[place].newKey = key
            state.groups[place].missing.removeAll { $0.identity.isSame(as: store.identity) }
            guard state.groups[place].missing.isEmpty else { return nil }
            let old = state.groups[place].oldKey
            (state.groups[place].newKey, state.groups[place].oldKey) = (nil, nil)
            return (files, key, old)
        }
    }

    /// For each key file that is left as it is although some of its stores have the new key: why, and what to do.
    var remarks: [String] {
        state.withLock { $0.groups }.filter { $0.newKey != nil }.map { group in
            let names = group.missing.prefix(5).map(\.name) + (group.missing.count > 5 ? ["…"] : [])
            return "\(group.replacement.file) is not replaced, because these stores may still have its key: "
                + "\(names.joined(separator: ", ")). Keep it and \(group.replacement.newFile), which others may have by "
                + "now. To go on, run the same command."
        }
    }
}

extension KeyFileReplacement {
    /// What is reported after it.
    struct Report: Encodable, Sendable {
        let keyFile: String
        let formerKeyFile: String
    }

    var report: Report { Report(keyFile: file, formerKeyFile: formerFile) }

    var doneText: String {
        "\(TerminalText.escaped(file)) holds the new key now, and \(TerminalText.escaped(formerFile)) the old one"
    }

    var planText: String {
        "\(TerminalText.escaped(newFile)) would take the place of \(TerminalText.escaped(file)), which would be kept as "
            + TerminalText.escaped(formerFile)
    }
}
