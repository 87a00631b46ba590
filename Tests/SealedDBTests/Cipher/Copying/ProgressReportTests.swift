import Foundation
import Testing

@testable import SealedDB

/// What is told of how far an operation is: the numbers are those of its parts and files, and not only growing ones.
@Suite(.hangLimit)
struct ProgressReportTests {
    private struct Stop: Error {}

    /// What is told when this part of an operation has completed so many pages.
    private func told(
        _ completed: Int64,
        of totals: PageTotals = PageTotals(count: 10, size: 512),
        _ part: (ProgressReport) -> ProgressReport = { $0 }
    ) throws -> KeyRotation.Progress {
        var states: [KeyRotation.Progress] = []
        let report = part(ProgressReport(totals: totals) { states.append($0) })
        try report(.verify, completed)
        try #require(states.count == 1)
        return states[0]
    }

    /// Rounded to thousandths.
    private func fraction(
        _ completed: Int64,
        of totals: PageTotals = PageTotals(count: 10, size: 512),
        _ part: (ProgressReport) -> ProgressReport = { $0 }
    ) throws -> Int {
        Int((try told(completed, of: totals, part).fractionCompleted * 1000).rounded())
    }

    @Test func theShareOfAPart() throws {
        #expect(try [0, 5, 10, 20].map { try fraction($0) } == [0, 500, 1000, 1000])
        let last = { (report: ProgressReport) in report.part(from: 0.5) }
        #expect(try [0, 5, 10, 20].map { try fraction($0, last) } == [500, 750, 1000, 1000])
        let first = { (report: ProgressReport) in report.part(to: 0.4) }
        #expect(try [0, 5, 10, 20].map { try fraction($0, first) } == [0, 200, 400, 400])
        // Parts of a part are within it.
        #expect(try [0, 5, 10].map { try fraction($0) { last(first($0)) } } == [200, 300, 400])
        #expect(try [0, 5, 10].map { try fraction($0) { first(last($0)) } } == [500, 600, 700])
        #expect(try [0, 10].map { try fraction($0) { last($0).part(from: 0.4, to: 0.6) } } == [700, 800])
        // A store without pages is done at once.
        let none = PageTotals(count: 0, size: 4096)
        #expect(try fraction(0, of: none, first) == 400)
    }

    @Test func thePagesOfTheFile() throws {
        let state = try told(4)
        #expect(state.phase == .verify && state.completedPages == 4)
        #expect(state.totalPages == 10 && state.pageSize == 512)
        // Another file may have more of them. Its part of the operation is the same.
        let other = PageTotals(count: 40, size: 1024)
        let part = { (report: ProgressReport) in report.part(from: 0.5, to: 0.9).of(other) }
        let found = try told(30, part)
        #expect(found.completedPages == 30 && found.totalPages == 40 && found.pageSize == 1024)
        #expect(try fraction(30, part) == 800)
        let last = found.inPart(from: 0.5)
        #expect(last.phase == .verify && last.completedPages == 30 && last.totalPages == 40 && last.pageSize == 1024)
        #expect(Int((last.fractionCompleted * 1000).rounded()) == 900)
    }

    @Test func whoStopsItIsTold() throws {
        let report = ProgressReport(totals: PageTotals(count: 10, size: 512)) { _ in throw Stop() }
        for phase in [KeyRotation.Progress.Phase.copy, .swap] {
            let error = #expect(throws: DatabaseError.self) { try report(phase, 1) }
            #expect(error?.reason == .interrupted && error?.underlyingError is Stop)
            #expect(error?.message == "The caller stopped it in phase \(phase.rawValue).")
        }
        try ProgressReport(totals: PageTotals(count: 10, size: 512), progress: nil)(.copy, 1)
    }

    /// Of what is read more often than was thought, the end is never told before it is reached.
    @Test(arguments: [0.01, 0.5, 1, 4]) func whatIsReadOften(timesRead: Double) throws {
        let database = try Database.testing(nil)
        defer { database.close() }
        try database.fill(rows: 2500)
        let connection = try #require(database.connection)
        var states: [KeyRotation.Progress] = []
        let report = ProgressReport(totals: PageTotals(count: 20, size: 4096)) { states.append($0) }
        let count = try report.whileReading(connection, .compare, timesRead: timesRead) { () throws(DatabaseError) in
            try connection.integer("SELECT count(*) FROM t AS a, t AS b WHERE a.id % 10 = 0 AND b.id % 10 = 0")
        }
        #expect(count == 62_500)
        #expect(states.count > 2 && states.allSatisfy { $0.phase == .compare && $0.totalPages == 20 })
        #expect(states.first?.completedPages == 0 && states.last?.completedPages == 20)
        #expect(states.dropLast().allSatisfy { $0.completedPages < 20 })
        let numbers = states.map(\.completedPages)
        #expect(numbers == numbers.sorted())
        // Without anybody to tell, it is only read.
        let quiet = ProgressReport(totals: PageTotals(count: 20, size: 4096), progress: nil)
        #expect(try quiet.whileReading(connection, .compare) { () throws(DatabaseError) in 7 } == 7)
    }
}
