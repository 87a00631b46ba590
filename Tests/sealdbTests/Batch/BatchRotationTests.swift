import Foundation
import Testing

/// Many stores in one command.
@Suite(.hangLimit, .enabled(if: isEncrypting, "the plain build takes no key"))
struct BatchRotationTests {
    private let sandbox: Sandbox
    private let keys = ["--key-file", "key", "--new-key-file", "new"]
    private let journal = "sealdb-rotate.journal"

    init() throws {
        sandbox = try Sandbox()
    }

    private func rotate(_ arguments: [String], input: String? = nil) throws -> Outcome {
        try sandbox.run([Tool.sealdb, "rotate"] + arguments + keys, input: input)
    }

    private func objects(_ text: String) throws -> [[String: Any]] {
        try text.split(separator: "\n").map { line in
            try #require(try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any])
        }
    }

    @Test(arguments: [1, 3])
    func everyStore(jobs: Int) throws {
        let stores = try sandbox.makeFleet(4)
        let outcome = try rotate(stores + ["--jobs", "\(jobs)"])
        #expect(outcome.status == 0, "\(outcome.error)")
        #expect(outcome.error.isEmpty)
        for store in stores {
            #expect(outcome.lines.contains { $0.hasPrefix("\(store): key changed, ") })
            #expect(try sandbox.keys(opening: store) == ["new"])
        }
        #expect(outcome.lines.last == "4 stores: 4 changed, 0 had the new key already, 0 failed, 0 left")
        #expect(try sandbox.names() == ["key", "new"] + stores + [journal])

        // Once more: nothing is to be done.
        let again = try rotate(stores)
        #expect(again.status == 0)
        #expect(again.lines.last == "4 stores: 0 changed, 4 had the new key already, 0 failed, 0 left")
    }

    /// The journal is what is left of a run that nobody watched.
    @Test func theJournalTellsWhatBecameOfEachStore() throws {
        let stores = try sandbox.makeFleet(3)
        try sandbox.succeed("rotate", "s02", "--key-file", "key", "--new-key-file", "new")
        try sandbox.write("s03", "no store")
        #expect(try rotate(stores + ["--continue-on-error"]).status == 2)
        let records = try objects(String(decoding: try sandbox.contents(journal), as: UTF8.self))
        let ends = records.filter { ["done", "failed"].contains($0["event"] as? String) }
        #expect(ends.map { $0["path"] as? String } == stores.map(sandbox.path))
        #expect(ends.map { $0["event"] as? String } == ["done", "done", "failed"])
        #expect(ends.map { $0["outcome"] as? String } == ["done", "unchanged", nil])
        #expect(ends[0]["bytes"] as? Int == (try sandbox.contents("s01").count) && ends[0]["seconds"] is Double)
        #expect(ends[2]["exitCode"] as? Int == 65 && (ends[2]["message"] as? String)?.contains("s03") == true)
        #expect(records.last?["event"] as? String == "end" && records.last?["exitCode"] as? Int == 2)
    }

    /// What a record says must outlast a power failure before anything rests on it.
    @Test func eachRecordOfTheJournalIsSynced() throws {
        let stores = try sandbox.makeFleet(2)
        let strace = ["strace", "-f", "-qq", "-y", "-s", "24", "-o", "trace", "-e", "trace=write,fsync"]
        #expect(try sandbox.run(strace + [Tool.sealdb, "rotate"] + stores + keys).status == 0)
        let calls = String(decoding: try sandbox.contents("trace"), as: UTF8.self).split(separator: "\n")
            .filter { $0.contains(journal) }
        let writes = calls.indices.filter { calls[$0].contains(" write(") }
        #expect(writes.count == (try sandbox.contents(journal)).count { $0 == 0x0a })
        for index in writes {
            let next = calls.indices.contains(index + 1) ? calls[index + 1] : ""
            #expect(next.contains(" fsync("), "\(calls[index]), then \(next)")
        }
    }

    @Test func json() throws {
        let stores = try sandbox.makeFleet(2)
        try sandbox.write("junk", "no store")
        let outcome = try rotate(stores + ["junk", "--json", "--continue-on-error"])
        #expect(outcome.status == 2)
        let lines = try objects(outcome.output)
        #expect(lines.map { $0["kind"] as? String } == ["result", "result", "result", "summary"])
        #expect(lines.map { $0["status"] as? String } == ["done", "done", "failed", nil])
        #expect(lines[0]["path"] as? String == sandbox.path("s01"))
        #expect(lines[0]["pageCount"] as? Int == (try sandbox.contents("s01").count) / 4096)
        #expect(lines[2]["exitCode"] as? Int == 65)
        #expect((lines[2]["message"] as? String)?.contains("junk") == true)
        #expect(lines[3]["done"] as? Int == 2 && lines[3]["failed"] as? Int == 1 && lines[3]["left"] as? Int == 0)
        #expect(lines[3]["exitCode"] as? Int == 2)
    }

    // MARK: Lists

    /// One kind of list is enough, and an empty one names nothing.
    @Test(arguments: [["--from-file", "list"], ["--from0", "list"], ["-"]])
    func aListAlone(_ list: [String]) throws {
        let stores = try sandbox.makeFleet(3)
        let end = list == ["--from0", "list"] ? "\0" : "\n"
        for (names, status) in [([], 64), (stores.dropLast(), 0)] as [([String], Int32)] {
            let text = names.map { $0 + end }.joined()
            try sandbox.write("list", text)
            let outcome = try rotate(list, input: text)
            #expect(outcome.status == status, "\(outcome.error)")
            #expect(outcome.error.contains("The list names no store") == names.isEmpty)
            for store in stores {
                #expect(try sandbox.keys(opening: store) == [names.contains(store) ? "new" : "key"])
            }
        }
    }

    @Test func listsOfStores() throws {
        let stores = try sandbox.makeFleet(5)
        let odd = "a store\nof two lines"
        try FileManager.default.moveItem(atPath: sandbox.path("s05"), toPath: sandbox.path(odd))
        try FileManager.default.createSymbolicLink(atPath: sandbox.path("link"), withDestinationPath: "s02")
        try sandbox.write("lines", "s01\n\n./s02\nlink\n")
        try sandbox.write("nuls", "s03\0\(odd)\0")
        let outcome = try rotate(["--from-file", "lines", "--from0", "nuls", "-", "s01"], input: "s04\ns02")
        #expect(outcome.status == 0, "\(outcome.error)")
        #expect(outcome.lines.last?.hasPrefix("5 stores: 5 changed") == true, "\(outcome.output)")
        for store in stores.dropLast() + [odd] { #expect(try sandbox.keys(opening: store) == ["new"]) }
        let fromInput = try sandbox.sealdb(
            "rotate",
            "--from-file",
            "-",
            "--key-file",
            "new",
            "--new-key-file",
            "key",
            input: "s01\n"
        )
        #expect(fromInput.status == 0, "\(fromInput.error)")
        #expect(try sandbox.keys(opening: "s01") == ["key"])
    }

    @Test func uselessLists() throws {
        try sandbox.makeFleet(1)
        try sandbox.write("empty", "\n\n")
        try sandbox.write("broken", Data([0x73, 0xff, 0x0a]))
        for (arguments, status) in [
            (["--from-file", "absent"], 66), (["--from-file", "empty"], 64), (["--from-file", "broken"], 65), ([], 64),
            (["--from-file", "/dev/zero"], 65),
            (["--from-file", "."], 66), ([""], 64), (["s01", "--jobs", "0"], 64),
        ] as [([String], Int32)] {
            let outcome = try rotate(arguments)
            #expect(outcome.status == status, "\(arguments): \(outcome.error)")
            #expect(outcome.error.hasPrefix("sealdb: ") && outcome.output.isEmpty)
        }
        #expect(try sandbox.names() == ["broken", "empty", "key", "new", "s01"])
    }

    // MARK: Failures

    @Test func firstFailureEndsIt() throws {
        let stores = try sandbox.makeFleet(4)
        try sandbox.write("s02", "no store")
        let dryRun = try rotate(stores + ["--dry-run"])
        #expect(dryRun.status == 65)
        #expect(try sandbox.names() == ["key", "new"] + stores)
        let outcome = try rotate(stores)
        #expect(outcome.status == 65)
        #expect(outcome.error.hasPrefix("sealdb: s02: "))
        #expect(outcome.lines.last == "4 stores: 1 changed, 0 had the new key already, 1 failed, 2 left")
        #expect(try ["s01", "s03", "s04"].map { try sandbox.keys(opening: $0) } == [["new"], ["key"], ["key"]])

        // Mended, the same command goes on.
        try FileManager.default.removeItem(atPath: sandbox.path("s02"))
        try FileManager.default.copyItem(atPath: sandbox.path("s03"), toPath: sandbox.path("s02"))
        #expect(try rotate(stores).status == 0)
        for store in stores { #expect(try sandbox.keys(opening: store) == ["new"]) }
    }

    @Test func continuesOnError() throws {
        let stores = try sandbox.makeFleet(4)
        try sandbox.write("s01", "no store")
        try sandbox.makeKey("other")
        #expect(try sandbox.sealdb("rotate", "s03", "--key-file", "key", "--new-key-file", "other").status == 0)
        let arguments = stores + ["absent", "--continue-on-error"]
        let dryRun = try rotate(arguments + ["--dry-run"])
        #expect(dryRun.status == 2)
        #expect(dryRun.output.contains("5 stores: 2 to change, 0 have the new key, 3 cannot be changed"))
        let outcome = try rotate(arguments)
        #expect(outcome.status == 2)
        #expect(outcome.lines.last == "5 stores: 2 changed, 0 had the new key already, 3 failed, 0 left")
        #expect(try ["s02", "s04"].map { try sandbox.keys(opening: $0) } == [["new"], ["new"]])
        #expect(try sandbox.keys(opening: "s03", of: ["key", "new", "other"]) == ["other"])
        for name in ["s01", "s03", "absent"] { #expect(outcome.error.contains("sealdb: \(name): ")) }
    }

    @Test func dryRunTellsThePlan() throws {
        let stores = try sandbox.makeFleet(3)
        try sandbox.succeed("rotate", "s02", "--key-file", "key", "--new-key-file", "new")
        let before = try stores.map { try sandbox.contents($0) }
        let outcome = try rotate(stores + ["-n"])
        #expect(outcome.status == 0, "\(outcome.error)")
        #expect(outcome.lines.count == 4)
        #expect(outcome.lines[0].hasPrefix("s01: can be changed, "))
        #expect(outcome.lines[1] == "s02: has the new key already; nothing was changed")
        #expect(outcome.lines[3].hasPrefix("3 stores: 2 to change, 1 have the new key, 0 cannot be changed; "))
        #expect(outcome.lines[3].hasSuffix("nothing was written"))
        #expect(try stores.map { try sandbox.contents($0) } == before)
        #expect(try sandbox.names() == ["key", "new"] + stores)
        let plans = try objects(try rotate(stores + ["-n", "--json"]).output)
        #expect(plans.map { $0["status"] as? String } == ["planned", "unchanged", "planned", nil])
        #expect(plans[0]["fileSize"] as? Int == before[0].count && plans[0]["estimatedSeconds"] is Double)
    }

    /// Blocks of 4096 bytes, so few of them free that one copy fits and two do not.
    @Test func spaceForAllCopiesAtATime() throws {
        let stores = try sandbox.makeFleet(3)
        let blocks = String(format: "%02x", try sandbox.contents("s01").count / 4096 / 2 * 3)
        let free =
            "statfs:poke_exit=@arg2=00000000000000000010000000000000ff000000000000000000000000000000"
            + "\(blocks)00000000000000"
        for (more, status) in [
            (["--jobs", "2", "-n"], 74), (["--jobs", "2"], 74), (["--keep-old"], 74), (["-n"], 0), ([], 0),
        ] as [([String], Int32)] {
            let strace = ["strace", "-f", "-qq", "-o", "/dev/null", "-e", "trace=statfs", "-e", "inject=\(free)"]
            let outcome = try sandbox.run(strace + [Tool.sealdb, "rotate"] + stores + keys + more)
            #expect(outcome.status == status, "\(more): \(outcome.error)")
            if status != 0 { #expect(outcome.error.contains("are free. Nothing was done."), "\(outcome.error)") }
        }
        #expect(try sandbox.keys(opening: "s03") == ["new"])
    }

    @Test func readerWhoLeavesDoesNotEndIt() throws {
        let stores = try sandbox.makeFleet(3)
        let words = ([Tool.sealdb, "rotate"] + stores + keys).joined(separator: " ")
        let outcome = try sandbox.run(["bash", "-c", "\(words) > >(exec true); wait $!; exit ${PIPESTATUS[0]}"])
        #expect([0, 74].contains(outcome.status), "\(outcome.error)")
        for store in stores { #expect(try sandbox.keys(opening: store) == ["new"]) }
    }

    // MARK: The old files

    @Test(arguments: ["delete", "wal"])
    func keepsOldFiles(journalMode: String) throws {
        let stores = try sandbox.makeFleet(2, journalMode: journalMode)
        let outcome = try rotate(["--keep-old"] + stores)
        #expect(outcome.status == 0, "\(outcome.error)")
        #expect(try sandbox.names() == ["key", "new", "s01", "s01.old", "s02", "s02.old", journal])
        for store in stores {
            #expect(try sandbox.keys(opening: store) == ["new"])
            #expect(try sandbox.keys(opening: store + ".old") == ["key"])
        }
        let back = try sandbox.run(
            [Tool.sealdb, "rotate", "s01", "--key-file", "new", "--new-key-file", "key", "--keep-old=~1"]
        )
        #expect(back.status == 0, "\(back.error)")
        #expect(try sandbox.keys(opening: "s01~1") == ["new"])
    }

    /// Killed after the swap, and before the journal had that.
    @Test func doneWithItsOldFileKept() throws {
        let stores = try sandbox.makeFleet(2)
        #expect(try rotate(stores + ["--keep-old"]).status == 0)
        try FileManager.default.removeItem(atPath: sandbox.path("sealdb-rotate.journal"))
        for more in [["-n"], []] {
            let outcome = try rotate(stores + ["--keep-old"] + more)
            #expect(outcome.status == 0, "\(outcome.error)")
            #expect(outcome.lines[0] == "s01: has the new key already; nothing was changed")
        }
        #expect(try stores.map { try sandbox.keys(opening: $0 + ".old") } == [["key"], ["key"]])
    }

    /// Whoever uses the store whose log that would be removes it.
    @Test func whatIsKeptHasNoNameOfAnotherStore() throws {
        let stores = try sandbox.makeFleet(1)
        try FileManager.default.copyItem(atPath: sandbox.path("s01"), toPath: sandbox.path("s01.a"))
        for more in [["--keep-old=.a-wal"], ["--journal", "s01.a-journal"]] {
            for dry in [["-n"], []] {
                let outcome = try rotate(stores + more + dry)
                #expect(outcome.status == 73 && outcome.error.contains("belongs to"), "\(more + dry): \(outcome.error)")
            }
        }
        #expect(try sandbox.keys(opening: "s01") == ["key"])
        #expect(try sandbox.names() == ["key", "new", "s01", "s01.a"])
    }

    @Test func oldFilesAreNotOverwritten() throws {
        let stores = try sandbox.makeFleet(1)
        try sandbox.write("s01.old", "precious")
        for more in [["-n"], []] {
            let outcome = try rotate(stores + ["--keep-old"] + more)
            #expect(outcome.status == 73 && outcome.error.contains("unchanged"), "\(outcome.error)")
        }
        #expect(try sandbox.contents("s01.old") == Data("precious".utf8))
        #expect(try sandbox.keys(opening: "s01") == ["key"])
        for suffix in ["", "/x", "-wal", "-sealdb-lock"] {
            #expect(try rotate(stores + ["--keep-old=\(suffix)"]).status == 64)
        }
    }

    /// Killed when the old file has two names, the same command goes on.
    @Test(arguments: ["rename", "fsync"])
    func killedWhileTheOldFileHasTwoNames(call: String) throws {
        try sandbox.makeFleet(1)
        let arguments = [Tool.sealdb, "rotate", "s01", "--keep-old"] + keys
        let strace = ["strace", "-f", "-qq", "-o", "trace", "-e", "trace=link,rename,fsync"]
        #expect(try sandbox.run(strace + ["-e", "inject=rename:error=EIO"] + arguments).status == 74)
        #expect(try sandbox.keys(opening: "s01") == ["key"])
        #expect(try sandbox.names() == ["key", "new", "s01", "trace"])
        // The call that comes right after the link.
        let trace = String(decoding: try sandbox.contents("trace"), as: UTF8.self).split(separator: "\n")
        let linked = try #require(trace.firstIndex { $0.contains("link(") })
        let count = trace[...linked].count { $0.contains(" \(call)(") } + 1
        #expect(try sandbox.run(strace + ["-e", "inject=\(call):signal=KILL:when=\(count)"] + arguments).status != 0)
        #expect(try sandbox.contents("s01") == (try sandbox.contents("s01.old")))
        #expect(try sandbox.keys(opening: "s01") == ["key"])
        #expect(try sandbox.run(arguments).status == 0)
        #expect(try sandbox.keys(opening: "s01") == ["new"])
        #expect(try sandbox.keys(opening: "s01.old") == ["key"])
        #expect(try sandbox.names() == ["key", "new", "s01", "s01.old", "trace"])
    }
}
