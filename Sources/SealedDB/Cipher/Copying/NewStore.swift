import Foundation

/// A copy of a database under a new name, encrypted in another way or not at all. It appears once it is verified.
struct NewStore {
    let path: String
    let sealing: Sealing
    /// Whether the key is not that of another store too.
    var confirmsKey = true

    /// Refuses early, before anything is read.
    func requireAbsent() throws(DatabaseError) {
        guard !FileSystem.mayExist(path) else {
            throw DatabaseError(
                extendedCode: SQLITE_CANTOPEN,
                reason: .alreadyExists,
                message: "\(path) exists, and is not overwritten. Nothing was changed."
            )
        }
        try StoreCopy.requireNoLog(of: path)
    }

    /// - Parameter context: leads the message of a failure, and says what did not happen.
    func make(
        from source: Connection,
        method: StoreCopy.Method,
        setsWAL: Bool = false,
        context: String,
        progress: ((KeyRotation.Progress) throws -> Void)?
    ) throws(DatabaseError) -> KeyRotation.Report {
        let start = DispatchTime.now().uptimeNanoseconds
        // Of one that was killed. If another is running, only one of the two could have put its file in place.
        StoreCopy.removeLeftovers(of: path)
        let copy = try StoreCopy(beside: path, takesAttributes: false)
        let totals: PageTotals
        do throws(DatabaseError) {
            totals = try copy.fill(
                from: source,
                sealing: sealing,
                method: method,
                setsWAL: setsWAL,
                progress: progress
            )
            if confirmsKey { try sealing.confirm(for: copy.path) }
            try source.requireStill()
        } catch {
            copy.discard()
            throw error.adding(context: context)
        }
        try copy.moveIn()
        try copy.synchronizeNew()
        let seconds = Double(DispatchTime.now().uptimeNanoseconds - start) / 1e9
        return KeyRotation.Report(path: path, pageCount: totals.count, pageSize: totals.size, seconds: seconds)
    }
}
