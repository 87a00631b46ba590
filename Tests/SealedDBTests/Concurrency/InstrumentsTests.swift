// swift test --traits SQLCipher,Metrics --filter InstrumentsTests
#if Metrics
    import CoreMetrics
    import Foundation
    import MetricsTestKit
    @testable import SealedDB
    import Testing

    /// In a process that has this metrics system alone: one can be set up once.
    @Suite(.hangLimit)
    struct InstrumentsTests {
        @Test func reportsWhatHappens() async throws {
            struct Failure: Error {}
            let metrics = TestMetrics()
            MetricsSystem.bootstrap(metrics)
            let directory = try TemporaryDirectory()
            let pool = DatabasePool(
                path: directory.file("db"),
                configuration: Configuration(key: isEncrypting ? try .testing(1) : nil)
            )
            let dimensions = [("store", "db")]
            try await pool.write { db in try db.executeUpdate("CREATE TABLE t (n)", values: nil) }
            _ = try await pool.read { db in try db.integers("SELECT 1") }
            #expect(try metrics.expectTimer("sealeddb_wait", dimensions).values.isEmpty)

            // While the place is taken, one more waits. (A writer is resumed before its place is free: another write
            // of its own may wait for a moment, or not.)
            let lane = pool.sharedWriter.lane
            while lane.busyCount > 0 { await Task.yield() }
            let place = try lane.enter()
            let failing = Task { try await pool.write { _ in throw Failure() } }
            while lane.waitingCount == 0 { await Task.yield() }
            lane.leave(place)
            await #expect(throws: Failure.self) { try await failing.value }
            #expect(try metrics.expectTimer("sealeddb_wait", dimensions).values.count == 1)

            #expect(try metrics.expectCounter("sealeddb_writes", dimensions).totalValue == 2)
            #expect(try metrics.expectCounter("sealeddb_reads", dimensions).totalValue == 1)
            #expect(try metrics.expectCounter("sealeddb_failures", dimensions).totalValue == 1)
            #expect(try metrics.expectRecorder("sealeddb_commit_blocks", dimensions).values == [1])
            #expect(try metrics.expectTimer("sealeddb_commit", dimensions).values.count == 1)
            if isEncrypting { try reportsWhatIsShipped(metrics, directory) }
        }

        private func reportsWhatIsShipped(_ metrics: TestMetrics, _ directory: TemporaryDirectory) throws {
            var replication = Replication(to: directory.file("repository"))
            replication.interval = .seconds(3600)
            let configuration = Configuration(key: try .testing(1), replication: replication)
            let queue = try DatabaseQueue(path: directory.file("shipped"), configuration: configuration)
            try queue.write { db in try db.executeUpdate("CREATE TABLE t (n)", values: nil) }
            try queue.replicate()
            #expect(rename(directory.file("repository"), directory.file("away")) == 0)
            try queue.write { db in try db.executeUpdate("INSERT INTO t VALUES (1)", values: nil) }
            #expect(throws: DatabaseError.self) { try queue.replicate() }
            // What an attempt reports, it reports after it was told.
            while queue.replicationStatus?.failureCount == 0 { sched_yield() }
            #expect(rename(directory.file("away"), directory.file("repository")) == 0)
            queue.close()
            let dimensions = [("store", "shipped")]
            #expect(try metrics.expectCounter("sealeddb_replication_failures", dimensions).totalValue == 1)
            let unshipped = try metrics.expectGauge("sealeddb_replication_unshipped", dimensions)
            #expect(unshipped.values.contains { $0 > 0 } && unshipped.values.last == 0)
            #expect(try metrics.expectGauge("sealeddb_replication_lag", dimensions).values.allSatisfy { $0 >= 0 })
            let last = try metrics.expectGauge("sealeddb_replication_last_success", dimensions).values.last
            #expect(abs((last ?? 0) - Date().timeIntervalSince1970) < 1000)
        }
    }
#endif
