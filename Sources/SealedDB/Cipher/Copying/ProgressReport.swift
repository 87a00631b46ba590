/// Tells the caller how far an operation on a store, or a part of it, has come. The caller may throw to stop it.
struct ProgressReport {
    let totals: PageTotals
    let progress: ((KeyRotation.Progress) throws -> Void)?
    /// The share of the whole operation before this part, and after it, from 0 to 1.
    private var bounds = (start: 0.0, end: 1.0)

    init(totals: PageTotals, progress: ((KeyRotation.Progress) throws -> Void)?) {
        (self.totals, self.progress) = (totals, progress)
    }

    /// A part of this operation. The shares are estimates of how long the parts take.
    func part(from start: Double = 0, to end: Double = 1) -> ProgressReport {
        var part = self
        let length = bounds.end - bounds.start
        part.bounds = (bounds.start + start * length, bounds.start + end * length)
        return part
    }

    /// The same part of another file.
    func of(_ totals: PageTotals) -> ProgressReport {
        var report = ProgressReport(totals: totals, progress: progress)
        report.bounds = bounds
        return report
    }

    func callAsFunction(_ phase: KeyRotation.Progress.Phase, _ completed: Int64) throws(DatabaseError) {
        let share = totals.count > 0 ? min(1, Double(completed) / Double(totals.count)) : 1
        try ProgressReport.send(
            KeyRotation.Progress(
                phase: phase,
                completedPages: completed,
                totalPages: totals.count,
                pageSize: totals.size,
                fractionCompleted: bounds.start + share * (bounds.end - bounds.start)
            ),
            to: progress
        )
    }

    /// Runs statements that read a whole file, and reports how much of it they have read.
    /// - Parameter timesRead: how often each page is read, by estimate. If it is read more often, the part slows down
    ///   towards its end, and does not reach it.
    func whileReading<T>(
        _ connection: Connection,
        _ phase: KeyRotation.Progress.Phase,
        timesRead: Double = 1,
        _ body: () throws(DatabaseError) -> T
    ) throws(DatabaseError) -> T {
        guard progress != nil else { return try body() }
        try self(phase, 0)
        let result = try connection.whileReading { read throws(DatabaseError) in
            let share = Double(read) / (timesRead * Double(max(1, totals.count)))
            let shown = share < 0.9 ? share : 1 - 0.09 / share
            try self(phase, max(0, Int64(shown * Double(totals.count))))
        } _: { () throws(DatabaseError) in
            try body()
        }
        try self(phase, totals.count)
        return result
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

extension KeyRotation.Progress {
    /// The same progress of an operation that is the last part of a larger one.
    /// - Parameter start: the share of the larger operation before that part.
    func inPart(from start: Double) -> KeyRotation.Progress {
        KeyRotation.Progress(
            phase: phase,
            completedPages: completedPages,
            totalPages: totalPages,
            pageSize: pageSize,
            fractionCompleted: start + fractionCompleted * (1 - start)
        )
    }
}
