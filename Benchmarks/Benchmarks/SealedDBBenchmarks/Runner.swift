import Benchmark
@main
struct Runner: BenchmarkRunnerHooks {
    static func registerBenchmarks() {}
}
