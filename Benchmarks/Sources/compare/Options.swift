import Foundation

/// The command line.
struct Options {
    var plainWorker = ""
    var encryptedWorker = ""
    /// Where stores are made.
    var directory = ""
    /// Where reports go; `nil` for `Results/` with the date.
    var output: String?
    var thresholds = ""
    var filters: [String] = []
    var isQuick = false
    var wantsHelp = false
    var rounds: Int?
    var engines = EngineKind.allCases
    var allocations: AllocationAction?
    /// Two reports whose ratios are to be held against each other.
    var agreement: (String, String)?
    /// A report to write Markdown and HTML from.
    var rendering: String?

    enum AllocationAction: String { case check, update }

    static let usage = """
        Usage: Benchmarks/compare [options]

        Builds SealedDB twice in release mode, against SQLCipher and against plain SQLite, measures both in turn with C
        and GRDB beside them, and reports ratios: in the terminal, and as JSON, Markdown and HTML.

          --quick               small stores, short samples, 5 rounds: a few minutes
          --rounds N            how often everything is measured, in new processes; 9, or 5 with --quick
          --filter REGEX        only benchmarks whose id matches, such as '^bind' or 'wal.full'; may be repeated
          --engine ENGINE       only 'encrypted' or 'plain': half the time, for work on SealedDB itself
          --output DIRECTORY    where the reports go; Benchmarks/Results/DATE, or DATE-quick
          --directory DIRECTORY where stores are made and removed again; the checkout's own disk
          --allocations check   fail if SealedDB allocates more than Benchmarks/Thresholds allow; never on a time
          --allocations update  write those thresholds anew
          --agree A B           measure nothing: hold two report.json files against each other
          --render FILE         measure nothing: write Markdown and HTML from a report.json into --output

        """

    init(_ arguments: [String]) throws {
        var rest = arguments[...]
        func value(_ option: String) throws -> String {
            guard let value = rest.popFirst() else { throw UsageError("\(option) needs a value.") }
            return value
        }
        while let option = rest.popFirst() {
            switch option {
            case "--quick": isQuick = true
            case "--rounds":
                guard let count = Int(try value(option)), count > 0 else {
                    throw UsageError("--rounds needs a number from 1.")
                }
                rounds = count
            case "--filter": filters.append(try value(option))
            case "--engine":
                guard let engine = EngineKind(rawValue: try value(option)) else {
                    throw UsageError("--engine takes 'encrypted' or 'plain'.")
                }
                engines = [engine]
            case "--output": output = try value(option)
            case "--directory": directory = try value(option)
            case "--allocations":
                guard let action = AllocationAction(rawValue: try value(option)) else {
                    throw UsageError("--allocations takes 'check' or 'update'.")
                }
                allocations = action
            case "--agree": agreement = (try value(option), try value(option))
            case "--render": rendering = try value(option)
            case "--plain-worker": plainWorker = try value(option)
            case "--encrypted-worker": encryptedWorker = try value(option)
            case "--thresholds": thresholds = try value(option)
            case "--help": wantsHelp = true
            default: throw UsageError("There is no option \(option).")
            }
        }
    }

    /// How long a sample is, and how many a round takes of each subject.
    var sampleNanoseconds: Double { isQuick ? 4e6 : 10e6 }
    var samples: Int { isQuick ? 2 : 5 }
    /// What a case may take in a round, to be sampled once more.
    var turnNanoseconds: UInt64 { isQuick ? 150_000_000 : 500_000_000 }
    /// The ranges of two runs of 5 rounds have nothing in common once in 126 times, if chance alone moves them; of 3
    /// rounds, once in 10.
    var roundCount: Int { rounds ?? (isQuick ? 5 : 9) }
    var packageLimit: Int { isQuick ? 20_000 : .max }
}

struct UsageError: Error, CustomStringConvertible {
    let description: String

    init(_ description: String) { self.description = description }
}
