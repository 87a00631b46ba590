import ArgumentParser
import Foundation
import SealedDB

/// How several stores are worked on.
struct BatchOptions: ParsableArguments {
    @Option(
        name: .customLong("jobs"),
        help: ArgumentHelp("Work on so many stores at a time. Default: 1.", valueName: "number")
    )
    var givenJobs: Int?

    @Flag(
        name: .customLong("continue-on-error"),
        inversion: .prefixedNo,
        help: "Go on with the other stores when one fails, and exit with 2 at the end."
    )
    var givenContinueOnError: Bool?

    static let jobRange = 1...64

    func validate() throws {
        guard BatchOptions.jobRange.contains(givenJobs ?? 1) else {
            throw ValidationError("--jobs takes a number from 1 to 64.")
        }
    }

    func runner(_ control: BatchControl) -> BatchRunner {
        let defaults = ConfigurationInUse.defaults
        return BatchRunner(
            jobs: givenJobs ?? defaults.jobs ?? 1,
            continuesOnError: givenContinueOnError ?? defaults.continueOnError ?? false,
            control: control
        )
    }
}

/// How long and how fast a batch may run, and which files it keeps.
struct RotationOptions: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "Log of a batch, for `sealdb status`. Default for several stores: sealdb-rotate.journal here.",
            valueName: "file"
        ),
        completion: .file()
    )
    var journal: String?

    @Flag(help: "Only go on with a batch that the journal knows of.")
    var resumeOnly = false

    @Flag(help: "Keep the old file as STORE.old, under the old key; --keep-old=SUFFIX for another ending.")
    var keepOld = false

    // `--keep-old=SUFFIX` is turned into this option, because a flag cannot have a value.
    @Option(help: .hidden)
    var keepOldSuffix: String?

    @Flag(
        help: ArgumentHelp(
            "Then put each new key file in the place of the old one, which is kept as FILE.old.",
            discussion: "--replace-key-files=SUFFIX for another ending, such as .$(date +%F)."
        )
    )
    var replaceKeyFiles = false

    // As `--keep-old=SUFFIX`.
    @Option(help: .hidden)
    var formerKeySuffix: String?

    @Option(help: ArgumentHelp("Copy at most so many megabytes a second, all jobs together.", valueName: "MB/s"))
    var maxRate: Double?

    @Option(
        help: ArgumentHelp(
            "Stop at a time of day, such as 05:30, or after 90s, 45m or 2h: exit 75, and go on later.",
            valueName: "time"
        )
    )
    var deadline: String?

    func validate() throws {
        if let maxRate, !RotationOptions.rateRange.contains(maxRate) {
            throw ValidationError("--max-rate takes megabytes in a second, from 0.001 to 1000000.")
        }
        if let deadline, Deadline(deadline) == nil {
            throw ValidationError("--deadline takes a time of day as HH:MM, or a duration such as 90s, 45m or 2h.")
        }
        if let keepOldSuffix {
            guard !keepOldSuffix.isEmpty, !keepOldSuffix.has("/") else {
                throw ValidationError("--keep-old= takes the ending of a file name.")
            }
            guard !StoreName.siblingEndings.contains(keepOldSuffix) else {
                throw ValidationError("\(keepOldSuffix) is the ending of a file that belongs to the store.")
            }
        }
        if let formerKeySuffix, formerKeySuffix.isEmpty || formerKeySuffix.has("/") {
            throw ValidationError("--replace-key-files= takes the ending of a file name.")
        }
    }

    /// What is appended to the name of a key file that is replaced; `nil` if none is to be replaced.
    var formerKeyEnding: String? { formerKeySuffix ?? (replaceKeyFiles ? ".old" : nil) }

    var oldFileSuffix: String? { keepOldSuffix ?? (keepOld ? ".old" : nil) }

    /// A deadline given as a duration begins now.
    var control: BatchControl { BatchControl(deadline: deadline.flatMap { Deadline($0)?.date }) }

    static let rateRange = 0.001...1e6

    var rateLimit: RateLimit? {
        (maxRate ?? ConfigurationInUse.defaults.maxRate).map { RateLimit(bytesPerSecond: $0 * 1e6) }
    }

    /// Replaces `--keep-old=SUFFIX`, and its like, by the option that the parser knows.
    static func normalized(_ arguments: [String]) -> [String] {
        let end = arguments.firstIndex(of: "--") ?? arguments.endIndex
        let names = [
            ("--keep-old=", "--keep-old-suffix="), ("--replace-key-files=", "--former-key-suffix="),
        ]
        return arguments.enumerated().map { index, argument in
            guard index < end, let (name, option) = names.first(where: { argument.begins(with: $0.0) }) else {
                return argument
            }
            return option + argument.dropFirst(name.count)
        }
    }
}
