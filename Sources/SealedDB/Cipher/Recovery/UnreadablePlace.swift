/// Reads what a damaged disk may not give out.
/// - Returns: `nil` also for a place that cannot be read: it counts as damaged.
/// - Throws: whatever says nothing of the store, such as want of memory or of descriptors.
func readable<T>(_ read: () throws(DatabaseError) -> T?) throws(DatabaseError) -> T? {
    do throws(DatabaseError) {
        return try read()
    } catch {
        guard error.isOfUnreadablePlace else { throw error }
        return nil
    }
}

extension DatabaseError {
    /// Whether a file that is open cannot be read at one place. <https://www.sqlite.org/rescode.html#ioerr_read>
    var isOfUnreadablePlace: Bool {
        [ResultCode.SQLITE_IOERR_READ, .SQLITE_IOERR_CORRUPTFS].contains { $0.rawValue == extendedCode }
    }
}
