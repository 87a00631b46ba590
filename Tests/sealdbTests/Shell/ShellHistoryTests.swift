import Foundation
import Testing

@testable import sealdb

@Suite(.hangLimit)
struct ShellHistoryTests {
    @Test(
        arguments: [
            ("SELECT a,b FROM t WHERE a = 1234;", "SELECT a,b FROM t WHERE a = 1234;"),
            ("\nSELECT a\n\tFROM `t 1`\n WHERE :x IS NULL;\n", "SELECT a FROM `t 1` WHERE :x IS NULL;"),
            ("SELECT 'secret';", nil),
            ("SELECT \"secret\";", nil),
            ("SELECT x'00';", nil),
            ("SELECT 1; -- secret", nil),
            ("SELECT /* secret */ 1;", nil),
            ("-- secret\nSELECT 1;", nil),
            ("SELECT 12345;", nil),
            ("SELECT 1.234;", nil),
            ("SELECT 0x123;", nil),
            ("SELECT cafe0123456789ab;", nil),
            ("SELECT [CAFE0123456789AB];", "SELECT [CAFE0123456789AB];"),
            ("SELECT abcdefghijklmnopqrstuvwxyzabcdefghijklmn;", nil),
            ("SELECT abcdefghijklmnopqrstuvwxyzabcdefghijklm;", "SELECT abcdefghijklmnopqrstuvwxyzabcdefghijklm;"),
            ("SELECT `a\nb`;", nil),
            ("SELECT \u{1}1;", nil),
            ("SELECT 'open", nil),
            ("PRAGMA kye = hunter;", nil),
            ("PRAGMA kye(hunter);", nil),
            ("PRAGMA table_list;", "PRAGMA table_list;"),
            ("CREATE TABLE t (a DEFAULT hunter);", nil),
            (" ", nil),
        ] as [(String, String?)]
    )
    func onlyWhatHoldsNoValue(sql: String, entry: String?) {
        #expect(ShellHistory.entry(of: sql) == entry)
    }

    @Test func commandsWithoutTexts() {
        #expect(ShellHistory.entry(ofCommand: "tables", ".tables", []) == ".tables")
        #expect(ShellHistory.entry(ofCommand: "read", ".read f.sql", ["f.sql"]) == ".read f.sql")
        #expect(ShellHistory.entry(ofCommand: "tables", ".tables x", ["x"]) == nil)
        #expect(ShellHistory.entry(ofCommand: "read", "", [String(repeating: "a1", count: 32)]) == nil)
        for name in ["nullvalue", "parameter", "print"] {
            #expect(ShellHistory.entry(ofCommand: name, ".\(name) x", ["x"]) == nil)
        }
    }

    @Test func aPipeIsNoHistory() throws {
        let sandbox = try Sandbox()
        #expect(mkfifo(sandbox.path("h"), 0o600) == 0)
        let history = ShellHistory(path: sandbox.path("h"))
        history.add("SELECT 1;")
        #expect(history.entries == ["SELECT 1;"])
    }

    @Test func paths() {
        #expect(ShellHistory.path(["SEALDB_HISTORY": "x", "HOME": "/h"]) == "x")
        #expect(ShellHistory.path(["SEALDB_HISTORY": "", "HOME": "/h"]) == nil)
        #expect(ShellHistory.path(["XDG_STATE_HOME": "/s", "HOME": "/h"]) == "/s/sealdb/history")
        #expect(ShellHistory.path(["XDG_STATE_HOME": "s", "HOME": "/h"]) == "/h/.local/state/sealdb/history")
        #expect(ShellHistory.path(["HOME": "h"]) == nil)
    }

    @Test func theLastEntriesAreKept() throws {
        let sandbox = try Sandbox()
        let history = ShellHistory(path: sandbox.path("h"))
        for number in 0...2 * ShellHistory.capacity { history.add("SELECT \(number);") }
        history.add("SELECT 2000;")
        let next = ShellHistory(path: sandbox.path("h"))
        #expect(next.entries.count == ShellHistory.capacity)
        #expect(next.entries.first == "SELECT 1001;" && next.entries.last == "SELECT 2000;")
        // The file was longer than twice of that, and is short now.
        let lines = [ShellHistory.mark] + (1001...2000).map { "SELECT \($0);" }
        #expect(try sandbox.contents("h") == Data((lines.joined(separator: "\n") + "\n").utf8))
        #expect(try sandbox.mode("h") == 0o600)
        next.add("SELECT 1;")
        #expect(ShellHistory(path: sandbox.path("h")).entries.last == "SELECT 1;")
    }

    @Test func linksAreNotFollowed() throws {
        let sandbox = try Sandbox()
        try FileManager.default.createSymbolicLink(atPath: sandbox.path("h"), withDestinationPath: sandbox.path("o"))
        ShellHistory(path: sandbox.path("h")).add("SELECT 1;")
        #expect(!sandbox.exists("o"))
    }

    @Test func entriesThatWouldControlATerminalAreLeftOut() throws {
        let sandbox = try Sandbox()
        try sandbox.write("h", ShellHistory.mark + "\nSELECT 1;\n\u{1b}[2J\nSELECT 2;\n")
        #expect(ShellHistory(path: sandbox.path("h")).entries == ["SELECT 1;", "SELECT 2;"])
    }
}

@Suite(.hangLimit)
struct CompletionTests {
    private func complete(_ line: String, _ names: String...) -> Completion { Completion(of: line) { names } }

    @Test func oneMatchIsInserted() {
        let completion = complete("select * from PEO", "people", "other")
        #expect(completion.deletedCount == 3 && completion.inserted == "people " && completion.choices.isEmpty)
        #expect(complete("select a.na", "name").inserted == "name ")
        #expect(complete(".schema pe", "people").inserted == "people ")
        #expect(complete("x = né", "née").inserted == "née ")
        #expect(complete("x = né", "née").deletedCount == 2)
    }

    @Test func namesThatNeedQuotesGetThem() {
        #expect(complete("from my", "my \"table\"").inserted == "\"my \"\"table\"\"\" ")
    }

    @Test func keywordsFollowTheCaseOfTheWord() {
        #expect(complete("savep").inserted == "savepoint ")
        #expect(complete("SAVEP").inserted == "SAVEPOINT ")
    }

    @Test func severalMatchesAreExtendedThenShown() {
        #expect(complete("zz", "zzabc", "zzabd").inserted == "zzab")
        let choices = complete("zzab", "zzabd", "zzabc", "zzabc")
        #expect(choices.inserted.isEmpty && choices.choices == "zzabc  zzabd\n")
    }

    @Test func commands() {
        #expect(complete(".ti").inserted == ".timer ")
        #expect(complete(".no").choices.isEmpty && complete(".no").inserted.isEmpty)
        #expect(complete("").inserted.isEmpty && complete("select ", "a").choices.isEmpty)
    }

    /// Half of a name that needs quotes would be something else.
    @Test func commonStartsAreOnlyThoseOfNames() {
        let hostile = complete("select zz", "zz; DELETE FROM t; --1", "zz; DELETE FROM t; --2")
        #expect(hostile.inserted.isEmpty && hostile.choices.contains("--1"))
    }

    @Test(arguments: ["INSERT INTO t VALUES ('zz", "SELECT \"zz", "SELECT [zz", "SELECT 1 -- zz", "SELECT 1 /* zz"])
    func withinTextsATabIsATab(line: String) {
        let completion = complete(line, "zzabc")
        #expect(completion.inserted == "\t" && completion.deletedCount == 0)
        let second = Completion(of: "zz", after: line + "\n") { ["zzabc"] }
        #expect(second.inserted == (line.contains("--") ? "zzabc " : "\t"))
    }

    @Test func namesThatWouldControlTheTerminalAreLeftOut() {
        #expect(complete("zz", "zz\u{1b}[2J").inserted.isEmpty)
    }
}
