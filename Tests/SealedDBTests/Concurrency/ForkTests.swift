import Foundation
import Testing

@testable import SealedDB

@Suite(.hangLimit)
struct ForkTests {
    /// A child that came about by `fork()` has its parent's connections, and would spoil their files and locks. It is told,
    /// and the parent notices nothing.
    @Test func aChildIsToldAndSpoilsNothing() throws {
        let directory = try TemporaryDirectory()
        let outcome = try Probe.run("CipherProbe", "fork", directory.path)
        #expect(outcome.status == 0, "\(outcome.errors)")
        let ofChild = [String](repeating: "Optional(true)", count: 11) + ["false"]
        #expect(
            outcome.lines == ["true", "true", "true", "nil", "true", "true", "true", "true", "true"] + ofChild + [
                "true", "true false", "true false", "Optional(2)", "true", "Optional(2)", "Optional(3)", "true true",
            ],
            "\(outcome.lines)"
        )
        for name in ["queue", "pool", "single"] {
            let database = Database(path: directory.file(name))
            try database.openVerified()
            #expect(try database.integers("SELECT count(*) FROM t") == [name == "queue" ? 2 : 3])
            #expect(try database.executeQuery("PRAGMA integrity_check").scalar(String.self) == "ok")
        }
    }
}
