import Foundation

extension RotationSource {
    /// What a copy of the store would need. Writes nothing to find it out.
    /// - Throws: the error that a copy would fail with before it begins.
    static func plan(
        path: String,
        sealing: Sealing,
        busyTimeout: Double,
        oldFileSuffix: String?,
        ignoresUnseenUsers: Bool
    ) throws(DatabaseError) -> KeyRotation.Plan {
        let place = try ReplaceablePlace(path, oldFileSuffix: oldFileSuffix)
        guard access(place.path, W_OK) == 0 else {
            throw .system("\(place.path) cannot be written to", reason: .notPermitted)
        }
        try UsageLock.requirePlace(place.path)
        var opening = StoreOpening(path: place.path, key: sealing.key, settings: sealing.settings)
        opening.busyTimeout = busyTimeout
        return try opening.look { connection throws(DatabaseError) in
            try FileUsers.requireNobodyElse(place.path, ignoresUnseen: ignoresUnseenUsers)
            let totals = try PageTotals(of: connection)
            try place.requireSpace(for: totals)
            return KeyRotation.Plan(
                path: place.path,
                fileSize: Int64(try FileSystem.status(place.path).st_size),
                pageCount: totals.count,
                pageSize: totals.size,
                journalMode: try connection.storedJournalMode(sealing),
                freeSpace: try place.freeSpace(),
                neededSpace: place.neededSpace(for: totals),
                estimatedSeconds: try estimatedSeconds(connection, sealing)
            )
        }
    }
}
