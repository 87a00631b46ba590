internal import CSealedDBSystem
import Foundation

extension KeyFileReplacement {
    /// Looks for all that would make the replacement fail. Call it before anything is done for which the new key is needed.
    /// - Parameter isLooking: whether nothing may be written. Otherwise a file is made beside the old one, and removed.
    /// - Returns: how far the files tell that it is.
    package func check(isLooking: Bool) throws(DatabaseError) -> Stage {
        let stage = try stage()
        guard stage != .complete else { return stage }
        try requireWritableDirectory(of: newFile)
        try requireMovable(newFile, known: [newFile, file])
        guard stage == .pending else { return stage }
        try StoreName.requireOwn(formerFile)
        try requireWritableDirectory(of: file)
        try requireMovable(file, known: [file, formerFile])
        if !isLooking { try rehearse() }
        return stage
    }

    private func requireWritableDirectory(of path: String) throws(DatabaseError) {
        let directory = FileSystem.directory(of: path)
        guard access(directory, W_OK | X_OK) == 0 else {
            throw .system(
                "The \(what) \(path) could not be replaced or removed: cannot write to \(directory)",
                reason: .cannotCreate
            )
        }
        guard access(directory, R_OK) == 0 else {
            throw .system(
                "The \(what) \(path) could not be replaced durably: cannot read \(directory), and so not sync it",
                reason: .cannotCreate
            )
        }
        let (own, parent) = (try FileSystem.status(path), try FileSystem.status(directory))
        guard geteuid() == 0 || own.st_uid == geteuid() else {
            throw DatabaseError(
                extendedCode: SQLITE_PERM,
                reason: .ownershipNotKept,
                message: "\(path) belongs to another user, who alone can replace it, beside root. Nothing was changed."
            )
        }
        // In such a directory a file can be removed only by its owner and by that of the directory.
        guard parent.st_mode & S_ISVTX == 0 || [0, own.st_uid, parent.st_uid].contains(geteuid()) else {
            throw .system("\(path) could not be removed from \(directory)", reason: .cannotCreate, number: EPERM)
        }
    }

    /// Refuses a file that has other names, under which it would stay as it is, or whose name cannot be given to another.
    private func requireMovable(_ path: String, known: [String]) throws(DatabaseError) {
        let isMounted = sealeddb_is_mounted(path)
        guard isMounted >= 0 else { throw .system("Cannot examine \(path)", reason: .ioError) }
        guard isMounted == 0 else {
            throw unmovable("\(path) is mounted by itself, so no other file can take its place. Mount its directory.")
        }
        let status = try FileSystem.status(path)
        guard status.st_nlink > 1 else { return }
        // A killed run may have left a second name.
        let directory = FileSystem.directory(of: path)
        let leftover = ".\(FileSystem.name(of: path)).sealdb-"
        let names = (FileSystem.names(in: directory, beginning: leftover) ?? []).map {
            "\(directory)/\($0)"
        }
        let own = (known + names).filter { name in
            var found = stat()
            return lstat(name, &found) == 0 && found.isSameFile(as: status)
        }
        guard own.count == Int(status.st_nlink) else {
            throw unmovable(
                "\(path) has \(status.st_nlink) hard links; the others would keep what it holds now. Remove them first, "
                    + "or give the ending again with which an interrupted run made one."
            )
        }
    }

    private func unmovable(_ message: String) -> DatabaseError {
        DatabaseError(extendedCode: SQLITE_CANTOPEN, reason: .hardLinked, message: "\(message) Nothing was changed.")
    }

    /// Makes sure that a file beside the old one can have its owner, mode and attributes.
    private func rehearse() throws(DatabaseError) {
        let trial = try TemporaryFile.path(beside: file)
        do throws(DatabaseError) {
            try FileSystem.createExclusively(trial)
            // The file is empty. If it cannot be removed, the replacement removes it.
            defer { unlink(trial) }
            try FileSystem.copyAttributes(from: file, to: trial)
        } catch {
            throw error.adding(context: "The \(what) \(file) could not be replaced. Nothing was changed")
        }
    }
}
