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

    /// The files that match, sorted; those that belong to a store, such as its log, are left out.
    /// - Parameter problem: is called for each directory that cannot be read, and name that is not UTF-8.
    func files(_ problem: (String) -> Void) -> [String] {
        var found: Set<ExactText> = []
        PathPattern.find(parts[...], base, &found, problem)
        return found.map(\.text).sorted()
    }

    private static func find(
        _ parts: ArraySlice<Part>,
        _ place: String,
        _ found: inout Set<ExactText>,
        _ problem: (String) -> Void
    ) {
        guard let part = parts.first else {
            let isStore = !StoreName.siblingEndings.contains(where: place.ends) && type(of: place) == S_IFREG
            if isStore { found.insert(ExactText(place)) }
            return
        }
        let names: [String]
        switch part {
        case .name(let pattern):
            names = self.names(in: place, problem).filter(pattern.matches)
            for name in names { find(parts.dropFirst(), place + "/" + name, &found, problem) }
        case .directories:
            find(parts.dropFirst(), place, &found, problem)
            names = self.names(in: place, problem).filter(NamePattern.anything.matches)
            for name in names where type(of: place + "/" + name) == S_IFDIR {
                find(parts, place + "/" + name, &found, problem)
            }
        }
    }

    /// Links are not followed: what they lead to has another path.
    private static func type(of place: String) -> mode_t {
        var status = stat()
        return lstat(place, &status) == 0 ? status.st_mode & S_IFMT : 0
    }

    private static func names(in directory: String, _ problem: (String) -> Void) -> [String] {
        guard directory.isEmpty || type(of: directory) == S_IFDIR else { return [] }
        guard let stream = opendir(directory.isEmpty ? "/" : directory) else {
            problem("\(directory) cannot be read: \(String(cString: strerror(errno)))")
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
                problem("\(directory) holds a name that is not UTF-8")
                continue
            }
            if ![".", ".."].contains(where: name.isSame) { names.append(name) }
        }
        if errno != 0 { problem("\(directory) cannot be read: \(String(cString: strerror(errno)))") }
        return names
    }
}
