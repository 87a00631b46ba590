import Foundation
import Testing

/// What `sealdb status` does where something keeps it from knowing all.
@Suite(.hangLimit, .enabled(if: isEncrypting, "the plain build takes no key"))
struct StatusProblemTests {
    private let sandbox: Sandbox
    private let environment: [String: String?]

    init() throws {
        sandbox = try Sandbox()
        environment = ["SEALDB_CONFIG": sandbox.path("c.conf")]
        try sandbox.makeKey("a.key")
        try configure([sandbox.path("*.db")])
        try run(0, "create", "a.db")
    }

    /// - Parameters:
    ///   - key: the line that says where the key of each store is.
    ///   - more: lines of the defaults.
    private func configure(_ stores: [String], key: String = "key-file = {dir}/a.key", more: String = "") throws {
        let sections = stores.map { "[store \"\($0)\"]\n\(key)\n" }.joined()
        try sandbox.write("c.conf", "[defaults]\nstate-directory = \(sandbox.path("state"))\n\(more)\(sections)")
    }

    @discardableResult
    private func run(
        _ status: Int32,
        _ arguments: String...,
        location: SourceLocation = #_sourceLocation
    ) throws -> Outcome {
        let outcome = try sandbox.run([Tool.sealdb] + arguments, environment: environment)
        #expect(outcome.status == status, "\(arguments): \(outcome)", sourceLocation: location)
        return outcome
    }

    /// A directory in which a name is no text.
    private func makeOddDirectory() throws -> String {
        #expect(try sandbox.run(["bash", "-c", "mkdir odd && touch odd/$'a\\xff.db'"]).status == 0)
        return sandbox.path("odd/*.db")
    }

    @Test func noStoreCanBeFound() throws {
        try configure([makeOddDirectory()])
        let outcome = try run(66, "status", "--all")
        #expect(outcome.error.contains("No store can be found: ") && outcome.error.contains("not UTF-8"), "\(outcome)")
        let told = try run(66, "status", "--all", "--json")
        #expect(told.lines.count == 1 && told.output.contains(#""exitCode":66"#), "\(told)")
        try configure([sandbox.path("*.nothing")])
        #expect(try run(66, "status", "--all").error.contains("No store on disk belongs to a section"))
    }

    /// What is due of one does not make up for what is not seen.
    @Test func oneIsNotSeen() throws {
        let patterns = [try makeOddDirectory(), sandbox.path("*.db")]
        try configure(patterns)
        #expect(try run(2, "status", "--all").error.contains("not UTF-8"))
        try configure(patterns, more: "verify-after = 7d\n")
        #expect(try run(2, "status", "--all").output.contains("due: verification"))
    }

    /// Who reads the file takes it for all that is known.
    @Test func aSignalLeavesTheMetricsAsTheyAre() throws {
        try run(0, "status", "--all", "--prometheus", "metrics")
        let before = try sandbox.contents("metrics")
        #expect(!before.isEmpty)
        let program = try sandbox.writeProgram("key", "#!/bin/sh\nkill -TERM $PPID\ncat '\(sandbox.path("a.key"))'\n")
        // That something is not seen weighs less.
        try configure([makeOddDirectory(), sandbox.path("*.db")], key: "key-command = \(program)")
        let outcome = try sandbox.run(
            [Tool.sealdb, "status", "--all", "--prometheus", "metrics"],
            environment: environment
        )
        #expect(outcome.status == 128 + SIGTERM, "\(outcome)")
        #expect(try sandbox.contents("metrics") == before)
    }

    /// Not all was compared, so it was no deep verification.
    @Test func aTableThatCouldNotBeCompared() throws {
        func isDeep() throws -> Bool? {
            let line = try #require(try run(0, "status", "--stores", "a.db", "--json").lines.first)
            return try #require(try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any])["isDeep"]
                as? Bool
        }
        try run(0, "verify", "a.db", "--deep")
        #expect(try isDeep() == true)
        try run(
            0,
            "exec",
            "a.db",
            "CREATE VIRTUAL TABLE f USING fts4(content='', x); INSERT INTO f (docid, x) VALUES (1, 'a')"
        )
        #expect(try run(0, "verify", "a.db", "--deep").output.contains("f: not compared"))
        #expect(try isDeep() == false)
    }
}
