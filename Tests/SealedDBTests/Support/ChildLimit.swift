import Foundation
import Testing

/// Kills a child process that does not end, so that whoever waits for it goes on, and records that as a failure.
struct ChildLimit {
    private let name: String
    private let minutes: Int
    private let killing: DispatchWorkItem
    private let hasKilled = DispatchSemaphore(value: 0)

    init(of process: pid_t, named name: String, minutes: Int = 10) {
        self.name = name
        self.minutes = minutes
        killing = DispatchWorkItem { [hasKilled] in
            hasKilled.signal()
            kill(process, SIGKILL)
        }
        DispatchQueue.global(qos: .userInteractive).asyncAfter(
            deadline: .now() + .seconds(minutes * 60),
            execute: killing
        )
    }

    /// When the process has ended, before its number is free for another one where that can be told.
    func end(sourceLocation: SourceLocation = #_sourceLocation) {
        killing.cancel()
        guard hasKilled.wait(timeout: .now()) == .success else { return }
        Issue.record("\(name) hung: it was killed after \(minutes) minutes.", sourceLocation: sourceLocation)
    }
}

extension Process {
    /// As `waitUntilExit()`, for no longer than some minutes.
    func waitUntilExit(minutes: Int, sourceLocation: SourceLocation = #_sourceLocation) {
        let name = ([executableURL?.lastPathComponent ?? "?"] + (arguments ?? [])).joined(separator: " ")
        let limit = ChildLimit(of: processIdentifier, named: name, minutes: minutes)
        waitUntilExit()
        limit.end(sourceLocation: sourceLocation)
    }
}
