internal import CSealedDBSystem
import Foundation

/// Ensures that a store is written to under one name only.
///
/// SQLite keeps the log and the journal beside the name by which a file was opened. A process that opens the file by
/// another name does not find them, and creates its own.
/// <https://www.sqlite.org/howtocorrupt.html#_multiple_links_to_the_same_file>
package enum StoreName {
    /// The endings of the files that SQLite and this library put beside a store.
    /// <https://www.sqlite.org/tempfiles.html>
    package static let siblingEndings = ["-journal", "-wal", "-shm", "-sealdb-lock"]

    /// The endings of the files beside a store that hold its key slots.
    package static let slotEndings = [".slots", ".slots.2"]

    /// Throws if the path is the name of a file that holds the key slots of a store. Call it before a file is made that holds
    /// something else.
    package static func requireNoSlots(_ path: String) throws(DatabaseError) {
        guard let ending = slotEndings.first(where: path.ends),
            mayBeStore(path.withoutLast(bytes: ending.utf8.count))
        else { return }
        throw DatabaseError(
            extendedCode: SQLITE_CANTOPEN,
            reason: .cannotCreate,
            message: """
                \(path) is the name of a file that belongs to \(path.withoutLast(bytes: ending.utf8.count)): key slots of that \
                would be looked for there. Nothing was changed. Choose another name.
                """
        )
    }

    /// Throws if the path is the name of any file that belongs to a store. Call it before a file is made that holds something
    /// else than a store, and is not made by ``TemporaryFile``.
    package static func requireNoPart(_ path: String) throws(DatabaseError) {
        try requireOwn(path)
        for path in [path, FileSystem.resolve(path) ?? path] { try requireNoSlots(path) }
    }

    /// Throws if the path is a name that belongs to another store: a user of that store removes or overwrites such a
    /// file.
    package static func requireOwn(
        _ path: String,
        reason: DatabaseError.Reason = .cannotCreate
    ) throws(DatabaseError) {
        try requireOwn(path, resolved: FileSystem.resolve(path), reason)
    }

    private static func requireOwn(
        _ path: String,
        resolved: String?,
        _ reason: DatabaseError.Reason
    ) throws(DatabaseError) {
        for path in [path, resolved ?? path] {
            let ending =
                JournalName.isOfSuperJournal(path)
                ? String(decoding: path.utf8.suffix(12), as: UTF8.self) : siblingEndings.first(where: path.ends)
            guard let ending else { continue }
            guard mayBeStore(path.withoutLast(bytes: ending.utf8.count)) else { continue }
            throw DatabaseError(
                extendedCode: SQLITE_CANTOPEN,
                reason: reason,
                message: """
                    \(path) is the name of a file that belongs to \(path.withoutLast(bytes: ending.utf8.count)): whoever uses that as a store \
                    removes or overwrites it. Nothing was changed. Choose another name.
                    """
            )
        }
    }

    /// Whether the file may be a database, which has whole pages of at least 512 bytes. True if it cannot be examined.
    private static func mayBeStore(_ path: String) -> Bool {
        var status = stat()
        guard lstat(path, &status) == 0 else { return ![ENOENT, ENOTDIR].contains(errno) }
        return status.st_mode & S_IFMT == S_IFREG && status.st_size % 512 == 0
    }

    /// Throws if the files beside a store of this name cannot have their names.
    static func requireRoom(_ path: String) throws(DatabaseError) {
        let longest = siblingEndings.map(\.utf8.count).max() ?? 0
        let count = FileSystem.name(of: FileSystem.resolve(path) ?? path).utf8.count
        guard count + longest > Int(NAME_MAX) else { return }
        throw DatabaseError(
            extendedCode: SQLITE_CANTOPEN,
            reason: .cannotCreate,
            message: """
                The name of \(path) has \(count) bytes, and may have \(Int(NAME_MAX) - longest): files beside the store have longer \
                ones. Nothing was opened. Give it a shorter name, and the same to its log or journal, if there is one.
                """
        )
    }

    /// Throws if others may have the file open by another name, or, if it is opened to write, may take it for a part of
    /// their store, or if SQLite would take a file of somebody else for a part of this one. A file that does not exist
    /// has no other name.
    static func requireOnly(_ path: String, isReadOnly: Bool = false) throws(DatabaseError) {
        let resolved = FileSystem.resolve(path)
        if !isReadOnly { try requireOwn(path, resolved: resolved, .cannotCreate) }
        if let resolved { try requireOneName(resolved) }
        try JournalName.requireNothingElse(beside: resolved ?? path)
    }

    /// Throws if others may have the file open by another name. Who only reads would also miss what stands in the log of that
    /// name, or take for the contents what its journal undoes.
    /// - Parameter file: an absolute path without links.
    static func requireOneName(_ file: String) throws(DatabaseError) {
        let isMounted = sealeddb_is_mounted(file)
        guard isMounted >= 0 else { throw .system("Cannot examine \(file)", reason: .ioError) }
        guard isMounted == 0 else {
            throw DatabaseError(
                extendedCode: SQLITE_CANTOPEN,
                reason: .hardLinked,
                message: """
                    \(file) is mounted by itself: its log and journal would not be where others look for them who have its \
                    directory, and transactions would be lost. Nothing was read or written. Mount the directory.
                    """
            )
        }
        let status = try FileSystem.status(file)
        guard status.st_mode & S_IFMT == S_IFREG, status.st_nlink > 1, !isLeftByKilledSwap(file, status) else { return }
        throw DatabaseError(
            extendedCode: SQLITE_CANTOPEN,
            reason: .hardLinked,
            message: """
                \(file) has \(status.st_nlink) hard links. Who opens it by another name does not see the log and the journal \
                of this one, and transactions would be lost. Nothing was read or written. Remove the others, or make copies \
                of them.
                """
        )
    }

    /// Whether a rotation was killed between giving the old file a second name, such as `app.db.old`, and putting the
    /// new file in its place. The store is then still used by its own name.
    ///
    /// Such a name cannot be told from a hard link that somebody else made, as a backup, until that is used: then it has
    /// a log or a journal, with transactions that this name does not see. A restore gives second names to those, too.
    private static func isLeftByKilledSwap(_ file: String, _ status: stat) -> Bool {
        let (directory, own) = (FileSystem.directory(of: file), FileSystem.name(of: file))
        let others = (FileSystem.names(in: directory, beginning: own) ?? []).filter { name in
            var found = stat()
            return ExactText(name) != ExactText(own) && lstat("\(directory)/\(name)", &found) == 0
                && found.isSameFile(as: status)
        }
        guard status.st_nlink == 2, others.count == 1 else { return false }
        return JournalName.suffixes.allSatisfy { suffix in
            var (found, same) = (stat(), stat())
            guard lstat("\(directory)/\(others[0])\(suffix)", &found) == 0 else { return errno == ENOENT }
            return lstat(file + suffix, &same) == 0 && found.isSameFile(as: same)
        }
    }
}
