import Foundation
import SealedDB

/// Decides when the work has to stop: when a signal comes, or at the deadline.
struct BatchControl: Sendable {
    var deadline: Date?

    /// The exit code if the work has to stop; `nil` if it may go on.
    var stopStatus: Int32? {
        if let status = SignalWatch.exitStatus { return status }
        if let deadline, deadline <= Date() { return ExitStatus.busy.rawValue }
        return nil
    }

    /// Whether work of this duration (in seconds) would end before the deadline.
    func hasTime(for seconds: Double) -> Bool {
        deadline.map { Date().addingTimeInterval(seconds) <= $0 } ?? true
    }

    /// Throws if the work has to stop. Call it where the store is whole.
    func check() throws(DatabaseError) {
        guard stopStatus != nil else { return }
        throw DatabaseError(
            extendedCode: SQLITE_INTERRUPT,
            reason: .interrupted,
            message: "Interrupted. The store is unchanged."
        )
    }
}

/// The deadline that `--deadline` sets: a time of day or a duration.
struct Deadline {
    let date: Date

    /// - Parameter text: `HH:MM` for the next such time in the local time zone, or a number of seconds, minutes or
    ///   hours: `90s`, `45m`, `2h`.
    init?(_ text: String, now: Date = Date(), calendar: Calendar = .current) {
        let parts = text.split(separator: ":", omittingEmptySubsequences: false)
        if parts.count == 2, parts.allSatisfy({ $0.count == 2 && $0.allSatisfy(\.isASCIIDigit) }) {
            let time = DateComponents(hour: Int(parts[0]), minute: Int(parts[1]), second: 0)
            guard time.hour! < 24, time.minute! < 60,
                let date = calendar.nextDate(after: now, matching: time, matchingPolicy: .nextTime)
            else { return nil }
            self.date = date
            return
        }
        let units: [Character: Double] = ["s": 1, "m": 60, "h": 3600]
        guard let unit = text.last.flatMap({ units[$0] }), let count = Double(text.dropLast()), count > 0,
            count * unit <= 366 * 86400
        else { return nil }
        date = now.addingTimeInterval(count * unit)
    }
}

extension Character {
    fileprivate var isASCIIDigit: Bool { isASCII && isNumber }
}
