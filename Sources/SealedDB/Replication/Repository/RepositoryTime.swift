import Foundation

/// A moment by the clock of the machine that ships, in UTC: `2026-11-25T18:04:21.125Z`.
package struct RepositoryTime: Sendable, Hashable, Comparable, CustomStringConvertible {
    /// Since the beginning of 1970.
    package let milliseconds: Int64

    package init(milliseconds: Int64) {
        self.milliseconds = milliseconds
    }

    /// The nearest one. A date beyond what a repository can have is taken for the first or last moment.
    package init(_ date: Date) {
        let milliseconds = (date.timeIntervalSince1970 * 1000).rounded()
        self.milliseconds = Int64(exactly: min(max(milliseconds, 0), 1e15)) ?? 0
    }

    package var date: Date { Date(timeIntervalSince1970: Double(milliseconds) / 1000) }

    package static func < (first: RepositoryTime, second: RepositoryTime) -> Bool {
        first.milliseconds < second.milliseconds
    }

    static var now: RepositoryTime {
        var time = timespec()
        // The result does not matter: this clock always exists.
        clock_gettime(CLOCK_REALTIME, &time)
        return RepositoryTime(milliseconds: Int64(time.tv_sec) * 1000 + Int64(time.tv_nsec) / 1_000_000)
    }

    package var seconds: Int { Int(milliseconds / 1000) }

    package var description: String {
        var (time, parts) = (time_t(seconds), tm())
        // This fails only for years that do not fit an Int32.
        gmtime_r(&time, &parts)
        func digits(_ number: some BinaryInteger, _ count: Int) -> String {
            let text = String(number)
            return String(repeating: "0", count: max(0, count - text.utf8.count)) + text
        }
        let date = [digits(parts.tm_year + 1900, 4), digits(parts.tm_mon + 1, 2), digits(parts.tm_mday, 2)]
        let clock = [digits(parts.tm_hour, 2), digits(parts.tm_min, 2), digits(parts.tm_sec, 2)]
        let fraction = digits(milliseconds % 1000, 3)
        return "\(date.joined(separator: "-"))T\(clock.joined(separator: ":")).\(fraction)Z"
    }

    /// Reads a date and time of RFC 3339, with `Z` or the difference from UTC, and with or without a fraction of the second,
    /// of which milliseconds count.
    /// - Returns: `nil` for anything else, such as 30 February.
    package init?(_ text: String) {
        let bytes = Array(text.utf8)
        let pattern = Array("dddd-dd-ddTdd:dd:dd".utf8)
        guard bytes.count > pattern.count else { return nil }
        var numbers: [Int32] = [0]
        for (byte, expected) in zip(bytes, pattern) {
            if expected == UInt8(ascii: "d") {
                guard let digit = RepositoryTime.digit(byte) else { return nil }
                numbers[numbers.count - 1] = numbers[numbers.count - 1] * 10 + Int32(digit)
            } else {
                guard byte == expected || expected == UInt8(ascii: "T") && byte == UInt8(ascii: " ") else { return nil }
                numbers.append(0)
            }
        }
        var rest = bytes[pattern.count...]
        var fraction: Int64 = 0
        if rest.first == UInt8(ascii: ".") {
            let digits = rest.dropFirst().prefix { RepositoryTime.digit($0) != nil }
            guard !digits.isEmpty else { return nil }
            for place in 0..<3 {
                let digit = digits.dropFirst(place).first.flatMap(RepositoryTime.digit) ?? 0
                fraction = fraction * 10 + Int64(digit)
            }
            rest = rest.dropFirst(1 + digits.count)
        }
        guard let difference = RepositoryTime.difference(rest) else { return nil }
        var parts = tm()
        (parts.tm_year, parts.tm_mon, parts.tm_mday) = (numbers[0] - 1900, numbers[1] - 1, numbers[2])
        (parts.tm_hour, parts.tm_min, parts.tm_sec) = (numbers[3], numbers[4], numbers[5])
        let local = RepositoryTime(milliseconds: Int64(timegm(&parts)) * 1000)
        guard local.milliseconds >= 0, local.description.utf8.prefix(10).elementsEqual(bytes.prefix(10)),
            local.description.utf8.dropFirst(11).prefix(8).elementsEqual(bytes.dropFirst(11).prefix(8))
        else { return nil }
        milliseconds = local.milliseconds + fraction - difference * 60_000
        // Only what can be written again as it is read.
        guard (0...RepositoryTime.last).contains(milliseconds) else { return nil }
    }

    /// The last millisecond of the year 9999.
    private static let last: Int64 = 253_402_300_799_999

    private static func digit(_ byte: UInt8) -> UInt8? {
        (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) ? byte - UInt8(ascii: "0") : nil
    }

    /// The minutes that a clock is ahead of UTC.
    private static func difference(_ bytes: ArraySlice<UInt8>) -> Int64? {
        if bytes.elementsEqual("Z".utf8) || bytes.elementsEqual("z".utf8) { return 0 }
        let bytes = Array(bytes)
        guard bytes.count == 6, bytes[3] == UInt8(ascii: ":"), let sign = bytes.first,
            sign == UInt8(ascii: "+") || sign == UInt8(ascii: "-")
        else { return nil }
        let digits = [bytes[1], bytes[2], bytes[4], bytes[5]].compactMap(digit).map(Int64.init)
        guard digits.count == 4, digits[0] * 10 + digits[1] < 24, digits[2] < 6 else { return nil }
        let minutes = (digits[0] * 10 + digits[1]) * 60 + digits[2] * 10 + digits[3]
        return sign == UInt8(ascii: "-") ? -minutes : minutes
    }
}
