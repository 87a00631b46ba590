import Foundation
import SealedDB
import Testing

@Suite(.hangLimit)
struct DoctorTests {
    @Test func reportsVersionsChecksAndLimits() throws {
        let sandbox = try Sandbox()
        let outcome = try sandbox.succeed("doctor")
        let engine = EngineInfo.current()
        #expect(outcome.output.contains(engine.sqliteVersion))
        #expect(outcome.output.contains("memory lock:"))
        if let version = engine.cipherVersion, let provider = engine.cipherProvider {
            #expect(isEncrypting && outcome.output.contains(version) && outcome.output.contains(provider))
        }
        #expect(outcome.output.contains("no encryption") != isEncrypting)
        for check in engine.checks { #expect(outcome.output.contains("ok, \(check.name)")) }
        #expect(outcome.output.contains("every one that is read is an error") == isEncrypting)
        #expect(outcome.error.isEmpty)
    }

    /// Below 64 KiB the keys may not all be locked.
    @Test(arguments: [(65535, true), (65536, false)])
    func memoryThatMayBeLocked(limit: Int, isScarce: Bool) throws {
        let sandbox = try Sandbox()
        let outcome = try sandbox.run(["prlimit", "--memlock=\(limit):\(limit)", Tool.sealdb, "doctor"])
        #expect(outcome.status == 0, "\(outcome.error)")
        #expect(outcome.output.contains("64.0 KiB"), "\(outcome.output)")
        #expect(outcome.output.contains("keys may be swapped out") == isScarce, "\(outcome.output)")
    }

    @Test func json() throws {
        let sandbox = try Sandbox()
        let report = try JSONDecoder().decode(EngineInfo.self, from: try sandbox.succeed("doctor", "--json").outputData)
        #expect(report.isEncrypting == isEncrypting)
        #expect(report.sqliteVersion == EngineInfo.current().sqliteVersion)
        #expect(report.checks.allSatisfy { $0.passed })
        #expect(report.noticesDamagedPages == isEncrypting)
    }

    /// SQLCipher's own functions alone, if a variable says so; both write the same files.
    @Test(.enabled(if: isEncrypting, "needs a codec"))
    func pageContextsCanBeSwitchedOff() throws {
        let sandbox = try Sandbox()
        let off = ["SEALEDDB_PROVIDER": "stock"]
        #expect(try sandbox.succeed("doctor").output.contains("kept by each connection"))
        let doctor = try sandbox.run([Tool.sealdb, "doctor", "--json"], environment: off)
        let report = try JSONDecoder().decode(EngineInfo.self, from: doctor.outputData)
        #expect(!report.keepsPageContexts && report.pageContextsDetail == "SEALEDDB_PROVIDER says so")
        #expect(report.noticesDamagedPages && report.cipherProvider == "openssl")
        let text = try sandbox.run([Tool.sealdb, "doctor"], environment: off).output
        #expect(text.contains("made anew for each page, because SEALEDDB_PROVIDER says so"))
        let empty = try sandbox.run([Tool.sealdb, "doctor"], environment: ["SEALEDDB_PROVIDER": ""])
        #expect(empty.output.contains("kept by each connection"))

        try sandbox.write("key", String(repeating: "5a", count: 32))
        try sandbox.succeed("create", "db", "--key-file", "key")
        let insert = """
            WITH RECURSIVE n(value) AS (SELECT 1 UNION ALL SELECT value + 1 FROM n WHERE value < 500)
            INSERT INTO t SELECT zeroblob(value * 10) FROM n
            """
        try sandbox.succeed("exec", "db", "--key-file", "key", "CREATE TABLE t (body)")
        let query = "SELECT count(*), sum(length(body)) FROM t"
        func run(_ arguments: String..., environment: [String: String]) throws -> Outcome {
            let outcome = try sandbox.run([Tool.sealdb] + arguments + ["--key-file", "key"], environment: environment)
            #expect(outcome.status == 0, "\(arguments): \(outcome.error)")
            return outcome
        }
        for round in 1...4 {
            for environment in [[:], off] { _ = try run("exec", "db", insert, environment: environment) }
            for environment in [[:], off] {
                let output = try run("query", "db", query, environment: environment).output
                #expect(output.contains("\(round * 1000)") && output.contains("\(round * 2_505_000)"))
            }
        }
        for environment in [[:], off] { _ = try run("verify", "db", "--deep", environment: environment) }
    }
}
