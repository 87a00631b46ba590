internal import SQLiteEngine

/// Tells how far statements that run for long have come. https://www.sqlite.org/c3ref/progress_handler.html
extension Connection {
    /// The number of virtual machine instructions between two reports. A statement of large rows has few instructions,
    /// and reads many pages with each.
    static let readingInterval: Int32 = 100

    /// Runs `body`, and calls `report` now and then while its statements run.
    /// - Parameter report: gets the number of pages that were read from the file since the beginning. If it throws, the
    ///   statement that runs ends, and so does this call, with that error.
    func whileReading<T>(
        report: (_ pagesRead: Int64) throws(DatabaseError) -> Void,
        _ body: () throws(DatabaseError) -> T
    ) throws(DatabaseError) -> T {
        guard let handle else { throw .notOpen }
        let start = pagesRead
        return try withoutActuallyEscaping(report) { report throws(DatabaseError) in
            let watch = ReadingWatch { () throws(DatabaseError) in try report(self.pagesRead - start) }
            let served = view as? ServedFile
            // Before 3.41, SQLite asks no progress handler while it follows trees.
            served?.goesOn = { !watch.mustStop }
            if let hooks {
                hooks.reading = { !watch.mustStop }
            } else {
                sqlite3_progress_handler(
                    handle,
                    Connection.readingInterval,
                    { Unmanaged<ReadingWatch>.fromOpaque($0!).takeUnretainedValue().mustStop ? 1 : 0 },
                    Unmanaged.passUnretained(watch).toOpaque()
                )
            }
            defer {
                served?.goesOn = nil
                if let hooks {
                    hooks.reading = nil
                } else {
                    withExtendedLifetime(watch) { sqlite3_progress_handler(handle, 0, nil, nil) }
                }
            }
            do throws(DatabaseError) {
                let result = try body()
                // The body may have taken the interruption for something else.
                if let failure = watch.failure { throw failure }
                return result
            } catch {
                throw watch.failure ?? error
            }
        }
    }

    /// How many pages this connection has read from its file: those that its cache did not have.
    /// https://www.sqlite.org/c3ref/c_dbstatus_options.html
    private var pagesRead: Int64 {
        guard let handle else { return 0 }
        var (current, highest) = (Int32(0), Int32(0))
        // If the engine does not know this counter, only the progress stands still.
        _ = sqlite3_db_status(handle, SQLITE_DBSTATUS_CACHE_MISS, &current, &highest, 0)
        // SQLite counts in 32 bits, and starts again at 0.
        return Int64(UInt32(bitPattern: current))
    }
}

/// Asks whether to go on, until the answer is no once.
private final class ReadingWatch {
    private let report: () throws(DatabaseError) -> Void
    private(set) var failure: DatabaseError?

    init(_ report: @escaping () throws(DatabaseError) -> Void) { self.report = report }

    var mustStop: Bool {
        guard failure == nil else { return true }
        do throws(DatabaseError) {
            try report()
            return false
        } catch {
            failure = error
            return true
        }
    }
}
