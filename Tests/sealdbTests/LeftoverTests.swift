import Foundation
import Testing

@testable import SealedDB

/// What a killed process left is removed, and nothing else that is called alike.
@Suite(.hangLimit, .enabled(if: isEncrypting, "the plain build takes no key"))
struct LeftoverTests {
    @Test(arguments: [
        ["rotate", "db", "--key-file", "key", "--new-key-file", "new"],
        ["backup", "db", "--key-file", "key", "made"],
        ["create", "made", "--key-file", "key"],
        ["keygen", "made"], ["restore", "copy", "made", "--key-file", "key"],
        ["restore", "copy", "db", "--key-file", "key", "--replace"],
    ])
    func onlyOurOwn(command: [String]) throws {
        let sandbox = try Sandbox()
        try sandbox.makeStore()
        try sandbox.makeKey("new")
        try sandbox.succeed("backup", "db", "copy", "--key-file", "key")
        let target = command.contains("made") ? "made" : "db"
        let left = try TemporaryFile.path(beside: sandbox.path(target))
        try Data("half".utf8).write(to: URL(fileURLWithPath: left))
        let own = ".\(target).sealdb-before-upgrade"
        try sandbox.write(own, "somebody's own backup")
        let outcome = try sandbox.run([Tool.sealdb] + command)
        #expect(outcome.status == 0, "\(outcome.error)")
        #expect(!FileManager.default.fileExists(atPath: left))
        #expect(try sandbox.contents(own) == Data("somebody's own backup".utf8))
    }
}
