public import Foundation

extension Database {
    /// A format for ``setDateFormat(_:)``: UTC, and not subject to the user's settings.
    public class func storeableDateFormat(_ format: String) -> DateFormatter {
        let formatter = DateFormatter()
        formatter.dateFormat = format
        formatter.timeZone = TimeZone(secondsFromGMT: 0)
        formatter.locale = Locale(identifier: "en_US_POSIX")
        return formatter
    }

    /// Dates are written and read as text in this format; `nil`, the default, means seconds since 1970.
    public func setDateFormat(_ format: DateFormatter?) { dateFormat = format }

    /// Whether a format is set.
    public func hasDateFormatter() -> Bool { dateFormat != nil }

    /// Converts with the format; `nil` without one, and for text that does not match.
    public func date(from s: String) -> Date? { dateFormat?.date(from: s) }

    /// Converts with the format; `nil` without one.
    public func string(from date: Date) -> String? { dateFormat?.string(from: date) }
}
