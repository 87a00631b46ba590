import ArgumentParser
import Foundation
import SealedDB

/// Random programs on stores, compared with a model.
@main
struct StressCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "Stress",
        abstract: "Run random programs on stores, with kills, and compare with a model.",
        subcommands: [RunCommand.self, PrepareCommand.self, WorkCommand.self],
        defaultSubcommand: RunCommand.self
    )
}

extension Scale: ExpressibleByArgument {}
extension Composition: ExpressibleByArgument {}
extension LoopDisk.Kind: ExpressibleByArgument {}

/// Makes a program's store.
struct PrepareCommand: ParsableCommand {
    static let configuration = CommandConfiguration(commandName: "prepare", shouldDisplay: false)

    @Argument var root: String

    func run() throws { try Worker.prepare(Place(root: root)) }
}

/// Uses a program's store, for one round.
struct WorkCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(commandName: "work", shouldDisplay: false)

    @Argument var root: String
    @Argument var process: Int

    func run() async throws { try await Worker.run(Place(root: root), process: process) }
}

/// Runs programs until the time is over, one after the other or several at once.
struct RunCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(commandName: "run", abstract: "Run programs (the default).")

    @Option(help: "Seconds to run. A program that has begun is not finished after that; the first one is.")
    var seconds = 60.0
    @Option(help: "As --seconds.")
    var minutes: Double?
    @Option(help: "Programs at a time.")
    var jobs = 1
    @Option(help: "Run the program of this seed only, to its end.")
    var seed: UInt64?
    @Option(help: "Steps of each client in a round.")
    var steps = 60
    @Option(help: "Rounds of each program.")
    var rounds = 8
    @Option(help: "Size of the store: small, medium, large or huge (some hundred MB). Default: drawn.")
    var scale: Scale?
    @Flag(help: "Draw no large and no huge ones.")
    var quick = false
    @Option(help: "Only rounds of this composition. Default: all of them.")
    var composition: Composition?
    @Option(help: "A file system of this kind for the stores, whose power is cut; for root. Default: none.")
    var fileSystem: LoopDisk.Kind?
    @Option(help: "Directory for the stores. What failed stays there.")
    var directory: String?
    @Flag(help: "With --seed: the tour with which each run begins.")
    var tour = false
    @Flag(help: "Print how often each operation ran.")
    var table = false

    func run() async throws {
        guard EngineInfo.current().isEncrypting else { throw ValidationError("The plain build has no keys to change.") }
        let session = Session(
            scale: scale,
            isQuick: quick,
            composition: composition,
            fileSystem: fileSystem,
            steps: steps,
            rounds: rounds,
            root: directory ?? NSTemporaryDirectory() + "/sealeddb-stress-\(getpid())",
            deadline: Date().timeIntervalSince1970 + (seed == nil ? minutes.map { $0 * 60 } ?? seconds : 1e6)
        )
        if let seed {
            if tour { session.runTour(seed: seed) } else { session.runProgram(seed: seed) }
        } else {
            await session.run(jobs: jobs)
        }
        if table { Session.say(session.report.table) }
        if !session.report.missing.isEmpty {
            Session.say("Never ran: \(session.report.missing.joined(separator: ", "))")
        }
        Session.say(session.report.summary)
        if session.report.lost > 0 { throw ExitCode(1) }
    }
}
