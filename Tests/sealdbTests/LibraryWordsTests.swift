import Foundation
import Testing

@testable import sealdb

/// What people read speaks of the command and its options, not of the library's types and calls.
@Suite(.hangLimit)
struct LibraryWordsTests {
    private static let words = [
        "CipherSettings", "cipherSettings", "rotateKey", "KeyRotation", "KeySource", "Configuration's", "StoreRestore",
        "StoreOpening", "DatabaseError", "closure", "inDatabase", "openVerified", "nil ",
    ]

    /// Texts in the command's own sources, which are what it prints.
    @Test func noneInTheCommandsTexts() throws {
        let sources = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent().appendingPathComponent("Sources/sealdb")
        let files = try #require(FileManager.default.enumerator(at: sources, includingPropertiesForKeys: nil))
        var count = 0
        for case let file as URL in files where file.pathExtension == "swift" {
            count += 1
            for line in try String(contentsOf: file, encoding: .utf8).split(separator: "\n") {
                let code = line.drop { $0 == " " }
                guard code.contains("\""), !code.hasPrefix("//") else { continue }
                // What stands between quotes, without what is put in.
                let texts = code.split(separator: "\"", omittingEmptySubsequences: false).enumerated()
                    .filter { $0.offset % 2 == 1 && !$0.element.contains("\\(") }.map(\.element)
                for text in texts {
                    for word in LibraryWordsTests.words where text.contains(word) {
                        #expect(Bool(false), "\(file.lastPathComponent): \(text)")
                    }
                }
            }
        }
        #expect(count > 80)
    }

    /// What the library says of a store that is in use, or that has other settings, is said by the command, too.
    @Test(.enabled(if: isEncrypting, "the plain build takes no key"))
    func noneInTheLibrarysMessages() throws {
        let sandbox = try Sandbox()
        try sandbox.makeStore()
        try sandbox.makeKey("new")
        let user = try sandbox.connection()
        let inUse = try sandbox.fail(75, "rotate", "db", "--key-file", "key", "--new-key-file", "new")
        user.close()
        try sandbox.succeed("create", "odd", "--key-file", "key", "--page-size", "8192")
        let odd = try sandbox.fail(78, "query", "odd", "SELECT 1", "--key-file", "key")
        let plain = try sandbox.sealdb("query", "key", "SELECT 1", "--key-file", "key")
        let wrong = try sandbox.fail(77, "query", "db", "SELECT 1", "--key-file", "new")
        let info = try sandbox.succeed("info", "odd", "--key-file", "key")
        for text in [inUse.error, odd.error, plain.error, wrong.error, info.output] {
            for word in LibraryWordsTests.words { #expect(!text.contains(word), "\(text)") }
        }
    }

    @Test func grammarOfNumbers() {
        #expect([0, 1, 2].map { $0.counted("page") } == ["0 pages", "1 page", "2 pages"])
    }

    /// An example that the help breaks in two cannot be pasted: at 80 columns, what follows begins at the margin.
    @Test func examplesOfTheHelpAreWhole() throws {
        let sandbox = try Sandbox()
        for type in SealdbCommand.configuration.subcommands {
            let name = try #require(type.configuration.commandName)
            let lines = try sandbox.succeed("help", name).output.components(separatedBy: "\n")
            let overview = lines.prefix { !$0.hasPrefix("USAGE:") }
            for (line, next) in zip(overview, overview.dropFirst()) where line.hasPrefix("  sealdb ") {
                #expect(next.isEmpty || next.hasPrefix("  "), "\(name): \(line)")
            }
        }
    }
}
