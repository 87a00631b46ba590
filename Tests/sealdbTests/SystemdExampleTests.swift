import Foundation
import Testing

/// The units in Examples/systemd, as far as they can be tried without systemd running.
@Suite(.hangLimit)
struct SystemdExampleTests {
    private let units: String
    private let sandbox: Sandbox

    init() throws {
        sandbox = try Sandbox()
        units =
            URL(fileURLWithPath: #filePath).deletingLastPathComponent().appendingPathComponent("../../Examples/systemd")
            .standardized.path
    }

    /// The unit, with this build's commands and the sandbox's files in place of a real machine's.
    private func unit(_ name: String) throws -> String {
        try String(contentsOfFile: "\(units)/\(name)", encoding: .utf8)
            .replacing("/usr/local/bin/sealdb", with: Tool.sealdb)
            .replacing("/usr/local/bin/bookstore", with: Tool.path("BookStore"))
            .replacing("/backups/bookstore", with: sandbox.path("backups"))
            .replacing("/etc/bookstore/", with: sandbox.path(""))
            .replacing("/var/lib/bookstore/", with: sandbox.path(""))
    }

    private func commands(_ name: String, _ setting: String) throws -> [String] {
        try unit(name).split(separator: "\n").filter { $0.hasPrefix("\(setting)=") }.map {
            String($0.dropFirst(setting.count + 1)).replacing("%%", with: "%")
        }
    }

    @Test(.enabled(if: FileManager.default.isExecutableFile(atPath: "/usr/bin/systemd-analyze"), "needs systemd"))
    func systemdAcceptsThem() throws {
        let names = try FileManager.default.contentsOfDirectory(atPath: units).sorted()
        #expect(
            names == [
                "bookstore-backup.service", "bookstore-backup.timer", "bookstore-rotate.service",
                "bookstore-rotate.timer",
                "bookstore.service",
            ]
        )
        for name in names { try sandbox.write(name, try unit(name), mode: 0o644) }
        let outcome = try sandbox.run(["systemd-analyze", "verify", "--man=no"] + names.map { sandbox.path($0) })
        // Of other units of the machine it may complain too.
        #expect(!outcome.error.contains("bookstore"), "\(outcome.error)")
    }

    /// Each night one more, of which some stay.
    @Test(.enabled(if: isEncrypting, "the plain build takes no key"))
    func backupsOfEachNight() throws {
        try sandbox.succeed("keyring", "create", "store.ring", "first")
        try sandbox.succeed("create", "books.db", "--key-ring", "store.ring")
        try FileManager.default.createDirectory(atPath: sandbox.path("backups"), withIntermediateDirectories: false)
        let step = try #require(try commands("bookstore-backup.service", "ExecStart").first)
        for _ in 0..<3 {
            let outcome = try sandbox.run(["bash", "-c", step])
            #expect(outcome.status == 0, "\(outcome.error)")
        }
        let names = try FileManager.default.contentsOfDirectory(atPath: sandbox.path("backups")).sorted()
        // The oldest and the newest of this day.
        #expect(names.count == 3 && names[0] == ".books.db.sealdb-backups", "\(names)")
        try sandbox.succeed("restore", "backups/\(names[1])", "new.db", "--key-ring", "store.ring")
    }

    /// Whatever step the rotation is stopped after, the ring opens the store, and the next run completes it.
    @Test(.enabled(if: isEncrypting, "the plain build takes no key"))
    func rotationMayStopAnywhere() throws {
        try sandbox.succeed("keyring", "create", "store.ring", "first")
        try sandbox.succeed("create", "books.db", "--key-ring", "store.ring")
        let name = "bookstore-rotate.service"
        let steps = try commands(name, "ExecStartPre") + commands(name, "ExecStart")
        #expect(steps.count == 3)
        for count in 1...steps.count {
            for step in steps.prefix(count) {
                // Of systemctl there is just the name. The ids of keys have the time in seconds.
                let command = step.replacing("/bin/systemctl", with: "true").replacing("%S", with: "%S.%N")
                let outcome = try sandbox.run(["bash", "-c", command])
                #expect(outcome.status == 0, "\(step): \(outcome.error)")
            }
            try sandbox.succeed("query", "books.db", "SELECT 1", "--key-ring", "store.ring")
        }
        let info = try sandbox.succeed("info", "books.db", "--key-ring", "store.ring", "--json")
        #expect(info.output.contains("\"needsRotation\":false"), "\(info.output)")
        #expect(try sandbox.succeed("keyring", "list", "store.ring").lines.count == 4)
    }
}
