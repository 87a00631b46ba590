import Foundation
import Testing

/// What goes to the journal of systemd has a priority on each line.
@Suite(.hangLimit)
struct JournalPriorityTests {
    private let sandbox: Sandbox

    init() throws { sandbox = try Sandbox() }

    /// - Parameter stream: a shell word for the variable.
    private func error(_ stream: String, _ arguments: String) throws -> [String] {
        try sandbox.write("err", "")
        let script = "JOURNAL_STREAM=\(stream) exec \(Tool.sealdb) \(arguments) 2>>err"
        let outcome = try sandbox.run(["sh", "-c", script])
        #expect(outcome.status != 0)
        return String(decoding: try sandbox.contents("err"), as: UTF8.self).split(separator: "\n").map(String.init)
    }

    @Test func prioritiesOfErrors() throws {
        let lines = try error("$(stat -c %d:%i err)", "info a b --continue-on-error")
        #expect(lines.count == 2 && lines.allSatisfy { $0.hasPrefix("<3>sealdb: ") }, "\(lines)")
        // Each line of a message is one of its own there.
        let usage = try error("$(stat -c %d:%i err)", "info --no-such-option")
        #expect(usage.count > 1 && usage.allSatisfy { $0.hasPrefix("<3>") }, "\(usage)")
    }

    @Test func noneElsewhere() throws {
        for stream in ["1:1", "$(stat -c %d:%i .)", "''", "x"] {
            let lines = try error(stream, "info a")
            #expect(lines.count == 1 && lines[0].hasPrefix("sealdb: "), "\(lines)")
        }
    }
}
