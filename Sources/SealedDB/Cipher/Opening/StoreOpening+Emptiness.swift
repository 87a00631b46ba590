import Foundation

/// A file without a byte opens with any key, and SQLite deletes the log beside it.
extension StoreOpening {
    /// Refuses what only looks like a new store, before SQLite sees it.
    ///
    /// An existing empty file is taken for a new store where one is asked for, by `SQLITE_OPEN_CREATE`: that is what a
    /// creation that was killed leaves. But never beside a log, which holds what is left of a store that was emptied.
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
            guard status.st_size == 0 else { return }
            guard !needsContents, key == nil || flags & SQLITE_OPEN_CREATE != 0 else { throw emptied(.emptyFile) }
        }
        // Deleted by SQLite even by those who only read.
        guard let log = try StoreOpening.logWithContents(of: FileSystem.resolve(path) ?? path) else { return }
        throw exists ? emptied(.emptyFile) : .logWithoutDatabase(log)
    }

    private func emptied(_ finding: StoreDiagnosis.Finding) -> DatabaseError {
        let name = path.map { FileSystem.resolve($0) ?? $0 } ?? ""
        let examination = StoreExamination(path: name, key: key, settings: settings, effort: .asGiven)
        return examination.result(finding).error(code: SQLITE_NOTADB)
    }

    /// The log or journal beside a file that has no pages of its own. A creation that was killed leaves a journal too,
    /// but one of a file of no pages. What has another name was left by a restore that was killed, and is safe under that.
    private static func logWithContents(of path: String) throws(DatabaseError) -> String? {
        var status = stat()
        let log = path + "-wal"
        if lstat(log, &status) == 0, status.st_size > WriteAheadLog.headerSize, status.st_nlink == 1 { return log }
        let journal = path + "-journal"
        guard lstat(journal, &status) == 0, status.st_nlink == 1 else { return nil }
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
