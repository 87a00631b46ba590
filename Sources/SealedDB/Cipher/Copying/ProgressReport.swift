/// Tells the caller how far a copy has come. The caller may throw to stop it.
struct ProgressReport {
    let totals: PageTotals
    let progress: ((KeyRotation.Progress) throws -> Void)?

    func callAsFunction(_ phase: KeyRotation.Progress.Phase, _ completed: Int64) throws(DatabaseError) {
        try ProgressReport.send(
            KeyRotation.Progress(
                phase: phase,
                completedPages: completed,
                totalPages: totals.count,
                pageSize: totals.size
            ),
            to: progress
        )
    }

    static func send(
        _ state: KeyRotation.Progress,
        to progress: ((KeyRotation.Progress) throws -> Void)?
    ) throws(DatabaseError) {
        do {
            try progress?(state)
        } catch {
            throw DatabaseError(
                extendedCode: SQLITE_INTERRUPT,
                reason: .interrupted,
                message: "The caller stopped it in phase \(state.phase.rawValue).",
                underlyingError: error
            )
        }
    }
}
