import Foundation
import Testing

@Suite(.hangLimit, .enabled(if: isEncrypting, "the plain build takes no key"))
struct VerifyTests {
    private struct Report: Decodable {
        let pageCount: Int
        let damagedPages: [Int]
        let damagedFreePages: [Int]
        let structureProblems: [String]
        let isSound: Bool
    }

    private func verify(_ sandbox: Sandbox) throws -> (Outcome, Report) {
        let outcome = try sandbox.sealdb("verify", "db", "--json", "--key-file", "key")
        return (outcome, try JSONDecoder().decode(Report.self, from: outcome.outputData))
    }

    @Test(arguments: ["delete", "wal"])
    func soundStore(journalMode: String) throws {
        let sandbox = try Sandbox()
        try sandbox.makeStore(journalMode: journalMode)
        let outcome = try sandbox.succeed("verify", "db", "--key-file", "key")
        #expect(outcome.output.hasPrefix("db: sound, "))
        #expect(outcome.error.isEmpty)
        let (json, report) = try verify(sandbox)
        #expect(json.status == 0)
        #expect(report.isSound && report.damagedPages.isEmpty && report.structureProblems.isEmpty)
        #expect(report.pageCount > 3)
    }

    /// It is written before its end, and the rest must not look like all.
    @Test func aLongListThatCannotBeWritten() throws {
        let sandbox = try Sandbox()
        try sandbox.makeStore()
        let sql = "CREATE TABLE b (b); INSERT INTO b VALUES (zeroblob(20 << 20))"
        try sandbox.succeed("exec", "db", sql, "--key-file", "key")
        let size = try sandbox.contents("db").count
        try sandbox.overwrite("db", at: 4096, with: [UInt8](repeating: 0x55, count: size - 4096))
        let outcome = try sandbox.sealdb("verify", "db", "--key-file", "key")
        #expect(outcome.status == 65 && outcome.outputData.count > 64 * 1024)
        let full = try sandbox.run(["sh", "-c", "\"$0\" verify db --key-file key >/dev/full", Tool.sealdb])
        #expect(full.status == 74, "\(full.error)")
    }

    @Test func deep() throws {
        let sandbox = try Sandbox()
        try sandbox.makeStore()
        let outcome = try sandbox.succeed("verify", "db", "--key-file", "key", "--deep", "--progress", "always")
        #expect(outcome.output.hasPrefix("db: sound, "))
        #expect(outcome.error.contains("verify"))
        try sandbox.overwrite("db", at: 2 * 4096, with: [UInt8](repeating: 0xa5, count: 64))
        let damaged = try sandbox.sealdb("verify", "db", "--key-file", "key", "--deep")
        #expect(damaged.status == 65 && damaged.lines.contains("page 3: damaged"))
    }

    /// What a process leaves that is killed behind the commit of a VACUUM: nothing is missing, but only the user can tell.
    @Test func aFileThatWasNotCutOff() throws {
        let sandbox = try Sandbox()
        try sandbox.makeStore()
        try sandbox.succeed("exec", "db", "CREATE TABLE b AS SELECT zeroblob(90000)", "--key-file", "key")
        let before = try sandbox.contents("db")
        try sandbox.succeed("exec", "db", "DROP TABLE b; VACUUM", "--key-file", "key")
        let after = try sandbox.contents("db")
        try #require(after.count < before.count)
        try sandbox.write("db", after + before[after.count...])
        for options in [[], ["--deep"]] {
            let outcome = try sandbox.run([Tool.sealdb, "verify", "db", "--key-file", "key"] + options)
            #expect(
                outcome.status == 65 && outcome.error.contains("may lack what was stored last; what it has is sound")
            )
            #expect(outcome.error.contains("run VACUUM") && !outcome.error.contains("damaged"), "\(outcome.error)")
        }
        let backup = try sandbox.sealdb("backup", "db", "copy", "--key-file", "key")
        #expect(backup.status == 0 && backup.error.contains("run VACUUM"), "\(backup.error)")
        #expect(try sandbox.census(keyFile: "key", store: "copy").output == Sandbox.wholeStore)
        #expect(try sandbox.sealdb("rotate", "db", "--key-file", "key", "--new-key-file", "key").status != 0)
        try sandbox.succeed("exec", "db", "VACUUM", "--key-file", "key")
        #expect(try sandbox.succeed("verify", "db", "--key-file", "key").output.hasPrefix("db: sound, "))
        let again = try sandbox.sealdb("backup", "db", "again", "--key-file", "key")
        #expect(again.status == 0 && again.error.isEmpty, "\(again.error)")
    }

    /// What a power failure leaves of a page that a transaction had taken from the free ones.
    @Test func aFreePageThatIsTorn() throws {
        let sandbox = try Sandbox()
        try sandbox.makeStore()
        let sql =
            "PRAGMA secure_delete = OFF; CREATE TABLE b (b); INSERT INTO b VALUES (zeroblob(200000)); DELETE FROM b"
        try sandbox.succeed("exec", "db", sql, "--key-file", "key")
        let last = try sandbox.contents("db").count / 4096
        try sandbox.overwrite("db", at: UInt64(last - 1) * 4096 + 512, with: [UInt8](repeating: 0x55, count: 2048))
        for options in [[], ["--pages-only"]] {
            let outcome = try sandbox.run([Tool.sealdb, "verify", "db", "--key-file", "key"] + options)
            #expect(outcome.status == 0 && outcome.output.hasPrefix("db: sound, "), "\(outcome)")
            #expect(outcome.output.contains("1 free page not as written, the first is page \(last)"), "\(outcome)")
        }
        let (json, report) = try verify(sandbox)
        #expect(json.status == 0 && report.isSound && report.damagedFreePages == [last], "\(json)")
        try sandbox.succeed("exec", "db", "VACUUM", "--key-file", "key")
        #expect(try verify(sandbox).1.damagedFreePages == [])
    }

    @Test func pagesOnly() throws {
        let sandbox = try Sandbox()
        try sandbox.makeStore()
        let outcome = try sandbox.succeed("verify", "db", "--key-file", "key", "--pages-only")
        #expect(outcome.output.hasPrefix("db: every page is as it was written; the structure was not checked, "))
        try sandbox.overwrite("db", at: 2 * 4096, with: [UInt8](repeating: 0xa5, count: 64))
        let damaged = try sandbox.sealdb("verify", "db", "--key-file", "key", "--pages-only", "--json")
        #expect(damaged.status == 65 && damaged.output.contains("\"isStructureChecked\""))
        #expect(try JSONDecoder().decode(Report.self, from: damaged.outputData).damagedPages == [3])
        let both = try sandbox.sealdb("verify", "db", "--key-file", "key", "--pages-only", "--deep")
        #expect(both.status == 64)
    }

    @Test func damagedPageIsNamed() throws {
        let sandbox = try Sandbox()
        try sandbox.makeStore()
        try sandbox.overwrite("db", at: 2 * 4096, with: [UInt8](repeating: 0xa5, count: 64))
        let outcome = try sandbox.sealdb("verify", "db", "--key-file", "key")
        #expect(outcome.status == 65)
        #expect(outcome.lines.contains("page 3: damaged"), "\(outcome.output)")
        #expect(outcome.error.hasPrefix("sealdb: db is damaged"))
        let (json, report) = try verify(sandbox)
        #expect(json.status == 65)
        #expect(report.damagedPages == [3])
        #expect(!report.isSound)
    }

    @Test func everySingleBitCounts() throws {
        let sandbox = try Sandbox()
        try sandbox.makeStore()
        let intact = try sandbox.contents("db")
        for (page, offset) in [(2, 0), (2, 4095), (3, 2000), (4, 4016)] {
            try sandbox.write("db", intact)
            let index = (page - 1) * 4096 + offset
            try sandbox.overwrite("db", at: UInt64(index), with: [intact[index] ^ 1])
            let (outcome, report) = try verify(sandbox)
            #expect(outcome.status == 65)
            #expect(report.damagedPages == [page])
        }
        try sandbox.write("db", intact)
        try sandbox.succeed("verify", "db", "--key-file", "key")
    }

    @Test func truncatedFile() throws {
        let sandbox = try Sandbox()
        try sandbox.makeStore()
        let intact = try sandbox.contents("db")
        // At the edge of a page, within one, and within the first.
        for size in [intact.count - 4096, intact.count - 100, 4096] {
            try sandbox.write("db", intact.prefix(size))
            let outcome = try sandbox.sealdb("verify", "db", "--key-file", "key")
            #expect(outcome.status == 65, "\(size): \(outcome.output)\(outcome.error)")
        }
        try sandbox.write("db", intact.prefix(100))
        try sandbox.fail(65, "verify", "db", "--key-file", "key")
    }

    @Test func otherFiles() throws {
        let sandbox = try Sandbox()
        try sandbox.makeKey()
        try sandbox.fail(66, "verify", "absent", "--key-file", "key")
        #expect(try sandbox.run(["sqlite3", "plain"], input: "CREATE TABLE t (a);").status == 0)
        try sandbox.fail(65, "verify", "plain", "--key-file", "key")
        #expect(try sandbox.names() == ["key", "plain"])
    }

    @Test func lockedStore() throws {
        let sandbox = try Sandbox()
        try sandbox.makeStore()
        let other = try sandbox.connection()
        try other.executeUpdate("BEGIN EXCLUSIVE", values: nil)
        try sandbox.fail(75, "verify", "db", "--key-file", "key")
        other.close()
    }
}
