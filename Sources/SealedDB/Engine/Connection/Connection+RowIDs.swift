internal import SQLiteEngine

extension Connection {
    /// Runs `body` and returns the row id of the last row that it inserted; 0 if it inserted no row into a table with
    /// row ids.
    ///
    /// SQLite itself would return the row id of an earlier insertion in that case. `lastInsertRowID` still does so
    /// afterwards. https://www.sqlite.org/c3ref/set_last_insert_rowid.html
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
