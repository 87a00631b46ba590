import FailingCalls
import Foundation
import Testing

@testable import SealedDB

/// Pages of an odd kind: the one of SQLite's locks, which no structure uses, and those behind the end.
@Suite(.hangLimit, .enabled(if: isEncrypting, "needs a codec"))
struct LockPageTests {
    private let directory: TemporaryDirectory

    init() throws {
        directory = try TemporaryDirectory()
        let database = try Database.testing(directory.file("db"), journalMode: .delete)
        try database.fill(rows: 100)
        try #require(database.close())
    }

    private func withConnection(_ body: (Connection, Sealing) throws -> Void) throws {
        let sealing = Sealing(key: try .testing(1))
        let connection = try StoreOpening(path: directory.file("db"), key: sealing.key).open()
        defer { connection.close() }
        try body(connection, sealing)
    }

    /// SQLite, which asks for it only if a structure is damaged, does not get it; and nothing is said of the disk or of
    /// the page.
    @Test func thePageOfTheLocks() throws {
        let offset = (PageScan.lockPage(pageSize: 4096) - 1) * 4096
        var buffer = [UInt8](repeating: 0, count: 4096)
        try withConnection { connection, sealing in
            let scan = PageScan(connection: connection, key: sealing.key!, settings: sealing.settings)
            let pages = try AuthenticPages(scan, scan.pageCipher(), marks: nil, pageCount: 300_000)
            #expect(buffer.withUnsafeMutableBytes { pages.read(into: $0, at: 4096) } == SQLITE_OK)
            #expect(buffer.withUnsafeMutableBytes { pages.read(into: $0, at: offset) } != SQLITE_OK)
            #expect(pages.isRefused && pages.failure == nil && pages.damagedPage == nil)
            try connection.run("BEGIN")
            _ = try connection.integer("SELECT count(*) FROM t")
            let (source, reader) = try SourcePages(reading: connection, sealing).open()
            defer { source.close() }
            #expect(buffer.withUnsafeMutableBytes { reader.read(into: $0, at: 4096) } == SQLITE_OK)
            #expect(buffer.withUnsafeMutableBytes { reader.read(into: $0, at: offset) } != SQLITE_OK)
            #expect(reader.failure?.message.contains("the page of SQLite's locks") == true, "\(reader.failure as Any)")
        }
    }

    /// The search behind the end can be stopped.
    @Test(arguments: [false, true]) func pagesBehindTheEnd(stops: Bool) throws {
        let pages = try directory.bytes("db").count / 4096
        try #require(truncate(directory.file("db"), off_t(pages + 600) * 4096) == 0)
        try withConnection { connection, sealing in
            var count = 0
            let stop = DatabaseError(extendedCode: SQLITE_INTERRUPT, reason: .interrupted, message: "Enough.")
            var error: DatabaseError?
            do throws(DatabaseError) {
                let path = directory.file("db")
                let problem = try UncountedPages.problem(of: connection, path: path, sealing) {
                    () throws(DatabaseError) in
                    count += 1
                    if stops { throw stop }
                }
                #expect(problem == nil)
            } catch let failure {
                error = failure
            }
            #expect(error == (stops ? stop : nil) && count == (stops ? 1 : 2))
        }
    }

    /// Whether a page is free matters only if the disk reads it.
    @Test func aFreePageThatCannotBeRead() throws {
        let database = try Database.testing(directory.file("db"))
        try database.execute(script: "CREATE TABLE u (a); INSERT INTO u VALUES (zeroblob(20000)); DROP TABLE u")
        database.close()
        let last = try directory.bytes("db").count / 4096
        let place = failing_calls_spoil(directory.file("db"), Int64(last - 1) * 4096 + 100)
        try #require(place >= 0)
        defer { failing_calls_mend(place) }
        let report = try IntegrityReport.verify(path: directory.file("db"), key: .testing(1))
        #expect(report.damagedPages == [Int64(last)] && !report.isSound, "\(report)")
    }

    /// What reads more than was expected comes close to its end, and not behind it.
    @Test func readingMoreThanExpected() throws {
        try withConnection { connection, _ in
            var told: [KeyRotation.Progress] = []
            let report = ProgressReport(totals: PageTotals(count: 100, size: 4096)) { told.append($0) }
            try report.whileReading(connection, .structure, timesRead: 0.01) { () throws(DatabaseError) in
                try connection.run("PRAGMA cache_size = 1")
                for _ in 0..<50 { _ = try connection.integer("SELECT sum(length(a.body)) FROM t AS a, t AS b") }
            }
            let counts = told.map(\.completedPages)
            #expect(
                counts.first == 0 && counts.last == 100 && counts == counts.sorted() && counts.count > 4,
                "\(counts)"
            )
            #expect(counts.dropLast().allSatisfy { $0 < 100 } && counts.dropLast().max() ?? 0 >= 90, "\(counts)")
        }
    }
}
