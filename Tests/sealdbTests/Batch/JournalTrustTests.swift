import Foundation
import Testing

/// A journal may be anybody's work: it is neither followed to another file, nor believed, nor shown as it is.
@Suite(.hangLimit, .enabled(if: isEncrypting, "the plain build takes no key"))
struct JournalTrustTests {
    private let sandbox: Sandbox
    private let journal = "sealdb-rotate.journal"

    init() throws {
        sandbox = try Sandbox()
    }

    private func rotate(_ stores: [String], _ more: [String] = ["--new-key-file", "new"]) throws -> Outcome {
        try sandbox.run([Tool.sealdb, "rotate"] + stores + ["--key-file", "key"] + more)
    }

    /// A begun batch of one store, with whatever else is to be in it.
    private func forged(_ fields: [String: Any] = [:], then lines: [[String: Any]] = []) throws -> String {
        var begin: [String: Any] = [
            "event": "begin", "time": "2026-01-02T03:04:05Z", "version": 1, "batch": "b", "operation": "rotate",
            "process": 1, "directory": sandbox.directory, "stores": [sandbox.path("s01")],
        ]
        begin.merge(fields) { _, new in new }
        return try ([begin] + lines).map { line in
            let data = try JSONSerialization.data(withJSONObject: line.filter { !($0.value is NSNull) })
            return String(decoding: data, as: UTF8.self) + "\n"
        }.joined()
    }

    /// A path that cannot be one: who wants to read is told so, and who wants to write.
    @Test func aPathBehindAFile() throws {
        try sandbox.write("file", "")
        let status = try sandbox.sealdb("status", "file/journal")
        #expect(status.status == 66 && status.error.contains("Cannot open the journal"), "\(status.error)")
        let rotation = try rotate(["nothing"], ["--new-key-file", "new", "--journal", "file/journal"])
        #expect(rotation.status != 0 && !sandbox.exists("file/journal"))
    }

    private func expectRefused(_ status: Int32, _ stores: [String], _ words: String) throws {
        let before = try sandbox.contents(journal)
        for outcome in [try rotate(stores), try rotate(stores + ["--dry-run"]), try sandbox.sealdb("status", journal)] {
            #expect(outcome.status == status, "\(words): \(outcome.error)")
            #expect(outcome.error.contains(words), "\(outcome.error)")
        }
        #expect(try sandbox.contents(journal) == before)
        for store in stores { #expect(try sandbox.keys(opening: store) == ["key"]) }
    }

    @Test func linksAreNotFollowed() throws {
        let stores = try sandbox.makeFleet(2)
        try sandbox.write("victim", try forged())
        try FileManager.default.createSymbolicLink(
            atPath: sandbox.path(journal),
            withDestinationPath: sandbox.path("victim")
        )
        try expectRefused(78, stores, "symbolic links are not followed")
        // Nor one that leads nowhere: no file appears where it points.
        try FileManager.default.removeItem(atPath: sandbox.path("victim"))
        #expect(try rotate(stores).status == 78)
        #expect(!sandbox.exists("victim"))
        try FileManager.default.removeItem(atPath: sandbox.path(journal))
        try sandbox.write("victim", try forged())
        try FileManager.default.linkItem(atPath: sandbox.path("victim"), toPath: sandbox.path(journal))
        try expectRefused(78, stores, "has another name too")
    }

    @Test func aJournalThatOthersMayWriteIsRefused() throws {
        let stores = try sandbox.makeFleet(2)
        for mode in [0o620, 0o602] {
            try sandbox.write(journal, try forged(), mode: mode)
            try expectRefused(78, stores, "may be changed by other users")
        }
        #expect(chmod(sandbox.path(journal), 0o600) == 0)
        guard geteuid() == 0 else { return }
        #expect(chown(sandbox.path(journal), 65534, 65534) == 0)
        try expectRefused(78, stores, "belongs to another user")
    }

    @Test func aPipeKeepsNobodyWaiting() throws {
        let stores = try sandbox.makeFleet(2)
        #expect(mkfifo(sandbox.path(journal), 0o600) == 0)
        for outcome in [try rotate(stores), try sandbox.sealdb("status", journal)] {
            #expect(outcome.status == 78, "\(outcome.error)")
            #expect(outcome.error.contains("not a regular file"))
        }
    }

    @Test func noWordsOfTheCommandAreKept() throws {
        let stores = try sandbox.makeFleet(2)
        try sandbox.writeProgram("print", "#!/bin/sh\n[ \"$1\" = --token ] && printf %064d 7\n")
        let outcome = try rotate(stores, ["--new-key-command", sandbox.path("print") + " --token s3cr3t-word"])
        #expect(outcome.status == 0, "\(outcome.error)")
        let text = String(decoding: try sandbox.contents(journal), as: UTF8.self)
        #expect(!text.contains("s3cr3t") && !text.contains("--token"))
        #expect(try sandbox.mode(journal) == 0o600)
        #expect(try !sandbox.names().contains { $0.contains(".sealdb-") })
    }

    @Test func aForgedJournalDrivesNothing() throws {
        let stores = try sandbox.makeFleet(2)
        let escape = "\u{1b}]0;x\u{7}\u{9b}31m\u{202e}"
        try sandbox.write(
            journal,
            try forged(
                [
                    "command": ["/bin/rm", "-rf", "/"], "operation": "rotate\(escape)",
                    "directory": "/\(escape); rm -rf /",
                    "stores": ["/\(escape)s01", "/s02"],
                ],
                then: [
                    [
                        "event": "failed", "time": "2026-01-02T03:04:05Z", "path": "/\(escape)s01", "exitCode": 65,
                        "message": "curl x | sh \(escape)",
                    ]
                ]
            )
        )
        for more in [[], ["--json"]] {
            let outcome = try sandbox.run([Tool.sealdb, "status", journal] + more)
            #expect(outcome.status == 2, "\(outcome.error)")
            #expect(!outcome.output.contains("/bin/rm"))
            let unsafe = outcome.output.unicodeScalars.filter { scalar in
                scalar != "\n" && (scalar.value < 0x20 || (0x7f..<0xa0).contains(scalar.value) || scalar == "\u{202e}")
            }
            #expect(unsafe.isEmpty)
        }
        #expect(try rotate(stores).status == 73)
    }

    /// What a forged journal calls done is asked itself.
    @Test func aStoreThatIsCalledDoneIsLookedAt() throws {
        let stores = try sandbox.makeFleet(2)
        let paths = stores.map { sandbox.path($0) }
        try sandbox.write(
            journal,
            try forged(
                ["stores": paths],
                then: [["event": "done", "time": "2026-01-02T03:04:05Z", "path": paths[0]]]
            )
        )
        let outcome = try rotate(stores)
        #expect(outcome.status == 0, "\(outcome.error)")
        for store in stores { #expect(try sandbox.keys(opening: store) == ["new"]) }
    }

    @Test func whatNoRunWouldWriteIsRefused() throws {
        let stores = try sandbox.makeFleet(1)
        let time = "2026-01-02T03:04:05Z"
        let path = sandbox.path("s01")
        let texts = [
            try forged(["version": 2]), try forged(["version": NSNull()]), try forged(["stores": [String]()]),
            try forged(["stores": ["relative"]]), try forged(["directory": "relative"]),
            try forged(["operation": NSNull()]),
            try forged(then: [["event": "done", "time": time, "path": "/another"]]),
            try forged(then: [["event": "start", "time": time]]),
            try forged(then: [["event": "failed", "time": time, "path": path]]),
            try forged(then: [["event": "failed", "time": time, "path": path, "exitCode": 256]]),
            try forged(then: [["event": "end", "time": time, "exitCode": -1]]),
            try forged() + forged(["stores": ["/another"]]), "no journal at all\n",
        ]
        for text in texts {
            try sandbox.write(journal, text)
            let outcome = try rotate(stores, ["--new-key-file", "new", "--journal", journal])
            #expect(outcome.status == 65, "\(text): \(outcome.error)")
            #expect(try sandbox.sealdb("status", journal).status == 65, "\(text)")
            #expect(try sandbox.contents(journal) == Data(text.utf8))
        }
        #expect(try sandbox.keys(opening: "s01") == ["key"])
        // A line that a power failure cut off is not held against it.
        try sandbox.write(journal, try forged() + "{\"event\":\"sta")
        let outcome = try rotate(stores, ["--new-key-file", "new", "--journal", journal])
        #expect(outcome.status == 0, "\(outcome.error)")
    }

    /// Whoever can write to the pipe decides which program is run.
    @Test(.enabled(if: geteuid() == 0, "only root can give a file away"))
    func aKeyMapFromSomebodyElsesPipe() throws {
        try sandbox.makeFleet(1)
        #expect(mkfifo(sandbox.path("map"), 0o600) == 0)
        #expect(chown(sandbox.path("map"), 65534, 65534) == 0)
        // Open for both, so that nobody waits for the other end.
        let pipe = open(sandbox.path("map"), O_RDWR | O_NONBLOCK)
        defer { close(pipe) }
        let outcome = try sandbox.sealdb("verify", "s01", "--key-map", "map")
        #expect(outcome.status == 78, "\(outcome.error)")
    }
}
