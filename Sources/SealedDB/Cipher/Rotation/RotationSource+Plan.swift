import Foundation

extension RotationSource {
    /// What a copy of the store would need. Writes nothing to find it out.
    /// - Parameter byPages: whether the copy is made page by page.
    /// - Throws: the error that a copy would fail with before it begins.
    static func plan(
        path: String,
        sealing: Sealing,
        busyTimeout: Double,
        byPages: Bool,
        oldFileSuffix: String?,
        ignoresUnseenUsers: Bool
    ) throws(DatabaseError) -> KeyRotation.Plan {
        let place = try ReplaceablePlace(path, oldFileSuffix: oldFileSuffix)
        guard access(place.path, W_OK) == 0 else {
            throw .system("\(place.path) cannot be written to", reason: .notPermitted)
        }
        try UsageLock.requirePlace(place.path)
        try LogDamage.requireNone(ofStore: place.path)
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
                estimatedSeconds: try estimatedSeconds(connection, sealing, totals, byPages: byPages)
            )
        }
    }

    /// How long a copy would take, in seconds, by the time that it takes to authenticate the first pages.
    ///
    /// Page by page, each one is authenticated, encrypted, authenticated under the other key, written, read back, compared
    /// and synced, which takes about four times as long. Row by row, SQLCipher works on one thread, and reads everything
    /// several times.
    private static func estimatedSeconds(
        _ connection: Connection,
        _ sealing: Sealing,
        _ totals: PageTotals,
        byPages: Bool
    ) throws(DatabaseError) -> Double? {
        guard let key = sealing.key else { return nil }
        let count = min(totals.count, 4096)
        let start = DispatchTime.now().uptimeNanoseconds
        let scan = PageScan(connection: connection, key: key, settings: sealing.settings)
        // Damage is found when the copy is made.
        _ = try scan.damagedPages(ofFirst: count)
        let seconds = Double(DispatchTime.now().uptimeNanoseconds - start) / 1e9
        return seconds * Double(totals.count) / Double(max(1, count)) * (byPages ? 4 : 30)
    }
}
