extension StoreOpening {
    /// Where pages that SQLCipher finds damaged go unnoticed (``EngineInfo``), all are looked at before anything is copied
    /// through it: it would take some for zeros, and a copy with zeros is as good as its source.
    ///
    /// Looks only. Rotations compare each page anyway.
    /// - Parameter isWatched: whether each page is watched while it is read.
    /// - Throws: ``DatabaseError/Reason/damaged``.
    func requireAuthenticPages(isWatched: Bool = Engine.pageWatchProblem == nil) throws(DatabaseError) {
        guard !isWatched, isFile, let path, let key, settings.parameters.usesHMAC else { return }
        let report = try IntegrityReport.verify(
            path: path,
            key: key,
            cipherSettings: settings,
            busyTimeout: busyTimeout
        )
        guard let page = report.damagedPages.first else { return }
        throw DatabaseError(
            extendedCode: SQLITE_CORRUPT,
            reason: .damaged,
            message: """
                Page \(page) of \(path) is not as it was written: its authentication code is wrong. Nothing was copied. \
                Restore a backup.
                """
        )
    }
}
