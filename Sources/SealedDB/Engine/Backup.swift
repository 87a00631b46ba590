internal import SQLiteEngine

/// A copy of all pages from one connection to another. https://www.sqlite.org/c3ref/backup_finish.html
final class Backup {
    private let handle: OpaquePointer

    init(from source: Connection, to target: Connection) throws(DatabaseError) {
        guard let handle = sqlite3_backup_init(target.handle, "main", source.handle, "main") else {
            throw target.error()
        }
        self.handle = handle
    }

    deinit {
        sqlite3_backup_finish(handle)
    }

    /// Copies some pages; false when all are there.
    func step(pages: Int32) throws(DatabaseError) -> Bool {
        let code = sqlite3_backup_step(handle, pages)
        guard code == SQLITE_OK || code == SQLITE_DONE else {
            let text = String(cString: sqlite3_errstr(code))
            throw DatabaseError(extendedCode: code, message: "Copying stopped: \(text).")
        }
        return code == SQLITE_OK
    }

    var completedPages: Int64 {
        Int64(sqlite3_backup_pagecount(handle)) - Int64(sqlite3_backup_remaining(handle))
    }
}
