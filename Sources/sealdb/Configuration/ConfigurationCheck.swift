import Foundation
import SealedDB

/// What can be said of a configuration file without opening a store.
struct ConfigurationCheck: Encodable, Sendable {
    struct Store: Encodable, Sendable {
        let path: String
        let keySource: String?
    }

    struct Section: Encodable, Sendable {
        let pattern: String
        let line: Int
        let stores: [Store]
    }

    let sections: [Section]
    let problems: [String]

    init(_ file: ConfigurationFile) throws(Failure) {
        var problems: [String] = []
        var stores: [[Store]] = Array(repeating: [], count: file.stores.count)
        /// What was found out about sources that several stores share.
        var known: [String: String?] = [:]
        func check(_ source: KeySourceText, for store: StoreItem) throws(Failure) -> String {
            let shown = try source.shown(for: store)
            if known[shown] == nil {
                let problem = ConfigurationCheck.problem(with: try source.origin(for: store))
                known[shown] = .some(problem)
                if let problem { problems.append("\(store.name): \(problem)") }
            }
            return shown
        }
        for (store, number) in try file.storesOnDisk({ problems.append($0) }) {
            let source = file.stores[number].key
            let shown = try source.map { key throws(Failure) in try check(key, for: store) }
            stores[number].append(Store(path: store.identity, keySource: shown))
            var status = stat()
            if stat(store.path, &status) != 0 {
                problems.append("\(store.identity) cannot be found: \(String(cString: strerror(errno))).")
            } else if status.st_mode & S_IFMT != S_IFREG {
                problems.append("\(store.identity) is not a regular file.")
            }
        }
        for (number, section) in file.stores.enumerated() where stores[number].isEmpty {
            // A source that is the same for all stores can be looked at without one.
            guard let key = section.key, !key.value.has("{") else { continue }
            _ = try check(key, for: StoreItem("/store"))
        }
        if let directory = file.defaults.stateDirectory, let problem = StoreRecords.problem(with: directory) {
            problems.append(problem)
        }
        sections = zip(file.stores, stores).map { Section(pattern: $0.pattern.text, line: $0.text.line, stores: $1) }
        self.problems = problems
    }

    /// Why no key could come from the source; `nil` as far as that can be told without running a program.
    private static func problem(with origin: KeyChoice.Origin) -> String? {
        do {
            switch origin {
            case .ring(let path):
                _ = try KeyRing(contentsOfFile: path)
            case .source(.keyCommand(let arguments, _)), .source(.passphraseCommand(let arguments, _)):
                guard access(arguments[0], X_OK) == 0 else {
                    return "\(arguments[0]) cannot be run: \(String(cString: strerror(errno)))."
                }
            case .source(.keyCredential), .source(.passphraseCredential):
                // Only the service has them.
                break
            case .source(let source):
                _ = try source.key()
            case .prompt:
                break
            }
            return nil
        } catch {
            return ErrorReport.statusAndMessage(of: error).message
        }
    }

    var text: String {
        var text = ""
        for section in sections {
            let count = section.stores.count
            let stores = count == 0 ? "no store" : "\(count) store\(count == 1 ? "" : "s")"
            text += "line \(section.line), \(TerminalText.escaped(section.pattern)): \(stores)\n"
            for store in section.stores {
                text += TerminalText.escaped("  \(store.path): \(store.keySource ?? "no key")") + "\n"
            }
        }
        for problem in problems { text += TerminalText.escaped("problem: \(problem)") + "\n" }
        return text + (problems.isEmpty ? "The configuration is good.\n" : "")
    }
}
