import CSealedDBSystem
import Foundation
import SealedDB
import Synchronization

/// Shows the progress of many stores: a redrawn line for each store that is being worked on and one for the total, or
/// separate lines of text or JSON. Messages and results are written through it, so that they do not land in the middle
/// of a line.
final class BatchProgress: Sendable {
    private enum Style { case none, redrawn, lines, json }

    private struct Running {
        let item: StoreItem
        let size: Int64
        var phase = "open"
        let start: ContinuousClock.Instant
        var phaseStart: ContinuousClock.Instant
        /// Bytes of the phase.
        var completed: Int64 = 0
        /// The share of all phases that is done.
        var fraction = 0.0
        var isComplete = false
        var lastShown: ContinuousClock.Instant?

        init(_ item: StoreItem) {
            self.item = item
            size = item.size
            start = .now
            phaseStart = start
        }

        /// Bytes of the store's size that count as done.
        var completedOfAllPhases: Int64 { Int64(Double(size) * fraction) }

        func throughput(_ total: Int64, _ now: ContinuousClock.Instant) -> Throughput {
            Throughput(
                completed: completed,
                total: total,
                elapsed: now - phaseStart,
                whole: (fraction, now - start)
            )
        }
    }

    private struct State {
        var running: [Int: Running] = [:]
        var completedStores = 0
        var completedBytes: Int64 = 0
        /// Bytes of the stores that needed no work or failed.
        var skippedBytes: Int64 = 0
        var lastShown: ContinuousClock.Instant?
        var drawnLines = 0
    }

    private let style: Style
    private let totalStores: Int
    private let totalBytes: Int64
    private let start = ContinuousClock.now
    private let state = Mutex(State())

    init(mode: ProgressMode, stores: [StoreItem]) {
        let isTerminal = StandardError.isTerminal && ProcessInfo.processInfo.environment["TERM"] != "dumb"
        style =
            switch mode {
            case .never: .none
            case .json: .json
            case .auto: isTerminal ? .redrawn : .none
            case .always: isTerminal ? .redrawn : .lines
            }
        totalStores = stores.count
        totalBytes = stores.reduce(0) { $0 + $1.size }
    }

    // MARK: Events

    func begin(_ item: StoreItem, job: Int) {
        state.withLock { $0.running[job] = Running(item) }
    }

    func update(_ progress: KeyRotation.Progress, job: Int) {
        state.withLock { state in
            guard var store = state.running[job] else { return }
            let now = ContinuousClock.now
            let isNewPhase = store.phase != progress.phase.rawValue
            if isNewPhase {
                store.phase = progress.phase.rawValue
                store.phaseStart = now
                store.isComplete = false
            }
            store.completed = progress.completedPages * Int64(progress.pageSize)
            store.fraction = progress.fractionCompleted
            let throughput = store.throughput(progress.totalPages * Int64(progress.pageSize), now)
            // The beginning and the end of every phase are always shown.
            let completes = progress.completedPages >= progress.totalPages && !store.isComplete
            if completes { store.isComplete = true }
            let isDue = isNewPhase || completes || store.lastShown.map { now - $0 >= .seconds(1) } ?? true
            if isDue { store.lastShown = now }
            state.running[job] = store
            switch style {
            case .none: break
            case .redrawn: redraw(&state, now)
            case .lines:
                guard isDue else { return }
                StandardError.write(line(store.item.name, store.phase, throughput) + "\n")
            case .json:
                guard isDue else { return }
                ProgressRecord(kind: "progress", path: store.item.identity, phase: store.phase, throughput).write()
                writeTotal(state, now)
            }
        }
    }

    func end(_ outcome: StoreOutcome, job: Int) {
        state.withLock { state in
            guard let store = state.running.removeValue(forKey: job) else { return }
            state.completedStores += 1
            if outcome == .done { state.completedBytes += store.size } else { state.skippedBytes += store.size }
            if style == .json { writeTotal(state, .now) }
        }
    }

    /// Erases the progress, so that `body` can write something else.
    func interlude<T>(_ body: () throws -> T) rethrows -> T {
        try state.withLock { state in
            erase(&state)
            return try body()
        }
    }

    /// Erases the redrawn lines.
    func finish() {
        interlude {}
    }

    // MARK: Form

    private func total(_ state: State, _ now: ContinuousClock.Instant) -> Throughput {
        let running = state.running.values.reduce(0) { $0 + $1.completedOfAllPhases }
        return Throughput(
            completed: state.completedBytes + running,
            total: totalBytes - state.skippedBytes,
            elapsed: now - start
        )
    }

    private func writeTotal(_ state: State, _ now: ContinuousClock.Instant) {
        var record = ProgressRecord(kind: "total", total(state, now))
        record.completedStores = state.completedStores
        record.totalStores = totalStores
        record.write()
    }

    private func line(_ name: String, _ phase: String, _ throughput: Throughput) -> String {
        let name = TerminalText.escaped(name)
        let width = 24
        let shown = name.count > width ? "…" + name.suffix(width - 1) : Substring(name)
        return shown.padding(toLength: width, withPad: " ", startingAt: 0) + "  "
            + phase.padding(toLength: 10, withPad: " ", startingAt: 0) + throughput.text
    }

    private func redraw(_ state: inout State, _ now: ContinuousClock.Instant) {
        if let last = state.lastShown, now - last < .milliseconds(100) { return }
        state.lastShown = now
        var lines = state.running.sorted { $0.key < $1.key }.map { _, store in
            line(store.item.name, store.phase, store.throughput(store.size, now))
        }
        lines.append(line("\(state.completedStores) of \(totalStores.counted("store"))", "total", total(state, now)))
        // A line that wraps could not be erased. Some terminals do not report their width; then 79 columns are used.
        let width = Int(sealeddb_terminal_columns(STDERR_FILENO))
        let columns = width > 1 ? width - 1 : 79
        erase(&state)
        StandardError.write(lines.map { $0.prefix(columns) + "\n" }.joined())
        state.drawnLines = lines.count
    }

    private func erase(_ state: inout State) {
        guard state.drawnLines > 0 else { return }
        // Move up to the first of these lines, and erase everything from there on.
        StandardError.write("\u{1b}[\(state.drawnLines)A\r\u{1b}[J")
        state.drawnLines = 0
    }
}
