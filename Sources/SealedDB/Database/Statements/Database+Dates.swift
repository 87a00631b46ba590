public import Foundation

extension Database {
    /// Creates a format for ``setDateFormat(_:)``. It uses UTC, and does not depend on the user's settings.
    public class func storeableDateFormat(_ format: String) -> DateFormatter {
        let formatter = DateFormatter()
        formatter.dateFormat = format
        formatter.timeZone = TimeZone(secondsFromGMT: 0)
        formatter.locale = Locale(identifier: "en_US_POSIX")
        return formatter
    }

    /// Sets the text format in which dates are written and read. `nil`, the default, means seconds since 1970.
    public func setDateFormat(_ format: DateFormatter?) { dateFormat = format }

    /// Whether a format is set.
    public func hasDateFormatter() -> Bool { dateFormat != nil }

    /// Converts a text with the format. Returns `nil` if no format is set or the text does not match it.
    public func date(from s: String) -> Date? { dateFormat?.date(from: s) }

    /// Converts a date with the format. Returns `nil` if no format is set.
    public func string(from date: Date) -> String? { dateFormat?.string(from: date) }
}
