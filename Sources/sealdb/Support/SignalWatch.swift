import Foundation
import Synchronization

/// Notes SIGINT, SIGTERM and SIGHUP, so that long work can stop at a safe point and clean up, and short work can end
/// with the exit code of what it has done. A second signal ends the process at once.
enum SignalWatch {
    private static let received = Atomic<Int32>(0)

    static func start() {
        // Initialised here, because a signal handler must not be the first to access it.
        received.store(0, ordering: .relaxed)
        for number in [SIGINT, SIGTERM, SIGHUP] {
            var former = sigaction()
            // This can fail only for an invalid signal number, and so can `signal` below.
            sigaction(number, nil, &former)
            // SIGHUP is ignored if nohup started the process, and must stay so.
            if number == SIGHUP, isIgnored(former) { continue }
            // As above.
            signal(number) { number in
                if SignalWatch.received.exchange(number, ordering: .relaxed) != 0 { _exit(128 + number) }
            }
        }
    }

    static var wasInterrupted: Bool { received.load(ordering: .relaxed) != 0 }

    /// The exit code for the signal that came: 129, 130 or 143; `nil` if none came.
    static var exitStatus: Int32? {
        let number = received.load(ordering: .relaxed)
        return number == 0 ? nil : 128 + number
    }

    private static func isIgnored(_ action: sigaction) -> Bool {
        unsafeBitCast(action.__sigaction_handler.sa_handler, to: Int.self) == unsafeBitCast(SIG_IGN, to: Int.self)
    }
}
