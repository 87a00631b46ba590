import Foundation
import SealedDB

/// A configuration file: where the keys of stores come from, what is particular about them, and defaults of options.
struct ConfigurationFile: Sendable {
    /// The name by which it was found.
    let path: String
    private(set) var defaults = ConfigurationDefaults()
    /// Where the defaults stand.
    private(set) var defaultsText: ConfigurationText.Section?
    private(set) var stores: [StoreSection] = []

    static let systemPath = "/etc/sealdb/sealdb.conf"
    static let variable = "SEALDB_CONFIG"
    static let sizeLimit = 1 << 20

    /// The file to take; `isOptional` if it may be missing.
    static func path(
        option: String?,
        _ environment: [String: String]
    ) -> (path: String, isOptional: Bool) {
        if let option { return (option, false) }
        if let path = environment[variable], !path.isEmpty { return (path, false) }
        return (systemPath, true)
    }

    /// - Returns: `nil` for /dev/null, and for a file that is missing and may be.
    static func load(_ path: String, isOptional: Bool = false) throws(Failure) -> ConfigurationFile? {
        guard !path.isEmpty else { throw Failure(.usage, "The name of the configuration file is empty.") }
        do throws(Failure) {
            guard let contents = try contents(of: path, isOptional: isOptional) else { return nil }
            return try ConfigurationFile(path: path, contents)
        } catch {
            throw Failure(
                .configuration,
                "The configuration \(path) cannot be used, and nothing was done. \(error.message)"
            )
        }
    }

    private static func contents(of path: String, isOptional: Bool) throws(Failure) -> String? {
        switch try TrustedPath.target(of: path) {
        case .nothing where isOptional:
            var status = stat()
            if lstat(path, &status) == 0 { throw Failure(.configuration, "It is a link that leads to nothing.") }
            return nil
        case .nothing: throw Failure(.configuration, "It does not exist.")
        case .directory: throw Failure(.configuration, "It is a directory.")
        // To switch the configuration off.
        case .file("/dev/null", _): return nil
        case .file(let place, let status):
            guard status.st_mode & S_IFMT == S_IFREG else { throw Failure(.configuration, "It is not a regular file.") }
            let file = try InputFile(path: place)
            try file.requireOwnersAlone()
            guard file.size <= sizeLimit else { throw Failure(.configuration, "It has more than a megabyte.") }
            guard let text = String(validating: try file.contents(upTo: sizeLimit), as: UTF8.self) else {
                throw Failure(.configuration, "It is not UTF-8.")
            }
            return text
        }
    }

    /// - Throws: ``Failure`` with all that is wrong, by lines.
    init(path: String, _ contents: String) throws(Failure) {
        self.path = path
        let text = ConfigurationText(contents)
        var problems = text.problems
        for section in text.sections { read(section, &problems) }
        let limits = stores.reduce(defaults.limits) { $0.completed(by: $1.limits) }
        if defaults.stateDirectory == nil, limits.verification != nil || limits.backup != nil {
            let line = text.sections.first?.line ?? 1
            problems.append(
                .init(line: line, text: "verify-after and backup-after need a state-directory in [defaults].")
            )
        }
        guard problems.isEmpty else {
            let lines = problems.sorted { $0.line < $1.line }.map { "line \($0.line): \($0.text)" }
            throw Failure(.configuration, (lines.count == 1 ? "" : "\n") + lines.joined(separator: "\n"))
        }
    }

    private mutating func read(_ section: ConfigurationText.Section, _ problems: inout [ConfigurationText.Problem]) {
        func add(_ text: String?, _ line: Int) {
            if let text { problems.append(.init(line: line, text: text)) }
        }
        switch (section.name, section.argument) {
        case ("defaults", nil):
            defaultsText = section
            for entry in section.entries {
                let isKnown = ConfigurationDefaults.names.contains(entry.name)
                add(isKnown ? defaults.set(entry) : ConfigurationFile.unknown(entry, in: section), entry.line)
            }
        case ("store", let argument?):
            guard let pattern = PathPattern(argument) else {
                return add("A pattern is an absolute path without . and .., and with closed brackets.", section.line)
            }
            var store = StoreSection(pattern: pattern, text: section)
            for entry in section.entries {
                let isKnown = StoreSection.names.contains(entry.name)
                add(isKnown ? store.set(entry) : ConfigurationFile.unknown(entry, in: section), entry.line)
            }
            add(store.cipher.problem, section.line)
            stores.append(store)
        default:
            add(#"The sections are [defaults] and [store "/path/of/*.db"]."#, section.line)
        }
    }

    /// What to say of a name that does not stand in such a section.
    private static func unknown(_ entry: ConfigurationText.Entry, in section: ConfigurationText.Section) -> String {
        if ["key", "passphrase", "new-key", "new-passphrase"].contains(entry.name) {
            return "The file never holds a key. Take another one, and name a file that has it, as key-file."
        }
        let (own, other) =
            section.name == "defaults"
            ? (ConfigurationDefaults.names, StoreSection.names) : (StoreSection.names, ConfigurationDefaults.names)
        if other.contains(entry.name) {
            return "\(entry.name) stands in a section \(section.name == "defaults" ? "[store …]" : "[defaults]")."
        }
        return "\(entry.name) is unknown. Known are \(own.joined(separator: ", "))."
    }

    static func answer(_ text: String) -> Bool? {
        switch text {
        case "yes", "true", "on": true
        case "no", "false", "off": false
        default: nil
        }
    }

    // MARK: Stores

    /// The first section whose pattern the store matches.
    func section(for store: StoreItem) -> StoreSection? { stores.first { $0.pattern.matches(store.identity) } }

    func limits(of store: StoreItem) -> AgeLimits {
        (section(for: store)?.limits ?? AgeLimits()).completed(by: defaults.limits)
    }

    func hasKey(for store: StoreItem) -> Bool { section(for: store)?.key != nil }

    func keyOrigin(for store: StoreItem) throws(Failure) -> KeyChoice.Origin {
        guard let section = section(for: store) else {
            throw Failure(
                .usage,
                "No key was given for \(store.identity), and no section of \(path) is for it. Nothing was done. Give "
                    + "--key-file or another source of a key, or add a section."
            )
        }
        guard let key = section.key else {
            throw Failure(
                .usage,
                "No key was given for \(store.identity), and its section in \(path), line \(section.text.line), "
                    + "names none. Nothing was done. Give --key-file, or add it to the section."
            )
        }
        return try key.origin(for: store)
    }

    /// The stores on disk that sections are for, with the number of the section, sorted. One that a section names without a
    /// pattern is there even if it is missing.
    /// - Parameter problem: is called for each place that cannot be searched.
    func storesOnDisk(_ problem: (String) -> Void) throws(Failure) -> [(store: StoreItem, section: Int)] {
        var found: [(store: StoreItem, section: Int)] = []
        var known: Set<ExactText> = []
        for (number, section) in stores.enumerated() {
            // A store that an earlier section is for is left to that.
            for path in section.pattern.files(problem) where known.insert(ExactText(path)).inserted {
                found.append((try StoreItem(path), number))
            }
        }
        return found
    }
}
