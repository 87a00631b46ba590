import Foundation

/// SQLite opens an empty file with any key, and deletes the log beside it.
extension StoreOpening {
    /// Refuses a file that only looks like a new store, before SQLite opens it.
    ///
    /// With `SQLITE_OPEN_CREATE` an existing empty file counts as a new store, because a process that is killed while
    /// it creates a store leaves such a file. But never if a log stands beside it: the log holds what is left of a
    /// store that was emptied.
    func refuseEmptied() throws(DatabaseError) {
        guard isFile, let path else { return }
        var status = stat()
        let exists = stat(path, &status) == 0
        guard exists || errno == ENOENT else { return }
        if exists {
            guard status.st_mode & S_IFMT == S_IFREG else {
                guard needsContents || key != nil, status.st_mode & S_IFMT != S_IFDIR else { return }
                throw emptied(.notRegularFile)
            }
            guard status.st_nlink > 0 || flags & SQLITE_OPEN_READONLY != 0 else { throw .nameless(path) }
            guard StoreHeader.isEmpty(fileSize: Int64(status.st_size)) else { return }
            // A process that is killed while it creates a store leaves no byte.
            let mayBeNew = status.st_size == 0 && flags & SQLITE_OPEN_CREATE != 0
            guard !needsContents, key == nil || mayBeNew else { throw emptied(.emptyFile) }
        }
        // SQLite deletes the log even if the file is opened only for reading.
        guard let log = try StoreOpening.logWithContents(of: FileSystem.resolve(path) ?? path) else { return }
        throw exists ? emptied(.emptyFile) : .logWithoutDatabase(log)
    }

    private func emptied(_ finding: StoreDiagnosis.Finding) -> DatabaseError {
        let name = path.map { FileSystem.resolve($0) ?? $0 } ?? ""
        let examination = StoreExamination(path: name, key: key, settings: settings, effort: .asGiven)
        return examination.result(finding).error(code: SQLITE_NOTADB)
    }

    /// The path of the log or journal that still holds pages of a store; `nil` if there is none. A process that was
    /// killed while it created a store leaves a journal too, but that one says that the store had no pages. A log or
    /// journal with a second hard link was left by a restore that was killed: it is safe under its other name.
    private static func logWithContents(of path: String) throws(DatabaseError) -> String? {
        let log = path + "-wal"
        if let status = try FileSystem.statusIfPresent(log), status.st_size > LogHeader.size,
            status.st_nlink == 1
        {
            return log
        }
        let journal = path + "-journal"
        guard let status = try FileSystem.statusIfPresent(journal), status.st_nlink == 1 else { return nil }
        guard let pages = try RollbackJournal(ofStore: path)?.originalPageCount, pages > 0 else { return nil }
        return journal
    }
}

extension DatabaseError {
    fileprivate static func nameless(_ path: String) -> DatabaseError {
        DatabaseError(
            extendedCode: SQLITE_CANTOPEN,
            reason: .noSuchFile,
            message: """
                \(path) is the mount of a file that has been replaced, as by a rotation of its key, or deleted: what is \
                written to it is in no directory. Nothing was opened. Mount the new file, or better its directory.
                """
        )
    }

    static func logWithoutDatabase(_ log: String) -> DatabaseError {
        DatabaseError(
            extendedCode: SQLITE_CANTOPEN,
            reason: .alreadyExists,
            message: """
                \(log) belongs to a database that is gone, and would be taken for one of the new file. Nothing was \
                changed. Move it away, or bring back its database.
                """
        )
    }
}
