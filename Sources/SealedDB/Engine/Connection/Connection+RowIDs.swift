internal import SQLiteEngine

extension Connection {
    /// Runs `body` and returns the row id of what it inserted; 0 if it inserted no row of a table with row ids.
    ///
    /// SQLite itself would then still tell the row id of an earlier insertion, and afterwards it does.
    /// https://www.sqlite.org/c3ref/set_last_insert_rowid.html
    func insertedRowID(_ body: () throws(DatabaseError) -> Void) throws(DatabaseError) -> Int64 {
        let earlier = lastInsertRowID
        setLastInsertRowID(0)
        do throws(DatabaseError) {
            try body()
        } catch {
            setLastInsertRowID(earlier)
            throw error
        }
        let rowID = lastInsertRowID
        if rowID == 0 { setLastInsertRowID(earlier) }
        return rowID
    }

    func setLastInsertRowID(_ rowID: Int64) {
        if let handle { sqlite3_set_last_insert_rowid(handle, rowID) }
    }
}
