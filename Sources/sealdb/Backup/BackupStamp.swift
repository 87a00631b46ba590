import Foundation
import SealedDB

/// The date and time in the name of a backup: `app.db.2026-11-24T03.55.04Z` is one of `app.db`. The time is UTC, so that
/// names sort by age whatever the season and the machine.
struct BackupStamp: Sendable, Equatable {
    /// Seconds since 1970.
    let seconds: Int

    init(seconds: Int) {
        self.seconds = seconds
    }

    private static let pattern = Array("dddd-dd-ddTdd.dd.ddZ".utf8)

    /// - Returns: `nil` for anything that ``text`` does not give, such as 30 February.
    init?(_ text: some StringProtocol) {
        let bytes = Array(text.utf8)
        guard bytes.count == BackupStamp.pattern.count else { return nil }
        var numbers: [Int32] = [0]
        for (byte, expected) in zip(bytes, BackupStamp.pattern) {
            if expected == UInt8(ascii: "d") {
                guard (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) else { return nil }
                numbers[numbers.count - 1] = numbers[numbers.count - 1] * 10 + Int32(byte - UInt8(ascii: "0"))
            } else {
                guard byte == expected else { return nil }
                numbers.append(0)
            }
        }
        var parts = tm()
        (parts.tm_year, parts.tm_mon, parts.tm_mday) = (numbers[0] - 1900, numbers[1] - 1, numbers[2])
        (parts.tm_hour, parts.tm_min, parts.tm_sec) = (numbers[3], numbers[4], numbers[5])
        seconds = timegm(&parts)
        guard self.text.utf8.elementsEqual(bytes) else { return nil }
    }

    /// The stamp of a name that begins with that of a store.
    init?(ofName name: String, store: String) {
        guard name.begins(with: store + ".") else { return nil }
        self.init(String(decoding: name.utf8.dropFirst(store.utf8.count + 1), as: UTF8.self))
    }

    private var parts: tm {
        var (time, parts) = (time_t(seconds), tm())
        // This fails only for years that do not fit an Int32.
        gmtime_r(&time, &parts)
        return parts
    }

    var text: String {
        let parts = parts
        return String(
            format: "%04d-%02d-%02dT%02d.%02d.%02dZ",
            parts.tm_year + 1900,
            parts.tm_mon + 1,
            parts.tm_mday,
            parts.tm_hour,
            parts.tm_min,
            parts.tm_sec
        )
    }

    // MARK: Periods

    var hour: Int { floored(seconds, 3600) }
    var day: Int { floored(seconds, 86400) }
    /// Weeks begin on Monday; the first day of 1970 was a Thursday.
    var week: Int { floored(day + 3, 7) }
    var month: Int { year * 12 + Int(parts.tm_mon) }
    var year: Int { Int(parts.tm_year) + 1900 }

    private func floored(_ number: Int, _ divisor: Int) -> Int {
        Int((Double(number) / Double(divisor)).rounded(.down))
    }
}
