import Foundation
import Testing

@testable import sealdb

/// A file that is no history is somebody's own, and stays as it is.
@Suite(.hangLimit)
struct ForeignHistoryTests {
    private let sandbox: Sandbox

    init() throws {
        sandbox = try Sandbox()
    }

    private func history(_ name: String = "h") -> ShellHistory { ShellHistory(path: sandbox.path(name)) }

    private func text(_ name: String = "h") throws -> String {
        String(decoding: try sandbox.contents(name), as: UTF8.self)
    }

    @Test(
        arguments: [
            Data("SELECT 1;\n".utf8), Data("-- History of sealdb shell".utf8),
            Data("-- History of sealdb shells\nSELECT 1;\n".utf8), Data("\n-- History of sealdb shell\n".utf8),
            Data("-- History of sealdb shell\nSELECT 1;\n".utf8) + [0xff, 0x0a], Data(count: 4096),
        ] as [Data]
    )
    func whatIsNoHistoryIsLeftAlone(contents: Data) throws {
        try sandbox.write("h", contents)
        let history = history()
        #expect(history.entries.isEmpty)
        history.add("SELECT 2;")
        history.add("SELECT 3;")
        #expect(try sandbox.contents("h") == contents)
        #expect(try sandbox.names() == ["h"])
    }

    @Test func aLongFileThatIsNoHistoryIsNotShortened() throws {
        let lines = (0...2 * ShellHistory.capacity).map { "line \($0)\n" }.joined()
        try sandbox.write("h", lines)
        history().add("SELECT 1;")
        #expect(try text() == lines)
        #expect(try sandbox.names() == ["h"])
    }

    /// Who uses the store would take it for a part of that.
    @Test(arguments: ["db-wal", "db-journal", "db-shm", "db-sealdb-lock", "db.slots", "db.slots.2"])
    func aNameThatBelongsToAStoreIsLeftAlone(name: String) throws {
        try sandbox.write("db", Data(count: 4096))
        history(name).add("SELECT 1;")
        #expect(try sandbox.names() == ["db"])
        // Not even one that is a history.
        let former = ShellHistory.mark + "\nSELECT 2;\n"
        try sandbox.write(name, former)
        history(name).add("SELECT 1;")
        #expect(try text(name) == former)
        // Without a store it is a name like any other.
        #expect(unlink(sandbox.path("db")) == 0)
        history(name).add("SELECT 1;")
        #expect(try text(name) == former + "SELECT 1;\n")
    }

    @Test(arguments: ["", "-- History of sealdb shell\nSELECT 1;\n"])
    func aFileThatTookThePlaceOfTheHistoryIsLeftAlone(former: String) throws {
        try sandbox.write("h", former)
        let history = history()
        try sandbox.write("notes", "mine\n")
        #expect(rename(sandbox.path("notes"), sandbox.path("h")) == 0)
        history.add("SELECT 2;")
        #expect(try text() == "mine\n")
        // The name is not tried again.
        #expect(unlink(sandbox.path("h")) == 0)
        history.add("SELECT 3;")
        #expect(try sandbox.names().isEmpty)
    }

    @Test(arguments: [true, false])
    func aNewHistoryGetsTheMark(exists: Bool) throws {
        if exists { try sandbox.write("h", "") }
        // Two shells that have found none.
        let histories = [history(), history()]
        histories[0].add("SELECT 1;")
        histories[1].add("SELECT 2;")
        #expect(try text() == "-- History of sealdb shell\nSELECT 1;\nSELECT 2;\n")
        #expect(history().entries == ["SELECT 1;", "SELECT 2;"])
    }

    @Test func marksAreNoEntries() throws {
        try sandbox.write("h", "-- History of sealdb shell\nSELECT 1;\n-- History of sealdb shell\nSELECT 2;\n")
        #expect(history().entries == ["SELECT 1;", "SELECT 2;"])
    }
}

/// The same with somebody at the shell, who is told.
@Suite(.hangLimit, .enabled(if: isEncrypting, "the plain build takes no key"))
struct ForeignHistoryTerminalTests {
    private let sandbox: Sandbox

    init() throws {
        sandbox = try Sandbox()
        try sandbox.makeStore()
    }

    private func awaitPrompt(_ terminal: Terminal) throws {
        try terminal.expect("sealdb> ")
        // The editor shows its prompt before it takes over the terminal.
        while terminal.isCooked { try #require(terminal.isRunning) }
    }

    /// Runs a statement that is one for the history.
    /// - Returns: all that was shown.
    private func transcript(history: String) throws -> String {
        let terminal = try Terminal(
            [Tool.sealdb, "shell", "db", "--key-file", "key"],
            directory: sandbox.directory,
            environment: [
                "TERM": "xterm", "HOME": sandbox.directory, "XDG_STATE_HOME": nil, "SEALDB_HISTORY": history,
                "SWIFT_BACKTRACE": "enable=no",
            ]
        )
        try awaitPrompt(terminal)
        for _ in 0..<2 {
            terminal.type("SELECT 40 + 2 AS n;\n")
            try terminal.expect("\r\n42\r\n")
            try awaitPrompt(terminal)
        }
        terminal.type("\u{4}")
        #expect(terminal.wait() == 0, "\(terminal.transcript)")
        return terminal.transcript
    }

    private func contents(_ name: String) throws -> Data? {
        try sandbox.exists(name) ? sandbox.contents(name) : nil
    }

    @Test func aHistoryIsAddedTo() throws {
        let shown = try transcript(history: "h")
        #expect(!shown.contains("is not used"), "\(shown)")
        #expect(try sandbox.contents("h") == Data("-- History of sealdb shell\nSELECT 40 + 2 AS n;\n".utf8))
    }

    /// By its own name or by a link: whoever names it wants no history.
    @Test(arguments: ["/dev/null", "null"])
    func theNullDeviceKeepsNoneAndIsNotTold(name: String) throws {
        try FileManager.default.createSymbolicLink(atPath: sandbox.path("null"), withDestinationPath: "/dev/null")
        let names = try sandbox.names()
        let shown = try transcript(history: name)
        #expect(!shown.contains("history"), "\(shown)")
        #expect(try sandbox.names() == names)
    }

    @Test(arguments: ["db", "other", "key", "notes", "broken", "other-wal", "other.slots"])
    func aFileOfAnotherKindIsUnchangedAndTold(name: String) throws {
        try FileManager.default.copyItem(atPath: sandbox.path("db"), toPath: sandbox.path("other"))
        try sandbox.write("notes", "SELECT 1;\n")
        try sandbox.write("broken", Data("-- History of sealdb shell\n".utf8) + [0xff, 0x0a])
        let names = try sandbox.names()
        let before = try contents(name)
        let shown = try transcript(history: name)
        #expect(shown.ranges(of: "The history in \(name) is not used: ").count == 1, "\(shown)")
        #expect(try sandbox.names() == names)
        #expect(try contents(name) == before)
    }
}
