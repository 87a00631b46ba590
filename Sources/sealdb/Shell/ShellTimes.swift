import Foundation

/// How long a statement takes, in the words of the stock shell.
struct ShellTimes {
    private let start = ContinuousClock.now
    private let usage = ShellTimes.usage()

    func text() -> String {
        let real = (ContinuousClock.now - start) / .seconds(1)
        let now = ShellTimes.usage()
        return String(
            format: "Run Time: real %.3f user %.6f sys %.6f",
            real,
            ShellTimes.seconds(now.ru_utime) - ShellTimes.seconds(usage.ru_utime),
            ShellTimes.seconds(now.ru_stime) - ShellTimes.seconds(usage.ru_stime)
        )
    }

    private static func usage() -> rusage {
        var usage = rusage()
        // This fails only for arguments that are not valid.
        _ = getrusage(__rusage_who_t(RUSAGE_SELF.rawValue), &usage)
        return usage
    }

    private static func seconds(_ time: timeval) -> Double { Double(time.tv_sec) + Double(time.tv_usec) / 1e6 }
}
