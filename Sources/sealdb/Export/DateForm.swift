import SealedDB

/// A date as SQLite's date functions write it, `2026-11-23`, `2026-11-23 08:15:30.250` or `2026-11-23T08:15Z`, if
/// PostgreSQL holds the same moment: microseconds are its finest, and years begin with 1.
struct DateForm {
    enum Kind { case date, timestamp, timestampWithZone }

    let kind: Kind
    /// Days since 2000-01-01, the first day that PostgreSQL counts.
    let days: Int
    /// Since 2000-01-01, in UTC if there is a time zone.
    let microseconds: Int64

    private static let daysTo2000 = 730_119

    init?(_ text: UnsafeRawBufferPointer) {
        // The longest form is 2026-11-23T08:15:30.250000+01:00.
        guard (10...32).contains(text.count) else { return nil }
        var reader = Reader(rest: text[...])
        guard let year = reader.number(4), reader.skip("-"), let month = reader.number(2), reader.skip("-"),
            let day = reader.number(2), year > 0, (1...12).contains(month),
            (1...DateForm.length(ofMonth: month, year: year)).contains(day)
        else { return nil }
        days = DateForm.daysBefore(year: year, month: month) + day - 1 - DateForm.daysTo2000
        guard !reader.rest.isEmpty else {
            (kind, microseconds) = (.date, Int64(days) * 86_400_000_000)
            return
        }
        guard reader.skip(" ") || reader.skip("T"), let time = reader.time() else { return nil }
        if reader.rest.isEmpty {
            (kind, microseconds) = (.timestamp, Int64(days) * 86_400_000_000 + time)
        } else {
            guard let offset = reader.offset(), reader.rest.isEmpty else { return nil }
            (kind, microseconds) = (.timestampWithZone, Int64(days) * 86_400_000_000 + time - offset * 60_000_000)
        }
    }

    private static func isLeap(_ year: Int) -> Bool { year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) }

    private static func length(ofMonth month: Int, year: Int) -> Int {
        month == 2 ? (isLeap(year) ? 29 : 28) : [4, 6, 9, 11].contains(month) ? 30 : 31
    }

    /// Since the first day of the year 1.
    private static func daysBefore(year: Int, month: Int) -> Int {
        let years = year - 1
        let whole = years * 365 + years / 4 - years / 100 + years / 400
        return (1..<month).reduce(whole) { $0 + length(ofMonth: $1, year: year) }
    }

    private struct Reader {
        var rest: Slice<UnsafeRawBufferPointer>

        mutating func skip(_ character: Unicode.Scalar) -> Bool {
            guard rest.first == UInt8(ascii: character) else { return false }
            rest = rest.dropFirst()
            return true
        }

        mutating func number(_ count: Int) -> Int? {
            let digits = rest.prefix(count)
            guard digits.count == count, digits.allSatisfy({ (0x30...0x39).contains($0) }) else { return nil }
            rest = rest.dropFirst(count)
            return digits.reduce(0) { $0 * 10 + Int($1 - 0x30) }
        }

        /// In microseconds.
        mutating func time() -> Int64? {
            guard let hour = number(2), hour < 24, skip(":"), let minute = number(2), minute < 60 else { return nil }
            var time = Int64(hour * 3600 + minute * 60) * 1_000_000
            guard skip(":") else { return time }
            guard let second = number(2), second < 60 else { return nil }
            time += Int64(second) * 1_000_000
            guard skip(".") else { return time }
            let digits = rest.prefix { (0x30...0x39).contains($0) }
            guard (1...6).contains(digits.count) else { return nil }
            rest = rest.dropFirst(digits.count)
            let fraction = digits.reduce(0 as Int64) { $0 * 10 + Int64($1 - 0x30) }
            return time + (digits.count..<6).reduce(fraction) { value, _ in value * 10 }
        }

        /// The distance of a time zone from UTC, in minutes.
        mutating func offset() -> Int64? {
            if skip("Z") { return 0 }
            let isWest = skip("-")
            guard isWest || skip("+"), let hours = number(2), hours <= 14, skip(":"), let minutes = number(2),
                minutes < 60
            else { return nil }
            return Int64(hours * 60 + minutes) * (isWest ? -1 : 1)
        }
    }
}
