import Foundation
import Testing

/// verify, info, migrate and backup on several stores.
@Suite(.hangLimit, .enabled(if: isEncrypting, "the plain build takes no key"))
struct StoreWorkTests {
    private let sandbox: Sandbox
    private let stores: [String]

    init() throws {
        sandbox = try Sandbox()
        stores = try sandbox.makeFleet(3)
    }

    private func run(_ command: String, _ arguments: [String], input: String? = nil) throws -> Outcome {
        try sandbox.run([Tool.sealdb, command] + arguments, input: input)
    }

    private func objects(_ outcome: Outcome) throws -> [[String: Any]] {
        try outcome.lines.map { line in
            try #require(try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any])
        }
    }

    // MARK: verify

    @Test func verifiesAll() throws {
        let outcome = try run(
            "verify",
            ["-", "--key-file", "key", "--jobs", "2"],
            input: stores.joined(separator: "\n")
        )
        #expect(outcome.status == 0, "\(outcome.error)")
        for store in stores { #expect(outcome.lines.contains { $0.hasPrefix("\(store): sound, ") }) }
        #expect(outcome.lines.last == "3 stores: 3 sound, 0 unchanged, 0 failed, 0 left")
    }

    @Test func progressOfEach() throws {
        let outcome = try run("verify", stores + ["--key-file", "key", "--progress", "json"])
        #expect(outcome.status == 0, "\(outcome.error)")
        let records = try outcome.error.split(separator: "\n").map { line in
            try #require(try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any])
        }
        for store in stores { #expect(records.contains { $0["path"] as? String == sandbox.path(store) }) }
    }

    @Test func damageIsTold() throws {
        try sandbox.overwrite("s02", at: 2 * 4096, with: [UInt8](repeating: 0xa5, count: 64))
        let first = try run("verify", stores + ["--key-file", "key"])
        #expect(first.status == 65)
        #expect(first.lines.contains("s02: page 3: damaged"))
        #expect(first.lines.last == "3 stores: 1 sound, 0 unchanged, 1 failed, 1 left")
        let all = try run("verify", stores + ["absent", "--key-file", "key", "--continue-on-error", "--json"])
        #expect(all.status == 2)
        let records = try objects(all)
        #expect(records.map { $0["status"] as? String } == ["done", "failed", "done", "failed", nil])
        #expect(records.map { $0["exitCode"] as? Int } == [0, 65, 0, 66, 2])
        #expect(records[1]["damagedPages"] as? [Int] == [3])
        #expect(records[0]["path"] as? String == sandbox.path("s01") && records[0]["isSound"] as? Bool == true)
    }

    /// A map of a rotation has the new keys last, which the stores have afterwards.
    @Test func mapOfARotationServesToVerify() throws {
        try sandbox.write("map", stores.map { "\($0)\tkey-file:key\tkey-file:new\n" }.joined())
        #expect(try run("rotate", ["--key-map", "map"]).status == 0)
        #expect(try run("verify", ["--key-map", "map"]).status == 0)
        try sandbox.write("map", "s01\tkey-file:key\n")
        #expect(try run("verify", ["--key-map", "map"]).status == 77)
        #expect(try run("verify", ["--key-map", "map", "--key-file", "new"]).status == 64)
    }

    // MARK: info

    @Test func infoOfAll() throws {
        try sandbox.write("notes", "no store")
        let text = try run("info", stores + ["notes"])
        #expect(text.status == 0, "\(text.error)")
        #expect(text.output.components(separatedBy: "\n\n").count == 5, "\(text.output)")
        let records = try objects(try run("info", stores + ["--json", "--key-template", "key-file:{dir}/key"]))
        #expect(
            records.dropLast().allSatisfy { ($0["details"] as? [String: Any])?["journalMode"] as? String == "delete" }
        )
        #expect(records.last?["done"] as? Int == 3)
        #expect(try run("info", stores + ["--key-file", "new", "--continue-on-error"]).status == 2)
    }

    // MARK: migrate

    @Test func migratesAll() throws {
        try sandbox.succeed("migrate", "s02", "--key-file", "key", "--new-page-size", "8192")
        let arguments = stores + ["--key-file", "key"]
        let dryRun = try run("migrate", arguments + ["-n"])
        #expect(dryRun.lines.last == "3 stores: 1 can be migrated, 2 unchanged, 0 failed, 0 left")
        let outcome = try run("migrate", arguments)
        #expect(outcome.status == 0, "\(outcome.error)")
        #expect(outcome.lines.last == "3 stores: 1 migrated, 2 unchanged, 0 failed, 0 left")
        for store in stores { #expect(try sandbox.keys(opening: store) == ["key"]) }
    }

    // MARK: backup

    @Test func backsUpAll() throws {
        try FileManager.default.createDirectory(atPath: sandbox.path("backups"), withIntermediateDirectories: false)
        let arguments = stores + ["--into", "backups", "--key-file", "key", "--new-key-file", "new"]
        let outcome = try run("backup", arguments + ["--jobs", "3"])
        #expect(outcome.status == 0, "\(outcome.error)")
        #expect(outcome.lines.last == "3 stores: 3 backed up, 0 unchanged, 0 failed, 0 left")
        for store in stores { #expect(try sandbox.keys(opening: "backups/\(store)") == ["new"]) }
        // Nothing is overwritten.
        try FileManager.default.removeItem(atPath: sandbox.path("backups/s02"))
        let again = try run("backup", arguments + ["--continue-on-error"])
        #expect(again.status == 2)
        #expect(again.lines.last == "3 stores: 1 backed up, 0 unchanged, 2 failed, 0 left")
    }

    /// A signal ends the work on the store that it comes in, and not only the run after it. The first write is that of the
    /// copy's pages.
    @Test func signalEndsTheStoreInWork() throws {
        try FileManager.default.createDirectory(atPath: sandbox.path("backups"), withIntermediateDirectories: false)
        let outcome = try sandbox.run(
            ["strace", "-f", "-qq", "-o", "/dev/null", "-e", "trace=pwrite64"]
                + ["-e", "inject=pwrite64:signal=INT:when=1", Tool.sealdb, "backup"]
                + stores + ["--into", "backups", "--key-file", "key", "--new-key-file", "new"]
        )
        #expect(outcome.status == 130, "\(outcome.status) \(outcome.error)")
        #expect(outcome.lines.last == "3 stores: 0 backed up, 0 unchanged, 0 failed, 3 left")
        #expect(try FileManager.default.contentsOfDirectory(atPath: sandbox.path("backups")).isEmpty)
    }

    @Test func backupsOfTheSameName() throws {
        for directory in ["a", "backups"] {
            try FileManager.default.createDirectory(
                atPath: sandbox.path(directory),
                withIntermediateDirectories: false
            )
        }
        try FileManager.default.copyItem(atPath: sandbox.path("s01"), toPath: sandbox.path("a/s01"))
        #expect(try run("backup", ["s01", "a/s01", "--into", "backups", "--key-file", "key"]).status == 64)
        #expect(try run("backup", ["s01", "--key-file", "key"]).status == 64)
        #expect(try run("backup", ["s01", "s02", "s03", "--key-file", "key"]).status == 64)
        #expect(try FileManager.default.contentsOfDirectory(atPath: sandbox.path("backups")).isEmpty)
    }
}
