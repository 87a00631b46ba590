import Foundation
import SealedDB
import Testing

@testable import sealdb

/// What a journal says of a batch that several runs went on with, and what looking at it leaves behind.
@Suite(.hangLimit)
struct JournalContentsTests {
    private let sandbox: Sandbox
    private let stores: [StoreItem]
    /// As the system names it.
    private let directory: String
    private let path: String

    init() throws {
        sandbox = try Sandbox()
        stores = try ["/nowhere/a", "/nowhere/b"].map { try StoreItem($0) }
        directory = URL(fileURLWithPath: sandbox.directory).resolvingSymlinksInPath().path
        path = directory + "/journal"
    }

    /// One run of the batch, which ends without a word.
    private func run(_ records: [JournalRecord] = []) throws {
        let journal = try BatchJournal(path: path)
        try journal.begin(operation: "rotate", stores, isResumeOnly: false)
        for record in records { try journal.append(record) }
    }

    private func state() throws -> JournalState { try #require(try JournalFile.state(path)) }

    private func begin(_ stores: [String] = ["/a", "/b"]) -> JournalRecord {
        var record = JournalRecord(.begin)
        record.version = JournalRecord.currentVersion
        record.batch = "batch"
        record.operation = "rotate"
        record.directory = "/"
        record.stores = stores
        return record
    }

    private func replacing(_ file: String?, _ newFile: String?, former: String? = nil) -> JournalRecord {
        var record = JournalRecord(.replacing, path: "/a")
        (record.keyFile, record.newKeyFile, record.formerKeyFile) = (file, newFile, former)
        return record
    }

    private func ended(_ code: Int32) -> JournalRecord {
        var record = JournalRecord(.end)
        record.exitCode = code
        return record
    }

    private func openFiles() throws -> [String] {
        try FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd").compactMap { descriptor in
            try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/fd/\(descriptor)")
        }.filter { $0.hasPrefix(directory + "/") }
    }

    /// A file that may hold 512 bytes takes a part of the first line, and no error number says why.
    @Test(.enabled(if: EngineInfo.current().isEncrypting, "the plain build takes no key"))
    func aLineForWhichThereIsNoRoom() throws {
        for name in ["key", "new"] { try sandbox.succeed("keygen", name) }
        let folder = String(repeating: "a", count: 200) + "/" + String(repeating: "b", count: 200)
        try FileManager.default.createDirectory(
            atPath: sandbox.directory + "/" + folder,
            withIntermediateDirectories: true
        )
        try sandbox.succeed("create", folder + "/db", "--key-file", "key")
        let keys = ["--key-file", "key", "--new-key-file", "new"]
        let limited = ["/bin/sh", "-c", "ulimit -f 1; exec \"$0\" \"$@\"", Tool.sealdb]
        let outcome = try sandbox.run(limited + ["rotate", folder + "/db", "--journal", "log"] + keys)
        #expect(outcome.status == 74)
        #expect(outcome.error.contains("No space left on device. Nothing was done."), "\(outcome.error)")
        #expect(try sandbox.names().filter { $0.contains("log") } == [])
        try sandbox.succeed("query", folder + "/db", "SELECT 1", "--key-file", "key")
    }

    // MARK: Several runs

    /// What the first run has done counts in the second one, too: a third one looks there first.
    @Test func theSecondRunGoesOnWithTheBatch() throws {
        try run([JournalRecord(.done, path: stores[0].identity)])
        let first = try state()
        #expect(first.runCount == 1 && !first.isComplete)
        try run()
        let second = try state()
        #expect(second.runCount == 2 && second.batch == first.batch)
        #expect(second.state(of: stores[0].identity) == .done)
        #expect(second.state(of: stores[1].identity) == .notBegun)
        // When all are done, the next run begins a batch of its own.
        try run([JournalRecord(.done, path: stores[1].identity)])
        #expect(try state().isComplete)
        try run()
        let next = try state()
        #expect(next.runCount == 1 && next.batch != first.batch)
        #expect(next.stores(in: { $0 == .notBegun }) == stores.map(\.identity))
    }

    /// For people who look for the process that does it, and for where it was begun.
    @Test func theFirstRecordSaysWhoBegan() throws {
        try run()
        let line = try #require(try sandbox.contents("journal").split(separator: UInt8(ascii: "\n")).first)
        let object = try #require(try JSONSerialization.jsonObject(with: line) as? [String: Any])
        #expect(object["process"] as? Int == Int(getpid()))
        #expect(object["directory"] as? String == FileManager.default.currentDirectoryPath)
        #expect(object["version"] as? Int == 1 && object["operation"] as? String == "rotate")
        #expect(object["stores"] as? [String] == stores.map(\.identity))
    }

    /// The end of an earlier run is not that of the last one, which was killed.
    @Test func aKilledRunAfterOneThatEnded() throws {
        let records = [begin(), ended(65)]
        #expect(try #require(try JournalState(records)).end?.exitCode == 65)
        #expect(try #require(try JournalState(records + [begin()])).end?.exitCode == nil)
    }

    @Test(arguments: [0, 255] as [Int32])
    func exitCodesThatThereAre(code: Int32) throws {
        #expect(try #require(try JournalState([begin(), ended(code)])).end?.exitCode == code)
    }

    /// Another operation on the same stores is another batch.
    @Test func theOperationIsOfTheBatch() throws {
        let state = try #require(try JournalState([begin(stores.map(\.identity))]))
        #expect(state.asUnfinishedBatch(operation: "rotate", stores) != nil)
        #expect(state.asUnfinishedBatch(operation: "other", stores) == nil)
        #expect(state.asUnfinishedBatch(operation: "rotate", [stores[0]]) == nil)
    }

    // MARK: Key files

    /// The same old file may have been replaced by another new one before.
    @Test func theReplacementOfTheSameTwoFiles() throws {
        let records = [
            begin(), replacing("/k", "/first", former: "/k.1"), replacing("/k", "/second", former: "/k.2"),
            replacing("/k", "/second", former: "/k.3"),
        ]
        let state = try #require(try JournalState(records))
        #expect(state.replacement(of: "/k", by: "/second")?.formerFile == "/k.2")
        #expect(state.replacement(of: "/k", by: "/first")?.formerFile == "/k.1")
        #expect(state.replacement(of: "/other", by: "/first") == nil)
        #expect(state.replacement(of: "/k", by: "/other") == nil)
    }

    /// Names that no run writes: what a run would go on with must not depend on where it is started.
    @Test(arguments: [("k", "/n"), ("/k", "n"), (nil, "/n"), ("/k", nil)] as [(String?, String?)])
    func keyFilesThatNoRunWouldName(file: String?, newFile: String?) {
        let records = [begin(), replacing(file, newFile)]
        #expect(throws: JournalState.Malformed.self) { _ = try JournalState(records) }
    }

    // MARK: The file

    /// The name of the journal outlasts a power failure, be it new or an earlier run's.
    @Test(arguments: [false, true])
    func theNameIsSynced(exists: Bool) throws {
        if exists { try run() }
        let watch = CallWatch(directory)
        let journal = try BatchJournal(path: path)
        try journal.begin(operation: "rotate", stores, isResumeOnly: false)
        let calls = watch.endWithAll()
        withExtendedLifetime(journal) {}
        let synced = calls.lastIndex { $0.hasPrefix("fsync ") && $0.hasSuffix(directory) }
        let named = calls.lastIndex { $0.hasPrefix("rename") } ?? -1
        #expect((named >= 0) != exists, "\(calls)")
        #expect(try #require(synced, "\(calls)") > named, "\(calls)")
    }

    /// Of two runs that found no journal, one goes on, and the other leaves nothing.
    @Test func aJournalThatAnotherRunMakesMeanwhile() throws {
        let late = try BatchJournal(path: path)
        let first = try BatchJournal(path: path)
        try first.begin(operation: "rotate", stores, isResumeOnly: false)
        let before = try sandbox.contents("journal")
        let failure = #expect(throws: Failure.self) {
            try late.begin(operation: "rotate", stores, isResumeOnly: false)
        }
        #expect(failure?.status == .busy && failure?.message.contains("Another run uses") == true)
        #expect(try sandbox.contents("journal") == before)
        #expect(try sandbox.names() == ["journal"])
        withExtendedLifetime(first) {}
    }

    /// What a run left that was killed before its journal had a name.
    @Test func whatAKilledRunLeftGoes() throws {
        try Data("{".utf8).write(to: URL(fileURLWithPath: TemporaryFile.path(beside: path)))
        #expect(try sandbox.names().count == 1)
        try run()
        #expect(try sandbox.names() == ["journal"])
    }

    /// Whoever only looks keeps no file open, whether it is believed or not.
    @Test func whoLooksLeavesNothingOpen() throws {
        try run()
        try BatchJournal.check(path: path, operation: "rotate", stores, isResumeOnly: true)
        #expect(try openFiles() == [])
        #expect(try !JournalFile.isInUse(path))
        #expect(try openFiles() == [])
        #expect(try state().runCount == 1)
        #expect(try openFiles() == [])
        #expect(chmod(path, 0o622) == 0)
        let failure = #expect(throws: Failure.self) { _ = try JournalFile.open(path, O_RDWR) }
        #expect(failure?.status == .configuration)
        #expect(try openFiles() == [])
    }

    /// The exit code says whether something could not be read, or not be written to.
    @Test func whatCannotBeOpened() throws {
        try sandbox.write("file", "")
        let reading = #expect(throws: Failure.self) { _ = try JournalFile.open(directory + "/file/journal", O_RDONLY) }
        #expect(reading?.status == .noInput)
        let writing = #expect(throws: Failure.self) { _ = try JournalFile.open(directory + "/file/journal", O_RDWR) }
        #expect(writing?.status == .cannotCreate)
    }

    /// A file without end is not read into memory. This one has a length, and nothing on the disk.
    @Test func aJournalThatIsTooLarge() throws {
        try sandbox.write("journal", "")
        try sandbox.truncate("journal", to: 1 << 30)
        let descriptor = try #require(try JournalFile.open(path, O_RDONLY))
        close(descriptor)
        try sandbox.truncate("journal", to: 1 << 30 + 1)
        let failure = #expect(throws: Failure.self) { _ = try JournalFile.open(path, O_RDONLY) }
        #expect(failure?.status == .configuration && failure?.message.contains("is too large") == true)
    }

    // MARK: The command

    /// Quiet is quiet of what went well alone.
    @Test func statusOfAJournal() throws {
        try run([JournalRecord(.done, path: stores[0].identity)])
        let unfinished = try sandbox.sealdb("status", "journal", "-q")
        #expect(unfinished.status == 2 && unfinished.output.contains("not begun:"), "\(unfinished)")
        let json = try sandbox.sealdb("status", "journal", "--json")
        let object = try #require(try JSONSerialization.jsonObject(with: json.outputData) as? [String: Any])
        #expect(json.status == 2 && object["status"] as? String == "partial" && object["exitCode"] as? Int == 2)
        #expect(object["runs"] as? Int == 1 && object["done"] as? Int == 1 && object["notBegun"] as? Int == 1)
        try run([JournalRecord(.done, path: stores[1].identity)])
        #expect(try sandbox.succeed("status", "journal", "-q").output.isEmpty)
        try sandbox.write("empty", "")
        #expect(try sandbox.fail(65, "status", "empty").error.contains("no batch was begun"))
    }
}
