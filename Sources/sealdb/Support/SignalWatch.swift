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

    /// From now on a signal ends the process at once, as it does by default; also one that came before.
    static func stop() {
        for number in [SIGINT, SIGTERM, SIGHUP] {
            var former = sigaction()
            // This can fail only for an invalid signal number, and so can `signal` below.
            sigaction(number, nil, &former)
            if isIgnored(former) { continue }
            // As above.
            signal(number, SIG_DFL)
        }
        let number = received.load(ordering: .relaxed)
        // The signal has its default effect now. If it is blocked, the caller goes on.
        if number != 0 { raise(number) }
    }

    /// Descriptors that the handler of the shell writes to.
    private static let firstWake = Atomic<Int32>(-1)
    private static let secondWake = Atomic<Int32>(-1)

    /// Notes SIGINT, as often as it comes, and writes a byte to each of the descriptors. Other signals end the process.
    static func startNotingInterrupts(writingTo first: Int32, and second: Int32) {
        // Initialised here, for the same reason as above.
        received.store(0, ordering: .relaxed)
        firstWake.store(first, ordering: .relaxed)
        secondWake.store(second, ordering: .relaxed)
        var action = sigaction()
        action.__sigaction_handler.sa_handler = { number in
            let error = errno
            SignalWatch.received.store(number, ordering: .relaxed)
            var byte: UInt8 = 0
            // A pipe that is full wakes its reader as well.
            _ = write(SignalWatch.firstWake.load(ordering: .relaxed), &byte, 1)
            _ = write(SignalWatch.secondWake.load(ordering: .relaxed), &byte, 1)
            errno = error
        }
        // Without SA_RESTART: who waits for a pipe to be opened is woken. This fails only for an invalid signal number.
        sigaction(SIGINT, &action, nil)
    }

    static func forgetInterrupt() { received.store(0, ordering: .relaxed) }

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
