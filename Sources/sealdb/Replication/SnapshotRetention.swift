import ArgumentParser
import SealedDB

/// Which snapshots of a repository are kept, by the rules of dated backups.
struct SnapshotRetentionOptions: ParsableArguments {
    @Option(
        help: ArgumentHelp("Keep the last so many snapshots, and remove those that no rule keeps.", valueName: "number")
    )
    var keepLast: Int?

    @Option(help: ArgumentHelp("The last snapshot of each of the last so many hours.", valueName: "number"))
    var keepHourly: Int?

    @Option(help: ArgumentHelp("The last snapshot of each of the last so many days.", valueName: "number"))
    var keepDaily: Int?

    @Option(help: ArgumentHelp("The last snapshot of each of the last so many weeks.", valueName: "number"))
    var keepWeekly: Int?

    @Option(help: ArgumentHelp("The last snapshot of each of the last so many months.", valueName: "number"))
    var keepMonthly: Int?

    @Option(help: ArgumentHelp("The last snapshot of each of the last so many years.", valueName: "number"))
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

extension RetentionPolicy {
    /// Which of these are kept.
    /// - Parameter times: those of the snapshots, the newest first.
    func keeps(_ times: [RepositoryTime]) -> [Bool] {
        reasons(times.map { BackupStamp(seconds: $0.seconds) }).map { !$0.isEmpty }
    }
}
