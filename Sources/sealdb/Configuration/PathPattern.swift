import Foundation
import SealedDB

/// A pattern for the absolute paths of stores. Each of its names is a ``NamePattern``, which does not reach across slashes;
/// the name `**` stands for any number of directories.
struct PathPattern: Sendable {
    private enum Part: Sendable {
        case directories
        case name(NamePattern)
    }

    let text: String
    /// What stands before the first name that is a pattern, with links followed: so are the paths of stores.
    private let base: String
    private let parts: [Part]

    /// - Returns: `nil` if the text is no absolute path, or one of its names no pattern.
    init?(_ text: String) {
        guard text.begins(with: "/") else { return nil }
        var base = ""
        var parts: [Part] = []
        for name in text.parts(between: "/").dropFirst().map(String.init) {
            guard !name.isEmpty, ![".", ".."].contains(where: name.isSame), let pattern = NamePattern(name) else {
                return nil
            }
            if name.isSame(as: "**") {
                parts.append(.directories)
            } else if parts.isEmpty, let literal = pattern.literal {
                base += "/" + literal
            } else {
                parts.append(.name(pattern))
            }
        }
        // What lies in any of the directories.
        if case .directories = parts.last { parts.append(.name(.anything)) }
        self.text = text
        self.base = base.isEmpty ? "" : StoreItem.identity(of: base)
        self.parts = parts
    }

    /// - Parameter path: absolute, with links followed.
    func matches(_ path: String) -> Bool {
        guard !parts.isEmpty else { return path.isSame(as: base) }
        guard path.begins(with: base + "/") else { return false }
        let rest = String(decoding: path.utf8.dropFirst(base.utf8.count + 1), as: UTF8.self)
        return PathPattern.matches(parts[...], rest.parts(between: "/").map(String.init)[...])
    }

    private static func matches(_ parts: ArraySlice<Part>, _ names: ArraySlice<String>) -> Bool {
        guard let part = parts.first else { return names.isEmpty }
        switch part {
        case .name(let pattern):
            guard let name = names.first, pattern.matches(name) else { return false }
            return matches(parts.dropFirst(), names.dropFirst())
        case .directories:
            if matches(parts.dropFirst(), names) { return true }
            guard let name = names.first, NamePattern.anything.matches(name) else { return false }
            return matches(parts, names.dropFirst())
        }
    }

    // MARK: Files

    /// The files that match, sorted; those that belong to a store, such as its log, are left out. A path without a pattern is
    /// one of them even if nothing is there.
    /// - Parameter problem: is called for each place that cannot be searched, name that is not UTF-8, and link that leads
    ///   elsewhere.
    func files(_ problem: (String) -> Void) -> [String] {
        guard !parts.isEmpty else { return [base] }
        var search = Search()
        search.find(parts[...], base)
        for link in search.links {
            guard let text = objection(to: link.path, link.isLast, search.found) else { continue }
            search.problems.insert(ExactText(text))
        }
        for text in search.problems.map(\.text).sorted() { problem(text) }
        return search.found.map(\.text).sorted()
    }

    /// Links are not followed: what they lead to has another path. But a store behind one must not be lost.
    /// - Parameter isLast: whether a store could have its name, and not just a directory.
    private func objection(to link: String, _ isLast: Bool, _ found: Set<ExactText>) -> String? {
        guard let resolved = realpath(link, nil) else {
            return "\(link) is a link that cannot be followed: \(String(cString: strerror(errno)))"
        }
        defer { free(resolved) }
        let target = String(cString: resolved)
        var status = stat()
        // What is gone since is told as well.
        let type = stat(target, &status) == 0 ? status.st_mode & S_IFMT : 0
        let isHarmless =
            switch type {
            case S_IFREG: !isLast || found.contains(ExactText(target))
            case S_IFDIR: isLast || target.isSame(as: base) || target.begins(with: base + "/")
            default: false
            }
        return isHarmless ? nil : "\(link) is a link that leads to \(target), where nothing is looked for; name that"
    }

    private struct Search {
        var found: Set<ExactText> = []
        var links: [(path: String, isLast: Bool)] = []
        /// Each is told once.
        var problems: Set<ExactText> = []

        mutating func find(_ parts: ArraySlice<Part>, _ place: String) {
            guard let part = parts.first else {
                if (StoreName.siblingEndings + StoreName.slotEndings).contains(where: place.ends) { return }
                switch type(of: place) {
                case S_IFREG: found.insert(ExactText(place))
                case S_IFLNK: links.append((place, true))
                default: break
                }
                return
            }
            switch part {
            case .name(let pattern):
                for name in names(in: place).filter(pattern.matches) { find(parts.dropFirst(), place + "/" + name) }
            case .directories:
                find(parts.dropFirst(), place)
                for name in names(in: place).filter(NamePattern.anything.matches) {
                    switch type(of: place + "/" + name) {
                    case S_IFDIR: find(parts, place + "/" + name)
                    case S_IFLNK: links.append((place + "/" + name, false))
                    default: break
                    }
                }
            }
        }

        /// - Returns: 0 for what is not there or cannot be examined.
        private mutating func type(of place: String) -> mode_t {
            var status = stat()
            if lstat(place, &status) == 0 { return status.st_mode & S_IFMT }
            // It was removed since its name was read.
            if errno != ENOENT {
                let reason = String(cString: strerror(errno))
                problems.insert(ExactText("what is in \(place.directoryOfPath) cannot be examined: \(reason)"))
            }
            return 0
        }

        private mutating func names(in directory: String) -> [String] {
            if !directory.isEmpty {
                switch type(of: directory) {
                case S_IFDIR: break
                case S_IFLNK:
                    links.append((directory, false))
                    return []
                default: return []
                }
            }
            guard let stream = opendir(directory.isEmpty ? "/" : directory) else {
                if errno != ENOENT {
                    problems.insert(ExactText("\(directory) cannot be read: \(String(cString: strerror(errno)))"))
                }
                return []
            }
            // The result does not matter: nothing was written through this descriptor.
            defer { closedir(stream) }
            var names: [String] = []
            while true {
                errno = 0
                guard let entry = readdir(stream) else { break }
                let name = withUnsafePointer(to: &entry.pointee.d_name) { pointer in
                    pointer.withMemoryRebound(to: CChar.self, capacity: MemoryLayout.size(ofValue: pointer.pointee)) {
                        String(validatingCString: $0)
                    }
                }
                guard let name else {
                    problems.insert(ExactText("\(directory) holds a name that is not UTF-8"))
                    continue
                }
                if ![".", ".."].contains(where: name.isSame) { names.append(name) }
            }
            if errno != 0 {
                problems.insert(ExactText("\(directory) cannot be read: \(String(cString: strerror(errno)))"))
            }
            return names
        }
    }
}
