import Foundation
import Synchronization

/// Notes SIGINT, SIGTERM and SIGHUP, so that long work stops at a safe point and cleans up, and short work ends with the exit
/// code of what it has done. A second one ends at once.
enum SignalWatch {
    private static let received = Atomic<Int32>(0)

    static func start() {
        // Initialised here, because a handler must not be the first to touch it.
        received.store(0, ordering: .relaxed)
        for number in [SIGINT, SIGTERM, SIGHUP] {
            var former = sigaction()
            // It fails for numbers alone that are no signal's, and so does `signal`.
            sigaction(number, nil, &former)
            // nohup has asked for that.
            if number == SIGHUP, isIgnored(former) { continue }
            // As above.
            signal(number) { number in
                if SignalWatch.received.exchange(number, ordering: .relaxed) != 0 { _exit(128 + number) }
            }
        }
    }

    static var wasInterrupted: Bool { received.load(ordering: .relaxed) != 0 }

    /// 129, 130 or 143; `nil` if no signal came.
    static var exitStatus: Int32? {
        let number = received.load(ordering: .relaxed)
        return number == 0 ? nil : 128 + number
    }

    private static func isIgnored(_ action: sigaction) -> Bool {
        unsafeBitCast(action.__sigaction_handler.sa_handler, to: Int.self) == unsafeBitCast(SIG_IGN, to: Int.self)
    }
}
