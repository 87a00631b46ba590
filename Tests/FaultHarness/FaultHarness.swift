import ArgumentParser
import Foundation

@main
struct FaultHarness: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "faults",
        abstract: "Disturbs sealdb and the library in every way there is, and looks whether anything is lost."
    )

    enum Part: String, ExpressibleByArgument, CaseIterable {
        case kills, faults, power, memory, environment, load, mutants, opinion
    }

    @Flag(help: "Every call, every error, every allocation. Without it, a sample.")
    var long = false

    @Option(help: "Only these parts: \(Part.allCases.map(\.rawValue).joined(separator: ", ")).")
    var only: [Part] = []

    @Option(help: "Only operations whose name begins so, such as rotate or rotate/wal.")
    var operation: String?

    @Option(help: "Only the trial of this name, as it is told with a loss.")
    var trial: String?

    @Option(help: "Chooses the sample and the states.")
    var seed: UInt64 = 1

    @Option(help: "Processes at a time.")
    var workers: Int = max(2, ProcessInfo.processInfo.activeProcessorCount)

    @Flag(help: "Print a table of all operations at the end.")
    var table = false

    @Flag(help: "Tell of each trial what state it left.")
    var verbose = false

    func run() throws {
        signal(SIGPIPE, SIG_IGN)
        let session = try Session(self)
        defer { session.end() }
        let report = try session.run()
        if table { say("\n\(report.table)\n") }
        for loss in report.losses.prefix(verbose ? 100_000 : 20) {
            say("LOST \(loss.id)")
            for problem in loss.problems { say("     \(problem.prefix(1500))") }
        }
        say(report.summary(seconds: session.seconds))
        if !report.isGood { throw ExitCode(1) }
    }
}

/// A line on standard output, at once, also into a pipe.
func say(_ line: String) { FileHandle.standardOutput.write(Data((line + "\n").utf8)) }
