import Foundation

extension StoreOpening {
    /// Whether the log of the store is in use, by those who have the same file open.
    ///
    /// SQLite finds a log and its index by the path of the store. Whoever had a store open when another file was put in its
    /// place still uses them for the former file, and SQLite would mix the pages of both.
    /// - Parameter path: an absolute path without links.
    /// - Returns: false also if somebody uses the log who cannot be looked at: then its pages have to be.
    /// - Throws: ``DatabaseError/Reason/busy`` if somebody uses the log who has not the file open that is at the path now.
    static func isLogInUse(ofStore path: String) throws(DatabaseError) -> Bool {
        // Without an index there are no locks of those who use a log.
        guard FileSystem.mayExist(path + "-shm") else { return false }
        // The kernel's table may lack a lock, because it changes while it is read, and a rotation of this process keeps the former
        // file for a moment: so only who uses another file each time counts.
        var others: Set<Int32>?
        for attempt in 0..<10 {
            if attempt > 0 { LockHolders.pause() }
            guard let processes = LockHolders.processes(withLocksOn: [path + "-shm", path]) else {
                return FileSystem.mayExist(path + "-shm")
            }
            var isKnown = true
            var found: Set<Int32> = []
            // Who uses a log has a lock on its own file, too.
            for process in processes[0].subtracting(processes[1]) {
                switch try FileUsers.use(of: path, by: process) {
                case .ofThisFile, .ended: continue
                case .unknown: isKnown = false
                case .ofAnother: found.insert(process)
                }
            }
            others = others?.intersection(found) ?? found
            if others == [] { return isKnown && !processes[0].isEmpty }
        }
        guard let process = others?.min() else { return false }
        throw logOfFormerFile(path, process)
    }

    private static func logOfFormerFile(_ path: String, _ process: Int32) -> DatabaseError {
        let who = process == getpid() ? "this process" : LockHolders.describe(process)
        return DatabaseError(
            extendedCode: SQLITE_BUSY,
            reason: .busy,
            message: """
                \(path) is another file than the one for which \(who) still uses the log beside it: somebody put it in the place of a \
                store that was open. SQLite would write pages of the former file into it. Nothing was read or written. Keep a copy of \
                it, and end who has the former file open.
                """
        )
    }
}
