import ArgumentParser
import SealedDB

/// Which backups or snapshots are kept, with the names and the meaning that these options have in restic.
struct KeepOptions: ParsableArguments {
    @Option(help: ArgumentHelp("Keep the last so many, and remove those that no rule keeps.", valueName: "number"))
    var keepLast: Int?

    @Option(help: ArgumentHelp("Keep the last one of each of the last so many hours.", valueName: "number"))
    var keepHourly: Int?

    @Option(help: ArgumentHelp("Keep the last one of each of the last so many days.", valueName: "number"))
    var keepDaily: Int?

    @Option(help: ArgumentHelp("Keep the last one of each of the last so many weeks.", valueName: "number"))
    var keepWeekly: Int?

    @Option(help: ArgumentHelp("Keep the last one of each of the last so many months.", valueName: "number"))
    var keepMonthly: Int?

    @Option(help: ArgumentHelp("Keep the last one of each of the last so many years.", valueName: "number"))
    var keepYearly: Int?

    private var counts: [(rule: RetentionPolicy.Rule, count: Int?)] {
        [
            (.last, keepLast), (.hourly, keepHourly), (.daily, keepDaily), (.weekly, keepWeekly),
            (.monthly, keepMonthly), (.yearly, keepYearly),
        ]
    }

    func validate() throws {
        for (rule, count) in counts {
            if let count, !(1...1_000_000).contains(count) {
                throw ValidationError("--keep-\(rule.rawValue) takes a number from 1 to 1000000.")
            }
        }
    }

    /// `nil` if all are kept.
    var policy: RetentionPolicy? {
        let given = counts.compactMap { rule, count in count.map { (rule, $0) } }
        return given.isEmpty ? nil : RetentionPolicy(counts: given)
    }
}

/// Which backups of a store are kept, and how they are named.
struct RetentionOptions: ParsableArguments {
    @Flag(help: "With --into: name the backups by date and time, such as app.db.2026-11-24T03.55.04Z (UTC).")
    var dated = false

    @OptionGroup
    var keepOptions: KeepOptions

    @Flag(
        name: [.customShort("n"), .long],
        help: "Make and remove nothing; tell which backups would be kept, by which rule, and which would be removed."
    )
    var dryRun = false

    @Flag(help: "Remove old backups although the new one has less than a tenth of the pages that they have.")
    var allowSmaller = false

    /// - Parameter directory: that of `--into`.
    func validate(into directory: String?) throws {
        guard policy != nil else {
            if dryRun { throw ValidationError("--dry-run is for backups with --dated or --keep-….") }
            if allowSmaller { throw ValidationError("--allow-smaller is for backups with --dated or --keep-….") }
            return
        }
        guard directory != nil else {
            throw ValidationError("--dated and --keep-… need a directory for the backups: give --into.")
        }
    }

    /// `nil` if the backups are not dated.
    var policy: RetentionPolicy? {
        keepOptions.policy ?? (dated ? RetentionPolicy(counts: []) : nil)
    }
}

/// Which of several backups are kept.
struct RetentionPolicy: Sendable {
    enum Rule: String, Sendable {
        case last, hourly, daily, weekly, monthly, yearly
    }

    /// Empty to keep all.
    let counts: [(rule: Rule, count: Int)]

    /// The rules by which each of the backups is kept; none for one that is to be removed.
    ///
    /// Each rule goes from the newest backup to the oldest one, and keeps the first that it meets in each period, until it
    /// has kept as many as it may. If it could keep more, it keeps the oldest, too. A period without a backup does not
    /// count.
    /// - Parameter stamps: the newest first.
    func reasons(_ stamps: [BackupStamp]) -> [[String]] {
        guard !counts.isEmpty else { return stamps.map { _ in ["all"] } }
        var reasons = stamps.map { _ in [String]() }
        for (rule, count) in counts {
            var left = count
            var last: Int?
            for (index, stamp) in stamps.enumerated() where left > 0 {
                let period = rule.period(of: stamp, at: index)
                guard period != last || index == stamps.count - 1 else { continue }
                reasons[index].append(rule.rawValue)
                last = period
                left -= 1
            }
        }
        return reasons
    }
}

extension RetentionPolicy.Rule {
    /// The same number for all backups of one period.
    fileprivate func period(of stamp: BackupStamp, at index: Int) -> Int {
        switch self {
        case .last: index
        case .hourly: stamp.hour
        case .daily: stamp.day
        case .weekly: stamp.week
        case .monthly: stamp.month
        case .yearly: stamp.year
        }
    }
}
