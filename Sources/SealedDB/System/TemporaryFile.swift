import Foundation

/// Names files that stand beside a target file until they take its place, and finds those that a killed process left.
///
/// The name is `.`, the name of the target, `.sealdb-`, a mark and `-` if there is a mark, and 16 hexadecimal digits.
/// The last six digits are a checksum of everything before them. So a user's own `.app.db.sealdb-before-upgrade` is not
/// taken for a leftover.
package enum TemporaryFile {
    private static let randomDigits = 10
    private static let checkDigits = 6

    /// Returns a path for a new file; creates nothing.
    /// - Parameters:
    ///   - mark: what to tell about the file if this process is killed: lower-case letters, or nothing.
    /// - Throws: if the target has a name that belongs to another store.
    package static func path(beside target: String, mark: String = "") throws(DatabaseError) -> String {
        try StoreName.requireOwn(target)
        let random = try FileSystem.randomName().prefix(randomDigits)
        let start = beginning(target) + (mark.isEmpty ? "" : mark + "-") + random
        return "\(FileSystem.directory(of: target))/\(start)\(checksum(start.utf8))"
    }

    /// The path of the only file with this mark. It is none of those that ``removeLeftovers(of:except:)`` removes, and no user
    /// will have taken that name for a file of their own.
    static func fixedPath(beside target: String, mark: String) -> String {
        let start = beginning(target) + mark + "-"
        return "\(FileSystem.directory(of: target))/\(start)\(checksum(start.utf8))"
    }

    /// Removes the leftovers beside the target.
    ///
    /// Call this only if nobody else is making such a file, or if only one of the two could put it in place.
    /// - Parameter kept: a file in use. It stays, and so do the files whose names begin with its name.
    package static func removeLeftovers(of target: String, except kept: String? = nil) {
        for leftover in leftovers(of: target) {
            if let kept, leftover.utf8.starts(with: kept.utf8) { continue }
            // Best effort: a file that cannot be removed does no harm.
            unlink(leftover)
        }
    }

    /// Whether a file with this mark was left.
    static func hasLeftover(of target: String, mark: String) -> Bool { !leftovers(of: target, mark: mark).isEmpty }

    /// Those with this mark.
    static func leftovers(of target: String, mark: String) -> [String] {
        let start = "\(FileSystem.directory(of: target))/\(beginning(target))\(mark)-"
        return leftovers(of: target).filter { $0.utf8.starts(with: start.utf8) }
    }

    /// Returns the paths of leftover regular files that belong to this user or to the owner of the target.
    static func leftovers(of target: String) -> [String] {
        let directory = FileSystem.directory(of: target)
        // If the directory cannot be read, nothing is found and nothing removed.
        let names = FileSystem.names(in: directory, beginning: beginning(target)) ?? []
        let candidates = names.filter { isName($0, beside: target) }.map { "\(directory)/\($0)" }
        guard !candidates.isEmpty else { return [] }
        var owners = [geteuid()]
        // A target that does not exist has no owner.
        if let status = try? FileSystem.status(target) { owners.append(status.st_uid) }
        return candidates.filter { path in
            var status = stat()
            return lstat(path, &status) == 0 && status.st_mode & S_IFMT == S_IFREG && owners.contains(status.st_uid)
        }
    }

    // MARK: Names

    private static func beginning(_ target: String) -> String { ".\(FileSystem.name(of: target)).sealdb-" }

    /// Compares bytes: Swift's strings treat names in different Unicode forms as equal.
    private static func isName(_ name: String, beside target: String) -> Bool {
        let sibling = StoreName.siblingEndings.first(where: name.ends) ?? ""
        let whole = name.withoutLast(bytes: sibling.utf8.count).utf8
        let beginning = beginning(target).utf8
        guard whole.starts(with: beginning) else { return false }
        let parts = whole.dropFirst(beginning.count).split(
            separator: UInt8(ascii: "-"),
            omittingEmptySubsequences: false
        )
        guard let digits = parts.last, digits.count == randomDigits + checkDigits, parts.count <= 2 else {
            return false
        }
        let isMarked = parts.count == 2
        guard
            !isMarked
                || !parts[0].isEmpty && parts[0].allSatisfy({ (UInt8(ascii: "a")...UInt8(ascii: "z")).contains($0) })
        else { return false }
        return whole.suffix(checkDigits).elementsEqual(checksum(whole.dropLast(checkDigits)).utf8)
    }

    /// FNV-1a. It need not resist forgery: whoever can forge a name here can also remove the files.
    private static func checksum(_ bytes: some Sequence<UInt8>) -> String {
        let hash = bytes.reduce(0xcbf2_9ce4_8422_2325 as UInt64) { ($0 ^ UInt64($1)) &* 0x100_0000_01b3 }
        return FileSystem.hexDigits(hash, count: checkDigits)
    }
}
