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

    @Test func json() throws {
        let sandbox = try Sandbox()
        let report = try JSONDecoder().decode(EngineInfo.self, from: try sandbox.succeed("doctor", "--json").outputData)
        #expect(report.isEncrypting == isEncrypting)
        #expect(report.sqliteVersion == EngineInfo.current().sqliteVersion)
        #expect(report.checks.allSatisfy { $0.passed })
        #expect(report.noticesDamagedPages == isEncrypting)
    }
}
