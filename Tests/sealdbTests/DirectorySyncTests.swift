import Foundation
import Testing

/// A file that is there before a power failure is there after it only once its directory is synced.
@Suite(.hangLimit, .enabled(if: isEncrypting, "the plain build takes no key"))
struct DirectorySyncTests {
    private let sandbox: Sandbox

    init() throws {
        sandbox = try Sandbox()
        try sandbox.makeStore()
        try sandbox.makeKey("other")
    }

    /// What the command needs beside a store and two keys.
    private func prepare(_ command: [String]) throws {
        if command.contains("ring") { try sandbox.succeed("keyring", "create", "ring", "first") }
        if command.contains("copy") { try sandbox.succeed("backup", "db", "copy", "--key-file", "key") }
        guard command.contains("plain") else { return }
        try sandbox.succeed("decrypt", "db", "plain", "--key-file", "key", "--allow-plaintext")
    }

    /// Each puts a file in the directory, and says so when it ends.
    @Test(arguments: [
        ["create", "new", "--key-file", "key"], ["keygen", "new"], ["keyring", "create", "new", "first"],
        ["keyring", "add", "ring", "second"], ["backup", "db", "new", "--key-file", "key"],
        ["restore", "copy", "new", "--key-file", "key"], ["restore", "copy", "db", "--key-file", "key", "--replace"],
        ["encrypt", "plain", "new", "--key-file", "key"],
        ["decrypt", "db", "new", "--key-file", "key", "--allow-plaintext"],
        ["rotate", "db", "--key-file", "key", "--new-key-file", "other"],
        ["rotate", "db", "--key-file", "key", "--new-key-file", "other", "--keep-old"],
    ])
    func theDirectoryIsSyncedLast(command: [String]) throws {
        try prepare(command)
        let names = "rename,renameat,renameat2,link,linkat"
        let strace = ["strace", "-f", "-qq", "-y", "-o", "trace", "-e", "trace=\(names),fsync,fdatasync"]
        let outcome = try sandbox.run(strace + [Tool.sealdb] + command)
        #expect(outcome.status == 0, "\(outcome.error)")
        let calls = String(decoding: try sandbox.contents("trace"), as: UTF8.self).split(separator: "\n")
        let directory = URL(fileURLWithPath: sandbox.directory).resolvingSymlinksInPath().path
        let synced = calls.lastIndex { $0.contains("sync(") && $0.contains("<\(directory)>") && $0.hasSuffix("= 0") }
        let named = calls.lastIndex { $0.contains(" rename") || $0.contains(" link") }
        #expect(try #require(synced, "\(calls)") > named ?? -1, "\(calls)")
    }
}
