/// A date as SQLite's date functions write and read it. https://www.sqlite.org/lang_datefunc.html#time_values
struct SQLDateText {
    private var rest: Substring.UTF8View

    /// Returns the seconds since 1970 of a text such as `2026-11-23`, `2026-11-23 08:15:30.250` or
    /// `2026-11-23T08:15Z`; `nil` for any other text, and for a day or time that does not exist. Without a time zone it
    /// is UTC.
    static func seconds(of text: String) -> Double? {
        var reader = SQLDateText(rest: text[...].utf8)
        guard let day = reader.day() else { return nil }
        guard !reader.rest.isEmpty else { return Double(day * 86400) }
        guard reader.skip(" ") || reader.skip("T"), let time = reader.time(), let offset = reader.offset(),
            reader.rest.isEmpty
        else { return nil }
        return Double(day * 86400 - offset) + time
    }

    /// Reads a day, and returns its number, counted from 1970-01-01 in the Gregorian calendar.
    private mutating func day() -> Int? {
        guard let year = number(digits: 4), skip("-"), let month = number(digits: 2), skip("-"),
            let day = number(digits: 2), (1...12).contains(month),
            (1...SQLDateText.length(ofMonth: month, year: year)).contains(day)
        else { return nil }
        // Years begin in March here, so that a leap day is the last of its year.
        let (shifted, months) = month > 2 ? (year, month - 3) : (year - 1, month + 9)
        let beforeYear = shifted * 365 + SQLDateText.leapDays(to: shifted)
        return beforeYear + (153 * months + 2) / 5 + day - 1 - 719_468
    }

    /// Reads a time of day, and returns it in seconds.
    private mutating func time() -> Double? {
        guard let hour = number(digits: 2), hour < 24, skip(":"), let minute = number(digits: 2), minute < 60 else {
            return nil
        }
        var seconds = Double(hour * 3600 + minute * 60)
        guard skip(":") else { return seconds }
        guard let second = number(digits: 2), second < 60 else { return nil }
        seconds += Double(second)
        guard skip(".") else { return seconds }
        let digits = rest.prefix { (0x30...0x39).contains($0) }
        guard !digits.isEmpty, let fraction = Double("0." + String(Substring(digits))) else { return nil }
        rest = rest.dropFirst(digits.count)
        return seconds + fraction
    }

    /// Reads a time zone, if there is one, and returns its distance from UTC in seconds.
    private mutating func offset() -> Int? {
        if rest.isEmpty || skip("Z") { return 0 }
        let isWest = skip("-")
        guard isWest || skip("+"), let hours = number(digits: 2), hours <= 14, skip(":"),
            let minutes = number(digits: 2), minutes < 60
        else { return nil }
        return (hours * 3600 + minutes * 60) * (isWest ? -1 : 1)
    }

    private mutating func number(digits count: Int) -> Int? {
        let digits = rest.prefix(count)
        guard digits.count == count, digits.allSatisfy({ (0x30...0x39).contains($0) }) else { return nil }
        rest = rest.dropFirst(count)
        return digits.reduce(0) { $0 * 10 + Int($1 - 0x30) }
    }

    private mutating func skip(_ character: Unicode.Scalar) -> Bool {
        guard rest.first == UInt8(ascii: character) else { return false }
        rest = rest.dropFirst()
        return true
    }

    private static func length(ofMonth month: Int, year: Int) -> Int {
        switch month {
        case 2: year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) ? 29 : 28
        case 4, 6, 9, 11: 30
        default: 31
        }
    }

    /// The number of leap days in the years from 1 to this one. The year -1 has none before it.
    private static func leapDays(to year: Int) -> Int {
        year < 0 ? -1 : year / 4 - year / 100 + year / 400
    }
}
