#if Metrics
    import Metrics
#endif

/// What a queue or pool reports to swift-metrics. Nothing is reported unless the package trait `Metrics` is on.
///
/// | label | kind | what |
/// |---|---|---|
/// | `sealeddb_reads` | counter | blocks of `read` |
/// | `sealeddb_writes` | counter | blocks of `write` |
/// | `sealeddb_failures` | counter | blocks of `read` and `write` that failed, or whose commit failed |
/// | `sealeddb_wait` | timer | how long a call waited for its connection, if it did not get one at once |
/// | `sealeddb_commit` | timer | how long a COMMIT took |
/// | `sealeddb_commit_blocks` | recorder | how many blocks of `write` shared a COMMIT |
/// | `sealeddb_outruns` | counter | blocks of `write` that joined others and took longer than they may delay them |
/// | `sealeddb_log` | recorder | bytes of a pool's write-ahead log at its checkpoints |
/// | `sealeddb_replication_lag` | gauge | age in seconds of what the repository has, after each attempt to ship |
/// | `sealeddb_replication_unshipped` | gauge | bytes of the log that are not in the repository |
/// | `sealeddb_replication_last_success` | gauge | when it was last shipped, in seconds since 1970 |
/// | `sealeddb_replication_failures` | counter | attempts to ship that failed |
///
/// All of them have the dimension `store`, which is the name of the file. A block may delay those before it in its
/// transaction for ``Configuration/WriteBatching/maximumDuration``.
struct Instruments: Sendable {
    #if Metrics
        static let isOn = true
        private let reads: Counter
        private let writes: Counter
        private let failures: Counter
        private let wait: Timer
        private let commit: Timer
        private let commitBlocks: Recorder
        private let outruns: Counter
        private let log: Recorder
        private let replication: Shipping?

        private struct Shipping {
            let lag: Gauge
            let unshipped: Gauge
            let lastSuccess: Gauge
            let failures: Counter
        }

        /// - Parameter replicates: whether the store is shipped.
        init(path: String?, replicates: Bool = false) {
            let dimensions = [("store", FileSystem.name(of: path ?? ""))]
            reads = Counter(label: "sealeddb_reads", dimensions: dimensions)
            writes = Counter(label: "sealeddb_writes", dimensions: dimensions)
            failures = Counter(label: "sealeddb_failures", dimensions: dimensions)
            wait = Timer(label: "sealeddb_wait", dimensions: dimensions)
            commit = Timer(label: "sealeddb_commit", dimensions: dimensions)
            commitBlocks = Recorder(label: "sealeddb_commit_blocks", dimensions: dimensions)
            outruns = Counter(label: "sealeddb_outruns", dimensions: dimensions)
            log = Recorder(label: "sealeddb_log", dimensions: dimensions)
            guard replicates else {
                replication = nil
                return
            }
            replication = Shipping(
                lag: Gauge(label: "sealeddb_replication_lag", dimensions: dimensions),
                unshipped: Gauge(label: "sealeddb_replication_unshipped", dimensions: dimensions),
                lastSuccess: Gauge(label: "sealeddb_replication_last_success", dimensions: dimensions),
                failures: Counter(label: "sealeddb_replication_failures", dimensions: dimensions)
            )
        }

        func read(failed: Bool) {
            reads.increment()
            if failed { failures.increment() }
        }

        func write(failed: Bool) {
            writes.increment()
            if failed { failures.increment() }
        }

        func waited(nanoseconds: UInt64) { wait.recordNanoseconds(nanoseconds) }

        func committed(blocks: Int, nanoseconds: UInt64) {
            commit.recordNanoseconds(nanoseconds)
            commitBlocks.record(blocks)
        }

        func outran() { outruns.increment() }

        func logged(bytes: Int) { log.record(bytes) }

        func replicated(_ status: ReplicationStatus, failed: Bool) {
            guard let replication else { return }
            if let lag = status.lag { replication.lag.record(lag.seconds) }
            replication.unshipped.record(status.unshippedBytes)
            if let time = status.lastSuccess { replication.lastSuccess.record(time.timeIntervalSince1970) }
            if failed { replication.failures.increment() }
        }
    #else
        static let isOn = false

        init(path: String?, replicates: Bool = false) {}
        func read(failed: Bool) {}
        func write(failed: Bool) {}
        func waited(nanoseconds: UInt64) {}
        func committed(blocks: Int, nanoseconds: UInt64) {}
        func outran() {}
        func logged(bytes: Int) {}
        func replicated(_ status: ReplicationStatus, failed: Bool) {}
    #endif
}
