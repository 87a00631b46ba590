import Foundation
import SealedDB
import Testing

@testable import sealdb

/// What is told of a ring, and for how long it keeps what is removed. The plain build writes rings as well.
@Suite(.hangLimit)
struct KeyringReportTests {
    /// The day is the promise that the key can be had back until then.
    @Test(arguments: [([], 30), (["--keep", "90"], 90)] as [([String], Double)])
    func theDayUntilWhichAKeyIsKept(more: [String], days: Double) throws {
        let sandbox = try Sandbox()
        #expect(try sandbox.succeed("keyring", "create", "ring", "a").output == "ring: new key ring, mode 0600\n")
        let added = try sandbox.succeed("keyring", "add", "ring", "b", "--activate")
        #expect(added.output == "ring: b added and active\n")
        #expect(try sandbox.succeed("keyring", "add", "ring", "c").output == "ring: c added\n")
        // Midnight may come meanwhile.
        let before = KeyRing.day(Date().addingTimeInterval(days * 86400))
        let outcome = try sandbox.run([Tool.sealdb, "keyring", "remove", "ring", "a", "--yes"] + more)
        let after = KeyRing.day(Date().addingTimeInterval(days * 86400))
        #expect(
            [before, after].contains { outcome.output == "ring: a retired, and kept until \($0)\n" },
            "\(outcome.output)\(outcome.error)"
        )
    }

    /// On the day itself the time is over, and not before.
    @Test func theDayHasCome() throws {
        let sandbox = try Sandbox()
        try sandbox.succeed("keyring", "create", "ring", "a")
        try sandbox.succeed("keyring", "add", "ring", "b", "--activate")
        try sandbox.succeed("keyring", "remove", "ring", "a", "--yes")
        let text = String(decoding: try sandbox.contents("ring"), as: UTF8.self)
        func setDay(_ date: Date) throws {
            try sandbox.write("ring", text.replacing(/retired: a \d+-\d+-\d+/, with: "retired: a \(KeyRing.day(date))"))
        }
        try setDay(Date().addingTimeInterval(2 * 86400))
        try sandbox.fail(75, "keyring", "remove", "ring", "a", "--yes")
        try setDay(Date())
        let removed = try sandbox.succeed("keyring", "remove", "ring", "a", "--yes")
        #expect(removed.output == "ring: a removed for good\n")
    }

    @Test(arguments: [(0, true), (36500, true), (-1, false), (36501, false)])
    func daysThatThereAre(days: Int, isAllowed: Bool) {
        var command = KeyringRemoveCommand()
        command.keep = days
        if isAllowed {
            #expect(throws: Never.self) { try command.validate() }
        } else {
            #expect(throws: (any Error).self) { try command.validate() }
        }
    }

    /// It becomes the name of the directory.
    @Test func aKeyFileWithoutAName() throws {
        let sandbox = try Sandbox()
        for option in ["--key-file", "--passphrase-file"] {
            try sandbox.fail(78, "keyring", "create", "ring", "a", option, "")
        }
        #expect(try sandbox.names() == [])
    }

    /// A store that cannot be looked at may need the key. Five are named.
    @Test(
        arguments: [(1, nil), (5, nil), (6, "; and 1 more. Nothing"), (8, "; and 3 more. Nothing")] as [(Int, String?)]
    )
    func storesThatMayNeedAKey(count: Int, rest: String?) throws {
        let ring = try KeyRing(activeID: "b", key: Key.random())
        let audit = KeyringAudit(ring: ring, ciphers: CipherAssignment(given: nil, configuration: nil))
        let stores = try (1...count).map { try StoreItem("/nowhere/s\($0)") }
        let failure = #expect(throws: Failure.self) { try audit.requireUnused("a", stores) }
        let message = try #require(failure?.message)
        #expect(failure?.status == .busy && !message.contains(".;") && !message.contains(".."), "\(message)")
        #expect(message.contains("/nowhere/s\(min(5, count)): ") && !message.contains("/nowhere/s6: "), "\(message)")
        if let rest { #expect(message.contains(rest), "\(message)") } else { #expect(!message.contains(" more. ")) }
        #expect(throws: Never.self) { try audit.requireUnused("a", []) }
    }
}
