import Foundation

/// The name of a store, in a directory where another file can take its place.
struct ReplaceablePlace {
    /// Absolute path, with symbolic links followed.
    let path: String
    /// The name under which the old file is to be kept.
    let oldFile: String?

    /// - Parameter oldFileSuffix: what is appended to the store's name for the old file; `nil` if the old file is not
    ///   kept.
    init(_ path: String, oldFileSuffix: String? = nil) throws(DatabaseError) {
        guard let resolved = FileSystem.resolve(path) else {
            throw .system("Cannot open \(path)", reason: .noSuchFile)
        }
        let status = try FileSystem.status(resolved)
        guard status.st_mode & S_IFMT == S_IFREG else {
            throw DatabaseError(
                extendedCode: SQLITE_CANTOPEN,
                reason: .notRegularFile,
                message: "\(resolved) is not a regular file."
            )
        }
        let oldFile = oldFileSuffix.map { resolved + $0 }
        if let oldFile { try StoreName.requireNoPart(oldFile) }
        let hasUnfinishedLink = oldFile.map { ReplaceablePlace.isLink($0, to: status) } ?? false
        if let oldFile, !hasUnfinishedLink, FileSystem.exists(oldFile) {
            throw DatabaseError(
                extendedCode: SQLITE_CANTOPEN,
                reason: .alreadyExists,
                message: "\(oldFile) exists, so the old file cannot be kept under that name."
            )
        }
        self.path = resolved
        self.oldFile = oldFile
        try requireOneName()
    }

    /// Makes sure that the file has no other hard link. Called again right before the swap, because a backup program
    /// may have added one meanwhile.
    func requireOneName() throws(DatabaseError) {
        let status = try FileSystem.status(path)
        let hasUnfinishedLink = oldFile.map { ReplaceablePlace.isLink($0, to: status) } ?? false
        guard status.st_nlink == (hasUnfinishedLink ? 2 : 1) else {
            throw DatabaseError(
                extendedCode: SQLITE_CANTOPEN,
                reason: .hardLinked,
                message: """
                    \(path) has \(status.st_nlink) hard links; the others would keep the old contents under the old \
                    key. Remove them first.
                    """
            )
        }
    }

    /// Whether `path` is a second name of the store's file. A rotation that was killed right before its swap leaves
    /// such a name.
    private static func isLink(_ path: String, to store: stat) -> Bool {
        var status = stat()
        return lstat(path, &status) == 0 && status.isSameFile(as: store)
    }

    /// Removes the second name that a killed rotation left, so that the old file can get it again.
    func removeUnfinishedLink() throws(DatabaseError) {
        guard let oldFile else { return }
        let status = try FileSystem.status(path)
        guard ReplaceablePlace.isLink(oldFile, to: status) else { return }
        guard unlink(oldFile) == 0 else { throw .system("Cannot remove \(oldFile)", reason: .ioError) }
    }

    // MARK: Space

    /// Free bytes on the file system.
    func freeSpace() throws(DatabaseError) -> Int64 {
        try FileSystem.freeSpace(at: FileSystem.directory(of: path))
    }

    /// Bytes that the copy takes, plus a tenth as a reserve.
    func neededSpace(for totals: PageTotals) -> Int64 { totals.count * Int64(totals.size) / 10 * 11 }

    func requireSpace(for totals: PageTotals) throws(DatabaseError) {
        guard access(FileSystem.directory(of: path), W_OK) == 0 else {
            throw .system("The copy needs a place beside \(path)", reason: .cannotCreate)
        }
        let (needed, free) = (neededSpace(for: totals), try freeSpace())
        guard free >= needed else {
            throw DatabaseError(
                extendedCode: SQLITE_FULL,
                reason: .noSpace,
                message: "The copy needs \(needed) bytes, and \(free) are free."
            )
        }
    }
}
