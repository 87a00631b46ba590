import Foundation
import Testing

@testable import SealedDB

/// A date is read from whatever SQLite may have made of it.
@Suite(.hangLimit)
struct DateTextTests {
    private let database: Database

    init() throws {
        database = try Database.testing(nil)
    }

    private func read(_ text: String) throws -> Double? {
        // A text that is no date is an error.
        (try? database.executeQuery("SELECT \(text)").scalar(Date.self))?.timeIntervalSince1970
    }

    /// SQLite's own writing is read as SQLite reads it.
    @Test(arguments: [
        "date(x, 'unixepoch')", "datetime(x, 'unixepoch')", "strftime('%Y-%m-%d %H:%M', x, 'unixepoch')",
        "strftime('%Y-%m-%dT%H:%M:%fZ', x, 'unixepoch')", "datetime(x, 'unixepoch') || '+05:30'",
        "strftime('%Y-%m-%d %H:%M', x, 'unixepoch') || '-11:00'", "strftime('%Y-%m-%dT%H:%M:%f', x, 'unixepoch')",
    ]) func whatSQLiteWrites(_ expression: String) throws {
        var generator = SeededGenerator(seed: 7)
        for _ in 0..<400 {
            // From the year 0 to the year 9999.
            let seconds = Double(Int64.random(in: -62_167_219_200_000...253_402_214_400_000, using: &generator)) / 1000
            let (text, expected) = try #require(
                try database.executeQuery(
                    """
                    SELECT text, (julianday(text) - 2440587.5) * 86400 FROM (
                        SELECT \(raw: expression) AS text FROM (SELECT \(seconds) AS x)
                    )
                    """
                ).first((String, Double).self)
            )
            let found = try #require(try read(text), "\(text)")
            // A day of Julius has 15 digits too.
            #expect(abs(found - expected) < 0.002, "\(text)")
        }
    }

    @Test func daysAtTheEdges() throws {
        for (text, seconds) in [
            ("1970-01-01", 0.0), ("1969-12-31 23:59:59.5", -0.5), ("2000-02-29T12:00", 951_825_600),
            ("0000-01-01", -62_167_219_200), ("9999-12-31 23:59:59", 253_402_300_799),
            ("2026-11-23 08:15:30.125-01:30", 1_795_427_130.125),
        ] {
            #expect(try read(text) == seconds, "\(text)")
        }
    }

    @Test func whatIsNoDate() throws {
        for text in [
            "", " ", "now", "08:15", "2026-11", "2026-11-23 ", " 2026-11-23", "2026-11-23T", "2026-11-23 8:15",
            "2026-02-29", "1900-02-29", "2026-04-31", "2026-13-01", "2026-00-10", "2026-01-00", "2026-11-23 24:00",
            "2026-11-23 08:60", "2026-11-23 08:15:60", "2026-11-23 08:15:30.", "2026-11-23 08:15Zz",
            "2026-11-23 08:15+1",
            "2026-11-23 08:15+15:00", "2026-11-23x08:15", "-2026-11-23", "２０２６-11-23", "nan", "inf", "0x10", "1e999",
            "2026-11-23\0",
        ] {
            #expect(try read(text) == nil, "\(text)")
        }
        let error = #expect(throws: DatabaseError.self) {
            try database.executeQuery("SELECT \("secret") AS at").scalar(Date.self)
        }
        #expect(error?.reason == .typeMismatch)
        #expect(error?.message.contains("secret") == false)
    }

    /// The column makes text of the seconds.
    @Test func columnsThatAreText() throws {
        try database.executeUpdate("CREATE TABLE t (at TEXT)")
        for seconds in [0, -1.5, 1_795_421_730.25, 1e-7, -62_167_219_200, 253_402_300_799] {
            let date = Date(timeIntervalSince1970: seconds)
            try database.executeUpdate("DELETE FROM t")
            try database.executeUpdate("INSERT INTO t VALUES (\(date))")
            #expect(try database.executeQuery("SELECT typeof(at) FROM t").scalar(String.self) == "text")
            #expect(try database.executeQuery("SELECT at FROM t").scalar(Date.self) == date)
        }
    }

    /// The formatter has an empty text for them, which would read as no date.
    @Test func datesWithoutTextInTheFormat() throws {
        try database.executeUpdate("CREATE TABLE t (at)")
        database.setDateFormat(Database.storeableDateFormat("yyyy-MM-dd HH:mm:ss"))
        for seconds in [Double.nan, .infinity, -.infinity, 1e18] {
            let error = #expect(throws: DatabaseError.self) {
                try database.executeUpdate("INSERT INTO t VALUES (?)", Date(timeIntervalSince1970: seconds))
            }
            #expect(error?.reason == .typeMismatch, "\(seconds)")
        }
        #expect(try database.integers("SELECT count(*) FROM t") == [0])
    }
}
