import ArgumentParser
import Foundation
import SealedDB

enum ProgressMode: String, ExpressibleByArgument, CaseIterable {
    case auto, always, never
}

struct ProgressOptions: ParsableArguments {
    @Option(help: "Progress on standard error: auto (on a terminal), always or never.")
    var progress = ProgressMode.auto

    func reporter() -> ProgressReporter {
        ProgressReporter(mode: progress)
    }

    /// Runs long work that reports pages, and stops it between two of them when a signal comes.
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

/// One redrawn line on a terminal, whole lines elsewhere. No colours and no escape sequences, so that `NO_COLOR`
/// holds anyway; a dumb terminal, which cannot go back, gets whole lines and only on request.
final class ProgressReporter {
    private enum Style { case none, redrawn, lines }

    private let style: Style
    private let clock = ContinuousClock()
    private var phase = ""
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
            }
        phaseStart = clock.now
    }

    func update(_ progress: KeyRotation.Progress) {
        let size = Int64(progress.pageSize)
        update(
            phase: progress.phase.rawValue,
            completed: progress.completedPages * size,
            total: progress.totalPages * size
        )
    }

    /// - Parameter total: in bytes; 0 when it is not known.
    func update(phase: String, completed: Int64, total: Int64) {
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
        draw(line(completed: completed, total: total, elapsed: now - phaseStart))
    }

    /// Ends the redrawn line, so that what follows begins on one of its own.
    func finish() {
        endLine()
    }

    private func line(completed: Int64, total: Int64, elapsed: Duration) -> String {
        var text = phase.padding(toLength: max(8, phase.count), withPad: " ", startingAt: 0)
        if total > 0 {
            let percent = String(min(100, completed * 100 / total))
            text += String(repeating: " ", count: 3 - percent.count) + percent + "%  "
        }
        text += ByteText.size(completed)
        if total > 0 { text += " of \(ByteText.size(total))" }
        let seconds = elapsed / .seconds(1)
        if seconds >= 0.1 { text += "  \(ByteText.size(Int64(Double(completed) / seconds)))/s" }
        return text
    }

    private func draw(_ text: String) {
        switch style {
        case .none: break
        case .lines: StandardError.write(text + "\n")
        case .redrawn:
            // Blanks wipe what a longer line left.
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

enum ByteText {
    /// "512 B", "1.5 MiB".
    static func size(_ bytes: Int64) -> String {
        guard bytes >= 1024 else { return "\(bytes) B" }
        var value = Double(bytes)
        var unit = "B"
        for next in ["KiB", "MiB", "GiB", "TiB"] where value >= 1024 {
            value /= 1024
            unit = next
        }
        return String(format: "%.1f ", value) + unit
    }
}
