import Foundation

/// Files that stand beside another one until they take its place, and what is left of them when a process is killed.
///
/// The name is `.`, that of the other file, `.sealdb-`, a mark if there is one, and 16 hex digits, of which the last six
/// are a checksum of all that is before them. So nobody's own `.app.db.sealdb-before-upgrade` is taken for a leftover.
package enum TemporaryFile {
    private static let randomDigits = 10
    private static let checkDigits = 6

    /// A path for a new one; nothing is created.
    /// - Throws: if the target has the name of what belongs to another store.
    /// - Parameter mark: what is to be known of it when this process has been killed: lower-case letters, or nothing.
    package static func path(beside target: String, mark: String = "") throws(DatabaseError) -> String {
        try StoreName.requireOwn(target)
        let random = try FileSystem.randomName().prefix(randomDigits)
        let start = beginning(target) + (mark.isEmpty ? "" : mark + "-") + random
        return "\(FileSystem.directory(of: target))/\(start)\(checksum(start.utf8))"
    }

    /// Removes what was left beside the file.
    ///
    /// For whoever knows that nobody else is making one, or that only one of the two could put it in place.
    /// - Parameter kept: one that is in use, with what stands beside it.
    package static func removeLeftovers(of target: String, except kept: String? = nil) {
        for leftover in leftovers(of: target) {
            if let kept, leftover.utf8.starts(with: kept.utf8) { continue }
            // Best effort: what cannot be removed is in nobody's way.
            unlink(leftover)
        }
    }

    /// Whether one with this mark was left.
    static func hasLeftover(of target: String, mark: String) -> Bool {
        let start = "\(FileSystem.directory(of: target))/\(beginning(target))\(mark)-"
        return leftovers(of: target).contains { $0.utf8.starts(with: start.utf8) }
    }

    /// Paths of regular files, made by this user or given to the owner of the other file.
    private static func leftovers(of target: String) -> [String] {
        let directory = FileSystem.directory(of: target)
        // In a directory that cannot be read nothing is found, and nothing removed.
        let names = (try? FileManager.default.contentsOfDirectory(atPath: directory)) ?? []
        let candidates = names.filter { isName($0, beside: target) }.map { "\(directory)/\($0)" }
        guard !candidates.isEmpty else { return [] }
        var owners = [geteuid()]
        // A file that is not there yet has no owner.
        if let status = try? FileSystem.status(target) { owners.append(status.st_uid) }
        return candidates.filter { path in
            var status = stat()
            return lstat(path, &status) == 0 && status.st_mode & S_IFMT == S_IFREG && owners.contains(status.st_uid)
        }
    }

    // MARK: Names

    private static func beginning(_ target: String) -> String { ".\(FileSystem.name(of: target)).sealdb-" }

    /// Byte by byte: to Swift's strings names in different Unicode forms are the same.
    private static func isName(_ name: String, beside target: String) -> Bool {
        let sibling = StoreName.siblingEndings.first { name.hasSuffix($0) } ?? ""
        let whole = name.dropLast(sibling.count).utf8
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

    /// FNV-1a: not against those who forge it, who may remove the files themselves.
    private static func checksum(_ bytes: some Sequence<UInt8>) -> String {
        let hash = bytes.reduce(0xcbf2_9ce4_8422_2325 as UInt64) { ($0 ^ UInt64($1)) &* 0x100_0000_01b3 }
        return FileSystem.hexDigits(hash, count: checkDigits)
    }
}
