import Foundation
import Wire

/// `Benchmarks/compare`, which builds the workers and then starts this.
@main
enum Compare {
    static func main() {
        // A worker that dies is noticed by what it does not say.
        signal(SIGPIPE, SIG_IGN)
        do {
            let options = try Options(Array(CommandLine.arguments.dropFirst()))
            if options.wantsHelp {
                print(Options.usage, terminator: "")
            } else if let (first, second) = options.agreement {
                print(try Agreement(first, second).text)
            } else if let path = options.rendering {
                try write(Report(path), options)
            } else {
                try run(options)
            }
        } catch let error as UsageError {
            complain("\(error)\n\n\(Options.usage)")
            exit(64)
        } catch {
            complain("FAILED: \(error)\n")
            exit(1)
        }
    }

    private static func run(_ options: Options) throws {
        let start = Date()
        try FileManager.default.createDirectory(atPath: options.directory, withIntermediateDirectories: true)
        try claim(options.directory)
        var machine = Machine(storesIn: options.directory, swift: swiftVersion)
        let packageFile = "\(options.directory)/packages.tsv"
        let packageIndex = try PackageList.write(to: packageFile, limit: options.packageLimit)
        defer { try? FileManager.default.removeItem(atPath: packageFile) }
        if packageIndex == nil { complain("This machine has no package index; its rows are left out.\n") }

        let openssl = OpenSSLSpeed.measure()
        if openssl.isEmpty { complain("There is no openssl command; its figures are left out.\n") }
        var comparison = try Comparison(options: options, packageFile: packageIndex == nil ? nil : packageFile)
        let showsProgress = isatty(STDERR_FILENO) == 1
        try comparison.run { text in
            if showsProgress { complain("\r\u{1B}[K\(text)") }
        }
        if showsProgress { complain("\r\u{1B}[K") }
        guard !comparison.cases.isEmpty else { throw UsageError("No benchmark matches.") }
        machine.finish()
        let report = Report(
            date: start.formatted(.iso8601),
            isQuick: options.isQuick,
            rounds: options.roundCount,
            samplesPerRound: options.samples,
            sampleMilliseconds: options.sampleNanoseconds / 1e6,
            seconds: Date().timeIntervalSince(start).rounded(),
            filters: options.filters,
            machine: machine,
            plain: comparison.engines[.plain],
            encrypted: comparison.engines[.encrypted],
            opensslSpeed: openssl,
            packageIndex: packageIndex ?? "",
            goals: comparison.goals,
            rows: comparison.rows
        )
        print(TextReport(report: report).terminal)
        try write(report, options)
        try handleAllocations(report, options)
    }

    /// Keeps a second comparison, which would remove the stores of this one, out of the directory until this process ends.
    private static func claim(_ directory: String) throws {
        let descriptor = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard descriptor < 0 || flock(descriptor, LOCK_EX | LOCK_NB) != 0 else { return }
        guard descriptor >= 0, errno == EWOULDBLOCK else {
            throw UsageError("Cannot lock \(directory): \(String(cString: strerror(errno))).")
        }
        throw UsageError("Another comparison has its stores in \(directory). Wait for its end, or name a --directory.")
    }

    private static func write(_ report: Report, _ options: Options) throws {
        let directory = options.output ?? "."
        try FileManager.default.createDirectory(atPath: directory, withIntermediateDirectories: true)
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        func write(_ data: Data, _ name: String) throws {
            try data.write(to: URL(fileURLWithPath: "\(directory)/\(name)"))
            print("\(directory)/\(name)")
        }
        print()
        try write(encoder.encode(report) + Data("\n".utf8), "report.json")
        try write(Data(TextReport(report: report).markdown.utf8), "report.md")
        try write(Data(HTMLReport(report: report).text.utf8), "report.html")
    }

    private static func handleAllocations(_ report: Report, _ options: Options) throws {
        let thresholds = AllocationThresholds(directory: options.thresholds)
        switch options.allocations {
        case .update: try thresholds.update(report)
        case .check:
            let violations = try thresholds.violations(report)
            guard violations.isEmpty else {
                throw WorkerError("more allocations than before\n  " + violations.joined(separator: "\n  "))
            }
            print("\nAllocations are within their thresholds.")
        case nil: break
        }
    }

    /// Of the compiler that `swift` is.
    private static var swiftVersion: String {
        let line = Machine.output("swift", ["--version"]).split(separator: "\n").first.map(String.init) ?? "unknown"
        return line.replacing("Swift version ", with: "")
    }

    private static func complain(_ text: String) { FileHandle.standardError.write(Data(text.utf8)) }
}
