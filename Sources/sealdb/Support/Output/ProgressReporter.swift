import ArgumentParser
import Foundation
import SealedDB

enum ProgressMode: String, ExpressibleByArgument, CaseIterable {
    case auto, always, never, json
}

struct ProgressOptions: ParsableArguments {
    @Option(
        name: .customLong("progress"),
        help: "Progress on standard error: auto (on a terminal), always, never, or json. Default: auto."
    )
    var givenProgress: ProgressMode?

    var progress: ProgressMode { givenProgress ?? ConfigurationInUse.defaults.progress ?? .auto }

    func validate() throws {
        if givenProgress == .json { StandardError.startJSON() }
    }

    func reporter() -> ProgressReporter {
        ProgressReporter(mode: progress)
    }

    /// Runs long work that reports its progress in pages, and stops it at the next report after a signal.
    func watchingSignals<T>(_ work: ((@escaping (KeyRotation.Progress) throws -> Void)) throws -> T) rethrows -> T {
        let reporter = reporter()
        SignalWatch.start()
        defer { reporter.finish() }
        return try work { progress in
            reporter.update(progress)
            if SignalWatch.wasInterrupted {
                throw DatabaseError(
                    extendedCode: SQLITE_INTERRUPT,
                    reason: .interrupted,
                    message: "Interrupted. The store is unchanged."
                )
            }
        }
    }
}

/// Shows progress: one redrawn line on a terminal, and separate lines elsewhere. It uses no colours and no escape
/// sequences, so `NO_COLOR` needs no special case. A dumb terminal cannot go back to the start of a line, so it gets
/// separate lines, and only on request.
final class ProgressReporter {
    private enum Style { case none, redrawn, lines, json }

    private let style: Style
    private let clock = ContinuousClock()
    private var phase = ""
    private let start: ContinuousClock.Instant
    private var phaseStart: ContinuousClock.Instant
    private var lastDrawn: ContinuousClock.Instant?
    private var drawnWidth = 0
    private var isComplete = false

    init(mode: ProgressMode) {
        let isTerminal = StandardError.isTerminal && ProcessInfo.processInfo.environment["TERM"] != "dumb"
        style =
            switch mode {
            case .never: .none
            case .auto: isTerminal ? .redrawn : .none
            case .always: isTerminal ? .redrawn : .lines
            case .json: .json
            }
        start = clock.now
        phaseStart = start
    }

    func update(_ progress: KeyRotation.Progress) {
        let size = Int64(progress.pageSize)
        update(
            phase: progress.phase.rawValue,
            completed: progress.completedPages * size,
            total: progress.totalPages * size,
            fraction: progress.fractionCompleted
        )
    }

    /// - Parameters:
    ///   - total: the bytes of the phase; 0 if it is not known.
    ///   - fraction: the share of all phases that is done, from 0 to 1; `nil` if there is one only.
    func update(phase: String, completed: Int64, total: Int64, fraction: Double? = nil) {
        guard style != .none else { return }
        let now = clock.now
        if phase != self.phase {
            endLine()
            self.phase = phase
            phaseStart = now
            lastDrawn = nil
            isComplete = false
        }
        let completes = total > 0 && completed >= total
        guard !(completes && isComplete) else { return }
        isComplete = completes
        let interval: Duration = style == .redrawn ? .milliseconds(100) : .seconds(1)
        if let lastDrawn, now - lastDrawn < interval, !completes { return }
        lastDrawn = now
        let throughput = Throughput(
            completed: completed,
            total: total,
            elapsed: now - phaseStart,
            whole: fraction.map { ($0, now - start) }
        )
        if style == .json {
            ProgressRecord(kind: "progress", phase: phase, throughput).write()
        } else {
            draw(phase.padding(toLength: max(10, phase.count), withPad: " ", startingAt: 0) + throughput.text)
        }
    }

    /// Ends the redrawn line, so that other output begins on a new line.
    func finish() {
        endLine()
    }

    private func draw(_ text: String) {
        switch style {
        case .none, .json: break
        case .lines: StandardError.write(text + "\n")
        case .redrawn:
            // Blanks overwrite the rest of a longer line.
            let padding = String(repeating: " ", count: max(0, drawnWidth - text.count))
            StandardError.write("\r" + text + padding)
            drawnWidth = text.count
        }
    }

    private func endLine() {
        if drawnWidth > 0 { StandardError.write("\n") }
        drawnWidth = 0
    }
}
