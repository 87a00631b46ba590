import Foundation
internal import SQLiteEngine

/// Waits for a lock that another connection or process holds.
///
/// SQLite has no queue for locks: the first to ask after a lock is released gets it. So each waiter asks at random
/// times, and more often the longer it has waited, so that newcomers do not always win.
/// https://www.sqlite.org/c3ref/busy_handler.html
final class BusyWait {
    /// How many seconds to wait before the call fails as busy.
    let timeout: Double
    /// How many seconds the last failed wait took, until its error is made.
    private var givenUp: Double?
    /// When the present call arrived, in nanoseconds of the monotonic clock; `nil` if its waiting begins now. The call
    /// may have waited in the writer's line while earlier calls found the lock taken. That time counts as waiting for
    /// the lock.
    var callCame: UInt64?
    private var began: UInt64 = 0
    /// Since when the lock is known to be taken, and when it was last seen taken, in nanoseconds of the monotonic
    /// clock.
    private var taken: (since: UInt64, seen: UInt64)?
    private let supervision: Supervision?

    init(timeout: Double, supervision: Supervision?) {
        self.timeout = timeout
        self.supervision = supervision
    }

    /// For how many nanoseconds a lock that was seen taken counts as still taken.
    private static let memory: UInt64 = 100_000_000

    /// Installs the handler. The connection must retain this object as long as it is open.
    func install(on handle: OpaquePointer) {
        // This only stores the function, and cannot fail.
        sqlite3_busy_handler(
            handle,
            { Unmanaged<BusyWait>.fromOpaque($0!).takeUnretainedValue().wait(attempt: $1) ? 1 : 0 },
            Unmanaged.passUnretained(self).toOpaque()
        )
    }

    private func wait(attempt: Int32) -> Bool {
        let now = DispatchTime.now().uptimeNanoseconds
        if attempt == 0 {
            // If nobody has tried the lock for a while, it may have been free in between.
            let since = taken.flatMap { now - $0.seen < BusyWait.memory ? $0.since : nil } ?? now
            began = callCame.map { max($0, since) } ?? now
            taken = (since, now)
        }
        taken?.seen = now
        let waited = Double(now - began) / 1e9
        guard waited < timeout, supervision?.isStopped != true else {
            givenUp = waited
            if let supervision { supervision.writeLine?.letGo(supervision) }
            return false
        }
        givenUp = nil
        let delay = BusyWait.delay(attempt: attempt, waited: waited, timeout: timeout) * Double.random(in: 0.5...1.5)
        if let supervision, let line = supervision.writeLine {
            line.wait(supervision, seconds: min(delay, timeout - waited))
        } else {
            // A signal may end the pause early; the next attempt then comes sooner.
            usleep(UInt32(min(delay, timeout - waited) * 1e6))
        }
        return true
    }

    var hasGivenUp: Bool { givenUp != nil }

    /// Returns how many seconds were waited for the lock that SQLite has just failed to get; `nil` if SQLite did not
    /// wait.
    func takeWait() -> Double? {
        defer { givenUp = nil }
        return givenUp
    }
    /// Records that this connection got the lock, so that an earlier wait no longer counts.
    func lockWasTaken() { taken = nil }

    /// Returns the mean number of seconds before the next attempt. It is short at first, because most transactions are;
    /// then 10 ms, falling to 1 ms towards the deadline.
    static func delay(attempt: Int32, waited: Double, timeout: Double) -> Double {
        switch attempt {
        case ..<3: 0.0001 * Double(1 << attempt)
        case ..<6: 0.001
        default: 0.001 + 0.009 * max(0, 1 - waited / timeout)
        }
    }
}

extension Connection {
    /// Returns SQLite's message, with how long the wait took and who holds the lock.
    func busyMessage(_ message: String) -> String {
        var parts = [message]
        if let busyWait, busyWait.timeout > 0 {
            if let waited = busyWait.takeWait() {
                parts.append("waited \((waited * 1000).rounded() / 1000) s of \(busyWait.timeout) s")
            } else {
                parts.append(
                    """
                    SQLite did not wait, because who has the lock may wait for this connection; end its transaction and \
                    its result sets, and begin anew
                    """
                )
            }
        }
        let path = handle.flatMap { sqlite3_db_filename($0, "main") }.map { String(cString: $0) } ?? ""
        let holders = path.isEmpty ? [] : LockHolders.of(path)
        if !holders.isEmpty { parts.append("locks are held by \(holders.joined(separator: ", "))") }
        return parts.joined(separator: "; ")
    }
}
