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
    /// Whether the last wait ended because its time was up, and not because it got the lock.
    private var lastGaveUp = true
    private var taken = TakenTimes()
    /// Who had the lock when that was last asked, and when that was.
    private var lastHolders: (names: [String], asked: UInt64)?
    private let supervision: Supervision?

    init(timeout: Double, supervision: Supervision?) {
        self.timeout = timeout
        self.supervision = supervision
    }

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
            began = callCame ?? now
            // Somebody of this connection has had the lock since.
            if !lastGaveUp { taken = TakenTimes() }
            lastGaveUp = false
        }
        taken.note(now, waitsOn: attempt > 0)
        let waited = Double(taken.duration(since: began)) / 1e9
        guard waited < timeout, supervision?.isStopped != true else {
            (givenUp, lastGaveUp) = (waited, true)
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
    func lockWasTaken() {
        taken = TakenTimes()
        lastHolders = nil
    }

    /// Returns who holds the lock. To find out can take longer than a wait, and of many calls that fail in a row each
    /// keeps the next waiting. So they share an answer for a second.
    func holders(of path: String) -> [String] {
        let now = DispatchTime.now().uptimeNanoseconds
        if let lastHolders, now - lastHolders.asked < 1_000_000_000 { return lastHolders.names }
        let names = LockHolders.of(path)
        lastHolders = (names, DispatchTime.now().uptimeNanoseconds)
        return names
    }

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

/// The times in which a lock is known to have been taken, in nanoseconds of the monotonic clock. A value without a clock.
struct TakenTimes {
    private var spans: [(from: UInt64, to: UInt64)] = []

    /// For how many nanoseconds a lock that was seen taken counts as still taken. If nobody tries it for longer, it may
    /// have been free in between.
    static let memory: UInt64 = 100_000_000
    /// Without the oldest spans, a call only waits longer.
    private static let maximumCount = 64

    /// Notes that the lock is taken now.
    /// - Parameter waitsOn: whether this is the same wait as the last time, however long ago that was.
    mutating func note(_ now: UInt64, waitsOn: Bool) {
        if let last = spans.last, waitsOn || now - last.to < TakenTimes.memory {
            spans[spans.count - 1].to = now
        } else {
            if spans.count == TakenTimes.maximumCount { spans.removeFirst() }
            spans.append((now, now))
        }
    }

    func duration(since came: UInt64) -> UInt64 {
        spans.reduce(0) { $1.to > came ? $0 + $1.to - max($1.from, came) : $0 }
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
        let holders = path.isEmpty ? [] : busyWait?.holders(of: path) ?? LockHolders.of(path)
        if !holders.isEmpty { parts.append("locks are held by \(holders.joined(separator: ", "))") }
        return parts.joined(separator: "; ")
    }
}
