extension StoreOpening {
    /// Checks the authentication codes of all pages before something is copied through SQLCipher, if SQLCipher's reads
    /// are not watched (``EngineInfo/noticesDamagedPages``). SQLCipher can read a damaged page as zeros, and a copy
    /// with these zeros would look sound.
    ///
    /// Only reads. Rotations do not need this: they compare each page anyway.
    /// - Parameter isWatched: whether each page is watched while SQLCipher reads it; nothing is checked then.
    /// - Throws: ``DatabaseError/Reason/damaged``.
    func requireAuthenticPages(isWatched: Bool = Engine.pageWatchProblem == nil) throws(DatabaseError) {
        guard !isWatched, isFile, let path, let key, settings.parameters.usesHMAC else { return }
        let report = try IntegrityReport.verify(
            path: path,
            key: key,
            cipherSettings: settings,
            busyTimeout: Duration(clampingSeconds: busyTimeout)
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
