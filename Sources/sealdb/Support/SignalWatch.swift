import Foundation
import Synchronization

/// Notes SIGINT, SIGTERM and SIGHUP, so that long work can stop at a safe point and clean up, and short work can end
/// with the exit code of what it has done. A second signal ends the process at once.
enum SignalWatch {
    private static let received = Atomic<Int32>(0)
    /// What is said at a second signal. Computed, because a handler must neither initialise anything nor allocate.
    private static var farewell: StaticString {
        """
        sealdb: Ended at once by a second signal. A file that was being made may be left beside its place, under a hidden \
        name with "sealdb-" in it; that of decrypt has plaintext. The same command removes it when it runs again.

        """
    }

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
                guard SignalWatch.received.exchange(number, ordering: .relaxed) != 0 else { return }
                // The process ends in any case.
                _ = write(2, SignalWatch.farewell.utf8Start, SignalWatch.farewell.utf8CodeUnitCount)
                _exit(128 + number)
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
