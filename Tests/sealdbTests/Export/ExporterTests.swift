import Foundation
import SealedDB
import Testing

@testable import sealdb

/// What is compared before a commit, with a PostgreSQL that makes mistakes.
@Suite(.hangLimit, .enabled(if: isEncrypting, "the plain build takes no key"))
struct ExporterTests {
    /// Keeps what it gets, and gives it back as it is told.
    private final class Mistaken: ExportTarget {
        let name = "nobody@nowhere/nothing"
        var rows: [[UInt8]] = []
        var commits = 0
        /// What becomes of the rows that were sent.
        let change: ([[UInt8]]) -> [[UInt8]]
        let losesCommit: Bool
        var partSize = Int.max
        var isCutOff = false

        init(losesCommit: Bool = false, _ change: @escaping ([[UInt8]]) -> [[UInt8]]) {
            (self.losesCommit, self.change) = (losesCommit, change)
        }

        func execute(_ sql: String) -> [[String?]] { [] }

        func copyIn(_ sql: String, _ body: (_ send: (UnsafeRawBufferPointer) throws -> Void) throws -> Void) throws {
            var found = CopiedRows()
            rows = []
            try body { bytes in try found.read(bytes) { rows.append(Array($0)) } }
            #expect(found.isComplete)
        }

        func copyOut(_ sql: String, _ body: (UnsafeRawBufferPointer) throws -> Void) throws {
            let stream = CopiedRow.header + change(rows).flatMap { $0 } + (isCutOff ? [] : CopiedRow.trailer)
            for start in stride(from: 0, to: stream.count, by: min(partSize, stream.count)) {
                try stream[start..<min(stream.count, start + min(partSize, stream.count))].withUnsafeBytes {
                    try body($0)
                }
            }
        }

        func commit() throws {
            if losesCommit { throw CommitUnknown(message: "Lost.") }
            commits += 1
        }

        func close() {}
    }

    private func export(to target: Mistaken, resumes: Bool = false) throws -> [Exporter.TableReport] {
        let sandbox = try Sandbox()
        try sandbox.makeStore()
        let database = try sandbox.connection()
        defer { database.close() }
        #expect(database.beginDeferredTransaction())
        var plan = try ExportPlan(
            of: database,
            tables: [],
            schema: "public",
            omitted: [],
            widens: false,
            progress: { _ in }
        )
        try plan.makeStatements()
        var exporter = Exporter(
            plan: plan,
            database: database,
            target: target,
            schemaOnly: false,
            resumes: resumes,
            progress: { _, _ in }
        )
        return try exporter.run()
    }

    @Test func rowsThatArriveInAnyOrder() throws {
        for size in [1, 100, Int.max] {
            let target = Mistaken { $0.reversed() }
            target.partSize = size
            let report = try #require(try export(to: target).first)
            #expect(report.rowCount == 50 && report.status == "exported" && report.digest?.count == 64)
            #expect(target.commits == 1)
        }
    }

    @Test(arguments: 0..<5)
    func rowsThatDoNotArriveAreNotCommitted(_ mistake: Int) throws {
        let target = Mistaken { rows in
            var rows = rows
            switch mistake {
            case 0: rows.removeLast()
            case 1: rows.append(rows[7])
            case 2: rows[8] = rows[7]
            case 3: rows[30][rows[30].count - 1] ^= 1
            default: rows = []
            }
            return rows
        }
        let failure = try #require(throws: Failure.self) { _ = try export(to: target) }
        #expect(failure.status == .software && failure.message.contains("\"people\""), "\(failure.message)")
        #expect(failure.message.contains("all is rolled back") && target.commits == 0)
    }

    @Test func anEndThatIsMissingIsNoEnd() throws {
        let target = Mistaken { $0 }
        target.isCutOff = true
        let failure = try #require(throws: Failure.self) { _ = try export(to: target) }
        #expect(failure.status == .software && target.commits == 0)
    }

    @Test func aCommitWithoutAnAnswerIsNoFailureAndNoSuccess() throws {
        let failure = try #require(throws: Failure.self) { _ = try export(to: Mistaken(losesCommit: true) { $0 }) }
        #expect(failure.status == .unavailable && failure.message.contains("all of it or nothing"))
        #expect(!failure.message.contains("rolled back"))
    }

    @Test func codesOfPostgreSQLsErrors() {
        let codes: [(String, Int32)] = [
            ("53100", 74), ("42501", 73), ("42P07", 73), ("55P03", 75),
            ("28P01", 69),
            ("57P01", 69), ("08006", 69), ("23505", 65), ("54000", 65), ("XX000", 70),
            ("42601", 70), ("57014", 69),
        ]
        for (state, status) in codes { #expect(ServerError.status(state).rawValue == status, "\(state)") }
        #expect(!ServerError.failure("22P05", "character with 0xe2 0x82").message.contains("0xe2"))
    }
}
