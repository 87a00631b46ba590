import Foundation
import Testing

@Suite(.hangLimit)
struct KeygenTests {
    @Test func writesAKeyForItsOwnerAlone() throws {
        let sandbox = try Sandbox()
        let outcome = try sandbox.succeed("keygen", "key")
        let text = String(decoding: try sandbox.contents("key"), as: UTF8.self)
        #expect(text.wholeMatch(of: /[0-9a-f]{64}\n/) != nil)
        #expect(try sandbox.mode("key") == 0o600)
        #expect(!outcome.output.contains(text.prefix(64)))
        #expect(outcome.error.isEmpty)
    }

    @Test func keysDiffer() throws {
        let sandbox = try Sandbox()
        try sandbox.makeKey("a")
        try sandbox.makeKey("b")
        #expect(try sandbox.contents("a") != sandbox.contents("b"))
    }

    @Test func neverOverwrites() throws {
        let sandbox = try Sandbox()
        try sandbox.write("key", "precious")
        try sandbox.fail(73, "keygen", "key")
        #expect(try sandbox.contents("key") == Data("precious".utf8))
        try FileManager.default.createSymbolicLink(atPath: sandbox.path("link"), withDestinationPath: "elsewhere")
        try sandbox.fail(73, "keygen", "link")
        #expect(!sandbox.exists("elsewhere"))
    }

    @Test func cannotCreate() throws {
        let sandbox = try Sandbox()
        try sandbox.fail(73, "keygen", "no/such/directory/key")
        try sandbox.fail(64, "keygen", "")
        try sandbox.fail(64, "keygen")
        #expect(try sandbox.names() == [])
    }

    @Test func aReportOfWhatGoesToStandardOutput() throws {
        let sandbox = try Sandbox()
        let refused = try sandbox.fail(64, "keygen", "-", "--json")
        #expect(refused.output.isEmpty)
        let made = try sandbox.succeed("keygen", "reported", "--json")
        #expect(made.output.hasPrefix("{") && sandbox.exists("reported"))
    }
}
