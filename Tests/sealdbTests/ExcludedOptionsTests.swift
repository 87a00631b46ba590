import Foundation
import Testing

@testable import sealdb

/// Options that exclude each other, and values that are none.
@Suite(.hangLimit, .enabled(if: isEncrypting, "the plain build takes no key"))
struct ExcludedOptionsTests {
    private let sandbox: Sandbox
    private let rotation = ["rotate", "db", "--key-file", "key", "--new-key-file", "new"]

    init() throws {
        sandbox = try Sandbox()
        try sandbox.makeStore()
        try sandbox.makeKey("new")
    }

    private func fail(_ arguments: [String], _ text: String, location: SourceLocation = #_sourceLocation) throws {
        let before = try sandbox.names()
        let outcome = try sandbox.run([Tool.sealdb] + arguments)
        #expect(outcome.status == 64, "\(arguments): \(outcome)", sourceLocation: location)
        #expect(outcome.error.contains(text), "\(arguments): \(outcome)", sourceLocation: location)
        #expect(outcome.output.isEmpty, sourceLocation: location)
        #expect(try sandbox.names() == before, sourceLocation: location)
        #expect(try sandbox.keys(opening: "db") == ["key"], sourceLocation: location)
    }

    @Test(arguments: ["--keep-old", "--replace-key-files"]) func endingsOfFileNames(option: String) throws {
        try fail(rotation + ["\(option)=a/b"], "takes the ending of a file name")
        // The option that the one with a value stands for.
        let hidden = option == "--keep-old" ? "--keep-old-suffix" : "--former-key-suffix"
        try fail(rotation + [hidden, ""], "takes the ending of a file name")
        try fail(rotation + ["\(option)="], "Missing value")
    }

    @Test(arguments: ["--from-file", "--from0"]) func aListBesideAStoreAndItsBackup(option: String) throws {
        try sandbox.write("list", "db\n")
        try fail(["backup", "db", "copy", "--key-file", "key", option, "list"], "Give a store and its backup")
    }

    @Test func whatIsPrintedInTwoForms() throws {
        try fail(["exec", "db", "SELECT 1", "--key-file", "key", "--json", "--format", "csv"], "exclude each other")
        for option in ["--quiet", "--json"] {
            try fail(["diff", "db", "db", "--key-file", "key", "--sql", option], "excludes --json and --quiet")
        }
    }

    @Test func optionsOfAnotherFormat() throws {
        try sandbox.write("rows.json", "[]")
        let arguments = ["import", "db", "people", "rows.json", "--append", "--key-file", "key"]
        try fail(arguments + ["--no-header"], "--no-header is for CSV and TSV")
        try fail(arguments + ["--null", "x"], "--null is for CSV and TSV")
        try sandbox.write("rows.csv", "1,2\n")
        let new = ["import", "db", "new", "rows.csv", "--key-file", "key", "--no-header"]
        try fail(new, "a new table needs --columns")
    }

    /// Nothing was begun of which the journal could know, so nothing is rotated.
    @Test func goingOnWithWhatNobodyHasBegun() throws {
        let outcome = try sandbox.run([Tool.sealdb] + rotation + ["--resume-only"])
        #expect(outcome.status != 0, "\(outcome)")
        #expect(try sandbox.keys(opening: "db") == ["key"])
    }

    /// A key that the environment gives to all commands is not one that was given to this one.
    @Test func theEnvironmentNamesAKeyThatIsNotNeeded() throws {
        try sandbox.succeed("exec", "db", "PRAGMA journal_mode = WAL", "--key-file", "key")
        try sandbox.succeed("replicate", "db", "--to", "repository", "--key-file", "key", "--once")
        let environment = ["SEALDB_KEY_FILE": sandbox.path("key")]
        let outcome = try sandbox.run(
            [Tool.sealdb, "restore", "--from", "repository", "restored"],
            environment: environment
        )
        #expect(outcome.status == 0, "\(outcome)")
        #expect(try sandbox.census(keyFile: "key", store: "restored").output == Sandbox.wholeStore)
        try fail(
            ["restore", "--from", "repository", "other", "--key-file", "key"],
            "--from needs no key: leave --key-file"
        )
    }

    /// Whoever gives a device has opened it.
    @Test func aKeyMapThatIsADevice() throws {
        let outcome = try sandbox.sealdb("verify", "db", "--key-map", "/dev/null")
        #expect(outcome.status != 0 && !outcome.error.contains("may be changed by other users"), "\(outcome)")
        try sandbox.write("map", "db\tkey-file:key\n", mode: 0o666)
        let refused = try sandbox.sealdb("verify", "db", "--key-map", "map")
        #expect(refused.error.contains("may be changed by other users"), "\(refused)")
    }

    /// Digits of other scripts are no time of day.
    @Test(arguments: ["٠٥:٣٠", "１２:３０", "①②:③④", "0٥:30"]) func digitsThatAreNotASCII(text: String) {
        #expect(Deadline(text) == nil)
    }
}
