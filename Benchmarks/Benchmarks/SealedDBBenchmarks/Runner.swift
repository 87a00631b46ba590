import Benchmark
import Cases
import Foundation
import Wire

// The cases for `swift package benchmark`: wall clock, processor time and resident memory of SealedDB alone, with
// baselines to hold a change against. Ratios against other subjects and engines are the work of Benchmarks/compare.
//
// The runner is written out here, where BenchmarkPlugin would generate it, because the plugin's tools would be built
// with every `swift build` of this package.

private let directory = FileManager.default.temporaryDirectory.appending(path: "SealedDBBenchmarks-\(getpid())").path

@main
struct Runner: BenchmarkRunnerHooks {
    static func registerBenchmarks() {
        Benchmark.defaultConfiguration = .init(
            metrics: [.wallClock, .cpuTotal, .peakMemoryResident, allocations],
            warmupIterations: 1,
            maxDuration: .milliseconds(500)
        )
        Benchmark.startupHook = {
            try FileManager.default.createDirectory(atPath: directory, withIntermediateDirectories: true)
        }
        Benchmark.shutdownHook = { try FileManager.default.removeItem(atPath: directory) }
        let suite = Suite(directory: directory, isQuick: true, packageFile: nil)
        for info in suite.cases where info.subjects.contains(.sealed) {
            Benchmark(info.id) { benchmark, prepared in
                try prepared.beforePass(.sealed)
                benchmark.startMeasurement()
                let count = try prepared.pass(.sealed)
                benchmark.stopMeasurement()
                benchmark.measurement(allocations, count)
            } setup: {
                try suite.begin(info.id, [.sealed], sampleNanoseconds: 0)
            }
        }
    }

    /// Of a pass. The package's own count needs an interposer; without it, it is 0.
    private static let allocations = BenchmarkMetric.custom("Allocations")
}
