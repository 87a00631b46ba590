import Foundation
import Testing

@testable import sealdb

/// Which backups the rules keep, by nothing but their times.
@Suite(.hangLimit)
struct RetentionTests {
    private func stamps(_ texts: [String]) throws -> [BackupStamp] { try texts.map { try #require(BackupStamp($0)) } }

    private func kept(_ counts: [(RetentionPolicy.Rule, Int)], _ texts: [String]) throws -> [String] {
        let reasons = RetentionPolicy(counts: counts.map { (rule: $0.0, count: $0.1) }).reasons(try stamps(texts))
        return zip(texts, reasons).filter { !$0.1.isEmpty }.map { $0.0 }
    }

    @Test func stampsAreDatesAlone() throws {
        for text in [
            "2026-11-24T03.55.04Z", "1970-01-01T00.00.00Z", "2024-02-29T23.59.59Z", "1969-12-31T23.59.59Z",
            "9999-12-31T23.59.59Z",
        ] {
            #expect(BackupStamp(text)?.text == text)
        }
        #expect(BackupStamp("2026-11-24T03.55.04Z")?.seconds == 1_795_492_504)
        for text in [
            "", "2026-11-24", "2025-02-29T00.00.00Z", "2026-13-01T00.00.00Z", "2026-00-10T00.00.00Z",
            "2026-11-24T24.00.00Z", "2026-11-24T03.60.04Z", "2026-11-24T03.55.60Z", "2026-11-24T03.55.04z",
            "2026-11-24T03.55.04Z ", "2026-11-24T03:55:04Z", "２026-11-24T03.55.04Z", "+026-11-24T03.55.04Z",
        ] {
            #expect(BackupStamp(text) == nil, "\(text)")
        }
        #expect(BackupStamp(ofName: "a.2026-11-24T03.55.04Z", store: "a") != nil)
        #expect(BackupStamp(ofName: "a.b.2026-11-24T03.55.04Z", store: "a") == nil)
        #expect(BackupStamp(ofName: "a2026-11-24T03.55.04Z", store: "a") == nil)
    }

    @Test func theNewestOfEachPeriod() throws {
        let times = [
            "2026-11-24T12.30.00Z", "2026-11-24T12.10.00Z", "2026-11-24T09.00.00Z", "2026-11-23T23.59.59Z",
            "2026-11-22T08.00.00Z", "2026-11-16T00.00.00Z", "2026-10-31T00.00.00Z", "2025-12-31T00.00.00Z",
            "2025-06-01T00.00.00Z",
        ]
        #expect(try kept([(.last, 3)], times) == Array(times[0..<3]))
        #expect(try kept([(.hourly, 2)], times) == [times[0], times[2]])
        #expect(try kept([(.daily, 3)], times) == [times[0], times[3], times[4]])
        // 23 and 24 November are of one week, 16 to 22 of another.
        #expect(try kept([(.weekly, 2)], times) == [times[0], times[4]])
        #expect(try kept([(.monthly, 3)], times) == [times[0], times[6], times[7]])
        #expect(try kept([(.yearly, 2)], times) == [times[0], times[7]])
        #expect(try kept([(.last, 1), (.daily, 2), (.yearly, 2)], times) == [times[0], times[3], times[7]])
        // While a rule may keep more than there are periods, it keeps the oldest.
        #expect(try kept([(.yearly, 3)], times) == [times[0], times[7], times[8]])
        #expect(try kept([(.last, 100)], times) == times)
        #expect(try kept([], times) == times)
        #expect(try kept([(.daily, 1)], []) == [])
    }

    /// Weeks do not begin anew with the year.
    @Test func weeksAcrossAYear() throws {
        let times = ["2027-01-03T10.00.00Z", "2026-12-31T10.00.00Z", "2026-12-28T10.00.00Z", "2026-12-27T10.00.00Z"]
        #expect(try kept([(.weekly, 2)], times) == [times[0], times[3]])
    }

    /// Whatever the rules, the newest stays.
    @Test func theNewestAlwaysStays() throws {
        let times = ["2026-11-24T12.30.00Z", "2026-11-24T12.29.59Z", "2020-01-01T00.00.00Z"]
        for rule in [RetentionPolicy.Rule.last, .hourly, .daily, .weekly, .monthly, .yearly] {
            #expect(try kept([(rule, 1)], times) == [times[0]])
        }
    }
}
