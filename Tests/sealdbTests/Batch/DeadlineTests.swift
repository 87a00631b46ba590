import Foundation
import Testing

@testable import sealdb

@Suite(.hangLimit)
struct DeadlineTests {
    private static let calendar: Calendar = {
        var calendar = Calendar(identifier: .gregorian)
        calendar.timeZone = TimeZone(secondsFromGMT: 0)!
        return calendar
    }()

    @Test(arguments: [("90s", 90), ("45m", 2700), ("2h", 7200), ("00:30", 1800), ("23:59", 86340), ("00:00", 86400)])
    func times(text: String, seconds: Double) {
        // Midnight.
        let now = Date(timeIntervalSince1970: 10_000 * 86_400)
        let deadline = Deadline(text, now: now, calendar: DeadlineTests.calendar)
        #expect(deadline?.date == now + seconds)
    }

    @Test(arguments: [
        "", "5", "s", "0s", "-1s", "infs", "nans", "9999999h", "1:30", "12:3", "24:00", "12:60", "12:30:00", "1a:30",
        "+1:30", "12:x0", "8785h",
    ])
    func noTimes(text: String) {
        #expect(Deadline(text) == nil)
    }

    /// A year at most, and a leap year is one, too.
    @Test func theLatestTime() {
        let now = Date(timeIntervalSince1970: 0)
        #expect(Deadline("8784h", now: now)?.date == now + 366 * 86400)
    }
}
