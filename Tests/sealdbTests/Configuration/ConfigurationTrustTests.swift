import Foundation
import Testing

@testable import sealdb

/// A configuration that somebody else could have written is refused, whatever the command.
@Suite(.hangLimit)
struct ConfigurationTrustTests {
    private let sandbox: Sandbox

    init() throws {
        sandbox = try Sandbox()
        try FileManager.default.createDirectory(atPath: sandbox.path("etc"), withIntermediateDirectories: false)
        try chmod("etc", 0o755)
        try sandbox.write("etc/c.conf", "[defaults]\nlock-wait = 0\n", mode: 0o644)
    }

    private func chmod(_ name: String, _ mode: Int) throws {
        try FileManager.default.setAttributes([.posixPermissions: mode], ofItemAtPath: sandbox.path(name))
    }

    private func link(_ name: String, to target: String) throws {
        try FileManager.default.createSymbolicLink(atPath: sandbox.path(name), withDestinationPath: target)
    }

    private func refuse(_ file: String, _ reason: String, location: SourceLocation = #_sourceLocation) throws {
        for arguments in [
            ["query", "db", "SELECT 1", "--key-file", "key", "--config", file], ["config", "check", file],
            ["config", "show", "db", "--config", file],
        ] {
            let outcome = try sandbox.run([Tool.sealdb] + arguments)
            #expect(outcome.status == 78 && outcome.output.isEmpty, "\(outcome)", sourceLocation: location)
            #expect(outcome.error.contains(reason), "\(outcome.error)", sourceLocation: location)
        }
    }

    @Test func theFileItself() throws {
        try sandbox.succeed("config", "check", "etc/c.conf")
        for mode in [0o664, 0o646] {
            try chmod("etc/c.conf", mode)
            try refuse("etc/c.conf", "changed by other users")
        }
        try refuse("etc/absent", "does not exist")
        try refuse("etc", "is a directory")
        try refuse("etc/c.conf/x", "does not exist")
        #expect(mkfifo(sandbox.path("etc/pipe"), 0o600) == 0)
        try refuse("etc/pipe", "not a regular file")
        try refuse("/dev/zero", "not a regular file")
        try sandbox.write("etc/large", String(repeating: "#\n", count: 1 << 19) + "#")
        try refuse("etc/large", "more than a megabyte")
        try sandbox.write("etc/binary", Data([0x23, 0xff, 0x0a]))
        try refuse("etc/binary", "not UTF-8")
    }

    @Test func itsDirectories() throws {
        for (mode, reason) in [
            (0o775, "etc may be written to by other users"), (0o777, "etc may be written to by other users"),
            (0o1777, "lies in a directory that other users may write to"),
        ] {
            try chmod("etc", mode)
            try refuse("etc/c.conf", reason)
        }
        try chmod("etc", 0o755)
        try FileManager.default.createDirectory(atPath: sandbox.path("etc/in"), withIntermediateDirectories: false)
        try sandbox.write("etc/in/c.conf", "")
        try chmod("etc/in", 0o755)
        try chmod("etc", 0o777)
        try refuse("etc/in/c.conf", "etc may be written to by other users")
        // As /tmp is: what is in it cannot be renamed by others.
        try chmod("etc", 0o1777)
        try sandbox.succeed("config", "check", "etc/in/c.conf")
    }

    @Test func links() throws {
        try link("good", to: "etc/c.conf")
        try sandbox.succeed("config", "check", "good")
        try link("absolute", to: sandbox.path("etc/../good"))
        try sandbox.succeed("config", "check", "absolute")
        // One that may be missing is not missing if there is a link in its place.
        try link("etc/dangling", to: "absent")
        #expect(throws: Failure.self) {
            try ConfigurationFile.load(sandbox.path("etc/dangling"), isOptional: true)
        }
        #expect(try ConfigurationFile.load(sandbox.path("etc/absent"), isOptional: true)?.path == nil)
        try link("loop", to: "loop")
        try refuse("loop", "too many links")
        try FileManager.default.createDirectory(atPath: sandbox.path("open"), withIntermediateDirectories: false)
        try link("open/c.conf", to: "../etc/c.conf")
        try chmod("open", 0o777)
        try refuse("open/c.conf", "open may be written to by other users")
        try chmod("open", 0o1777)
        try refuse("open/c.conf", "is a link in a directory that other users may write to")
    }

    /// A file that cannot be looked at is not taken for one that is missing.
    @Test func eachCallFails() throws {
        let directory = URL(fileURLWithPath: sandbox.path("etc")).resolvingSymlinksInPath().path
        let path = directory + "/c.conf"
        let count = CallWatch(directory)
        #expect(try ConfigurationFile.load(path, isOptional: true)?.defaults.lockWait == 0)
        let calls = count.endWithAll()
        #expect(calls.contains { $0.hasPrefix("open") }, "\(calls)")
        for code in [EIO, EACCES, ELOOP] {
            for index in calls.indices {
                let watch = CallWatch(directory, failing: index...index, code: code)
                let result = Result { try ConfigurationFile.load(path, isOptional: true) }
                let call = watch.end(describing: index) ?? "a call that was not made"
                switch result {
                case .success(let file): #expect(file?.defaults.lockWait == 0, "\(call)")
                case .failure(let error): #expect((error as? Failure)?.status == .configuration, "\(call): \(error)")
                }
            }
        }
    }

    @Test(.enabled(if: geteuid() == 0, "needs root")) func ownedByAnother() throws {
        #expect(chown(sandbox.path("etc/c.conf"), 65534, 65534) == 0)
        try refuse("etc/c.conf", "belongs to another user")
        #expect(chown(sandbox.path("etc/c.conf"), 0, 0) == 0 && chown(sandbox.path("etc"), 65534, 65534) == 0)
        try refuse("etc/c.conf", "etc belongs to another user")
    }

    @Test func aFileThatCannotBeUsedEndsEveryCommand() throws {
        try sandbox.write("etc/bad", "colour = red\n")
        let environment: [String: String?] = ["SEALDB_CONFIG": sandbox.path("etc/bad")]
        for arguments in [["status", "--all"], ["keyring", "audit", "ring", "db"], ["shell", "db"], ["info", "db"]] {
            let outcome = try sandbox.run([Tool.sealdb] + arguments, environment: environment)
            #expect(outcome.status == 78 && outcome.error.contains("line 1: "), "\(arguments): \(outcome)")
        }
        let outcome = try sandbox.run([Tool.sealdb, "verify", "db", "--json"], environment: environment)
        #expect(outcome.status == 78 && outcome.output.contains(#""exitCode":78"#), "\(outcome)")
        // Those that need none are not stopped by it.
        for arguments in [["keygen", "k"], ["doctor"], ["--version"], ["help", "config"]] {
            let outcome = try sandbox.run([Tool.sealdb] + arguments, environment: environment)
            #expect(outcome.status == 0 || arguments == ["doctor"], "\(arguments): \(outcome.error)")
        }
        let off = try sandbox.run([Tool.sealdb, "info", "etc/bad", "--config", "/dev/null"], environment: environment)
        #expect(off.status == 0, "\(off)")
    }
}
