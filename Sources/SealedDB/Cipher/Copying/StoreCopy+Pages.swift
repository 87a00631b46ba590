extension StoreCopy {
    /// The share of the copying in the whole, by estimate: the rest is the sync.
    private static let shareOfPages = 0.9

    /// Fills the file with the pages of a store, compares each with what was read back, has SQLCipher read a sample of
    /// them, and syncs the file. What the source holds must not change meanwhile.
    func fill(
        with source: PageSource,
        _ sealing: Sealing,
        _ mode: PageTransfer.Mode,
        progress: ((KeyRotation.Progress) throws -> Void)?
    ) throws(DatabaseError) -> PageTotals {
        let totals = source.totals
        let report = ProgressReport(totals: totals, progress: progress)
        let copying = report.part(to: StoreCopy.shareOfPages)
        let transfer = try PageTransfer(source, to: sealing, mode)
        let file = try newFile()
        try copying(.copy, 0)
        try transfer.run(into: file) { completed throws(DatabaseError) in try copying(.copy, completed) }
        try settle(sealing, file, file.settledMark(), report.part(from: StoreCopy.shareOfPages))
        return totals
    }

    /// Has SQLCipher read a sample of a file whose pages were all compared, and syncs it.
    /// - Parameter mark: that of the file when its last page was compared.
    func settle(
        _ sealing: Sealing,
        _ file: NewFile,
        _ mark: NewFile.Mark,
        _ report: ProgressReport
    ) throws(DatabaseError) {
        try verifySample(sealing, report, checksStructure: file.holdsBlank)
        // What is written from now on was not compared. SQLCipher writes nothing to look at it.
        guard try file.mark() == mark else { throw unverified("somebody else has written to it") }
        // The descriptor of the file is closed after the connection that has checked it: its locks are of no use then.
        try synchronize(report) { () throws(DatabaseError) in try file.synchronize() }
    }

    private func verifySample(
        _ sealing: Sealing,
        _ report: ProgressReport,
        checksStructure: Bool
    ) throws(DatabaseError) {
        try report(.verify, 0)
        var damage: String?
        do throws(DatabaseError) {
            if checksStructure { damage = try structureProblem(sealing, report) }
            let connection = try opening(sealing).open()
            defer { connection.close() }
            if damage == nil, let problem = try SampleCheck(totals: report.totals).problem(connection) {
                throw unverified(problem)
            }
            guard connection.close() else { throw unverified("it could not be closed") }
        } catch {
            guard error.isOfDamage, error.reason != .unverified else { throw error }
            // Each page was compared with the source's, so what is wrong with their structure is the source's.
            if let problem = try structureProblem(sealing, report) { throw StoreCopy.damagedSource([problem]) }
            throw unverified("SQLCipher does not read it (\(error.message))")
        }
        if let damage { throw StoreCopy.blankInUse(damage) }
        try report(.verify, report.totals.count)
    }

    private func structureProblem(_ sealing: Sealing, _ report: ProgressReport) throws(DatabaseError) -> String? {
        let connection = try opening(sealing).open()
        defer { connection.close() }
        return try StructureCheck(connection: connection).pageProblem { () throws(DatabaseError) in
            try report(.verify, 0)
        }
    }

    private static func blankInUse(_ problem: String) -> DatabaseError {
        DatabaseError(
            extendedCode: SQLITE_CORRUPT,
            reason: .damaged,
            message: """
                Pages of the source are not as they were written, and not all of them are free (\(problem)). The new file was \
                discarded. Look at the source with `sealdb verify`, and restore a backup.
                """
        )
    }
}
