import Foundation
import SealedDB

/// A file that assigns keys to stores. Each line has a path, a tab and the source of the store's key and, for `rotate`,
/// another tab and the source of its new key. Empty lines and lines that begin with # are ignored.
struct KeyMap: Sendable {
    struct Entry: Sendable {
        let path: String
        /// The source of the key, or the sources of the old and of the new key.
        let sources: [KeySourceText]
    }

    private let name: String
    /// The entries in the order of the file.
    let entries: [Entry]
    private let entriesByIdentity: [ExactText: Entry]

    /// - Throws: ``Failure`` with the number of the line.
    init(contentsOfFile path: String) throws(Failure) {
        let file = try InputFile(path: path)
        try file.requireOwnersAlone()
        guard let text = String(validating: try file.contents(upTo: StoreListOptions.sizeLimit), as: UTF8.self) else {
            throw Failure(.data, "The key map \(file.name) is not UTF-8. Nothing was done.")
        }
        name = file.name
        var entries: [Entry] = []
        var byIdentity: [ExactText: Entry] = [:]
        for (index, line) in text.parts(between: "\n").enumerated() {
            guard !line.isEmpty, !line.begins(with: "#") else { continue }
            do throws(Failure) {
                let entry = try KeyMap.entry(line)
                try StoreListOptions.requireNoKey(entry.path, "it")
                guard byIdentity.updateValue(entry, forKey: ExactText(try StoreItem(entry.path).identity)) == nil else {
                    throw Failure(.usage, "\(entry.path) occurs again.")
                }
                entries.append(entry)
            } catch {
                throw Failure(error.status, "Key map \(file.name), line \(index + 1): \(error.message)")
            }
        }
        self.entries = entries
        entriesByIdentity = byIdentity
    }

    private static func entry(_ line: Substring) throws(Failure) -> Entry {
        let columns = line.parts(between: "\t").map(String.init)
        guard (2...3).contains(columns.count) else {
            throw Failure(.usage, "a line has a path and one or two key sources, separated by tabs.")
        }
        var sources: [KeySourceText] = []
        for column in columns.dropFirst() {
            let source = try KeySourceText(column)
            _ = try source.origin()
            sources.append(source)
        }
        return Entry(path: columns[0], sources: sources)
    }

    private func entry(of store: StoreItem) throws(Failure) -> Entry {
        guard let entry = entriesByIdentity[ExactText(store.identity)] else {
            throw Failure(.usage, "The key map \(name) has no line for \(store.name).")
        }
        return entry
    }

    /// The key that a store has now: the last one of its line, because that is the new key after a rotation.
    func current(_ store: StoreItem) throws(Failure) -> KeyChoice.Origin {
        try entry(of: store).sources.last!.origin()
    }

    /// The key that a store has before a rotation, and the key that it is to get.
    func oldAndNew(_ store: StoreItem) throws(Failure) -> (old: KeyChoice.Origin, new: KeyChoice.Origin) {
        let sources = try entry(of: store).sources
        guard sources.count == 2 else {
            throw Failure(.usage, "The key map \(name) has no new key for \(store.name).")
        }
        return (try sources[0].origin(), try sources[1].origin())
    }
}

extension InputFile {
    /// Refuses a file that other users may change, because it decides which commands run as this user.
    func requireOwnersAlone() throws(Failure) {
        let status = try self.status()
        let isOpenToOthers = status.st_mode & 0o022 != 0 || ![0, geteuid()].contains(status.st_uid)
        let isRegular = status.st_mode & S_IFMT == S_IFREG
        // A named pipe can belong to somebody else too. But standard input and a terminal were given by this user.
        let isGiven = isStandardInput || status.st_mode & S_IFMT == S_IFCHR
        guard isOpenToOthers, isRegular || !isGiven else { return }
        throw Failure(
            .configuration,
            "\(name) may be changed by other users. It was not used. Make it yours: chown, chmod go-w"
        )
    }
}
