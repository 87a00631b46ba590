import Foundation
internal import SQLiteEngine

/// Waits for a lock that another connection or process holds.
///
/// SQLite keeps no line of those who wait: who asks first after the lock is free gets it. So all ask at random moments,
/// and the longer one has waited the more often, so that it does not lose to newcomers for ever.
/// https://www.sqlite.org/c3ref/busy_handler.html
final class BusyWait {
    /// Seconds to wait before the call fails as busy.
    let timeout: Double
    /// Seconds that the wait took which was given up, until its error is made.
    private var givenUp: Double?
    private var began: UInt64 = 0
    private let supervision: Supervision?

    init(timeout: Double, supervision: Supervision?) {
        self.timeout = timeout
        self.supervision = supervision
    }

    /// The connection must keep this object as long as it is open.
    func install(on handle: OpaquePointer) {
        // It only remembers the function, and cannot fail.
        sqlite3_busy_handler(
            handle,
            { Unmanaged<BusyWait>.fromOpaque($0!).takeUnretainedValue().wait(attempt: $1) ? 1 : 0 },
            Unmanaged.passUnretained(self).toOpaque()
        )
    }

    private func wait(attempt: Int32) -> Bool {
        let now = DispatchTime.now().uptimeNanoseconds
        if attempt == 0 { began = now }
        let waited = Double(now - began) / 1e9
        guard waited < timeout, supervision?.isStopped != true else {
            givenUp = waited
            return false
        }
        givenUp = nil
        let delay = BusyWait.delay(attempt: attempt, waited: waited, timeout: timeout) * Double.random(in: 0.5...1.5)
        // A signal may end the pause early; then the lock is asked for sooner.
        usleep(UInt32(min(delay, timeout - waited) * 1e6))
        return true
    }

    var hasGivenUp: Bool { givenUp != nil }

    /// Seconds that were waited for the lock that SQLite has now failed to get; `nil` if it did not wait.
    func takeWait() -> Double? {
        defer { givenUp = nil }
        return givenUp
    }

    /// Mean seconds before the next attempt: short at first, because most transactions are; then 10 ms, falling to 1 ms
    /// as the deadline nears.
    static func delay(attempt: Int32, waited: Double, timeout: Double) -> Double {
        switch attempt {
        case ..<3: 0.0001 * Double(1 << attempt)
        case ..<6: 0.001
        default: 0.001 + 0.009 * max(0, 1 - waited / timeout)
        }
    }
}

extension Connection {
    /// SQLite's message with how long was waited, and for whom.
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
