// swift test --traits SQLCipher,Metrics --filter InstrumentsTests
#if Metrics
    import CoreMetrics
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
        }
    }
#endif
