import Foundation
import Testing

@testable import SealedDB

/// The moment in which a copy takes a name, while single calls of the system fail: what was there has its names, and no
/// other, or the copy is there.
@Suite(.hangLimit)
struct SwapCallTests {
    private let directory: TemporaryDirectory
    private var path: String { directory.file("db") }

    init() throws {
        directory = try TemporaryDirectory()
    }

    private func failure(_ body: () throws -> Void) -> DatabaseError? {
        do {
            try body()
            return nil
        } catch {
            return error as? DatabaseError
        }
    }

    /// Makes these files, and no others, each of which holds its name.
    private func makeFiles(_ names: String...) throws {
        for name in directory.names { try FileManager.default.removeItem(atPath: directory.file(name)) }
        for name in names { try directory.write(name, name.utf8) }
    }

    /// A copy beside the store that holds one word.
    private func makeCopy() throws -> StoreCopy {
        let copy = try StoreCopy(beside: path)
        try Data("copy".utf8).write(to: URL(fileURLWithPath: copy.path))
        return copy
    }

    private func text(_ name: String) throws -> String { String(decoding: try directory.bytes(name), as: UTF8.self) }

    /// Runs `body` once for each of the calls that it makes, all of which but one succeed.
    /// - Parameters:
    ///   - prepare: makes what `body` gets.
    ///   - check: looks at what came of the call that failed.
    /// - Returns: the calls whose failure made `body` fail, without their files.
    private func forEachCall<T>(
        _ code: Int32 = EACCES,
        prepare: () throws -> T,
        _ body: (T) throws -> Void,
        check: (_ call: String, DatabaseError?) throws -> Void
    ) throws -> Set<String> {
        let sound = try prepare()
        let count = CallWatch(directory.path)
        let none = failure { try body(sound) }
        let calls = count.endWithAll()
        try check("none", none)
        #expect(none == nil)
        var failed: Set<String> = []
        for (index, call) in calls.enumerated() {
            let prepared = try prepare()
            let watch = CallWatch(directory.path, failing: index...index, code: code)
            let error = failure { try body(prepared) }
            watch.end()
            try check(call, error)
            if error != nil { failed.insert(String(call.prefix { $0 != " " })) }
        }
        return failed
    }

    // MARK: The copy

    @Test func aCopyThatCannotBeMadeLeavesNothing() throws {
        try makeFiles("db")
        var reasons: Set<DatabaseError.Reason> = []
        var made: StoreCopy?
        let failed = try forEachCall(prepare: { made = nil }, { _ in made = try StoreCopy(beside: path) }) {
            call,
            error in
            made?.discard()
            if let error { reasons.insert(error.reason) }
            #expect(directory.names == ["db"], "\(call)")
        }
        #expect(failed.isSuperset(of: ["open", "fchmod"]), "\(failed)")
        #expect(reasons.contains(.ownershipNotKept) && reasons.contains(.cannotCreate), "\(reasons)")
    }

    /// SQLite would take a log or journal for the copy's own, and another file was not verified.
    @Test(arguments: ["-journal", "-wal", ""]) func whatIsNotTheCopyIsNotSynced(suffix: String) throws {
        try makeFiles("db")
        let copy = try makeCopy()
        defer { copy.discard() }
        let other = try directory.write("other", [1])
        try #require(rename(other, copy.path + suffix) == 0)
        var phases: [KeyRotation.Progress.Phase] = []
        var isSynced = false
        let report = ProgressReport(totals: PageTotals(count: 3, size: 4096)) { phases.append($0.phase) }
        let error = failure { try copy.synchronize(report) { isSynced = true } }
        #expect(error?.reason == .unverified, "\(error as Any)")
        let what = suffix.isEmpty ? "another file in its place" : "\(suffix) is left beside it"
        #expect(error?.message.contains(what) == true, "\(error as Any)")
        #expect(!isSynced && phases == [.sync])
    }

    @Test func theCopyIsSyncedBeforeTheSwapIsTold() throws {
        try makeFiles("db")
        let copy = try makeCopy()
        defer { copy.discard() }
        try Data().write(to: URL(fileURLWithPath: copy.path + "-shm"))
        var steps: [String] = []
        let report = ProgressReport(totals: PageTotals(count: 3, size: 4096)) { state in
            #expect(state.completedPages == 3 && state.totalPages == 3 && state.fractionCompleted == 1)
            steps.append(state.phase.rawValue)
        }
        try copy.synchronize(report) { steps.append("synced") }
        #expect(steps == ["sync", "synced", "swap"])
        #expect(!FileSystem.exists(copy.path + "-shm"))
    }

    // MARK: The old file

    @Test func theOldFileGetsAndLosesItsSecondName() throws {
        let prepare = {
            try makeFiles("db")
            return try makeCopy()
        }
        let failed = try forEachCall(prepare: prepare, { try $0.swapIn(keepingOldAs: directory.file("old")) }) {
            (call, error) throws in
            guard let error else {
                #expect(directory.names == ["db", "old"], "\(call)")
                #expect(try text("db") == "copy" && text("old") == "db", "\(call)")
                return
            }
            #expect(directory.names == ["db"], "\(call)")
            #expect(try text("db") == "db", "\(call)")
            #expect(error.reason == (call.hasPrefix("link") ? .cannotCreate : .ioError), "\(call)")
            #expect(error.message.hasSuffix(": Permission denied."), "\(error)")
        }
        #expect(failed.isSuperset(of: ["link", "open", "fsync", "rename"]), "\(failed)")
        // A name that somebody else has got meanwhile is left to them.
        try makeFiles("db", "old")
        let copy = try makeCopy()
        let error = failure { try copy.swapIn(keepingOldAs: directory.file("old")) }
        #expect(error?.reason == .alreadyExists && directory.names == ["db", "old"])
        #expect(try text("db") == "db" && text("old") == "old")
    }

    /// A store that keeps a second name would be refused by the next rotation.
    @Test(arguments: [false, true]) func theReplacedStoreGetsItsNameBack(hasLog: Bool) throws {
        let names = hasLog ? ["db", "db-wal"] : ["db"]
        let prepare = {
            try makeFiles("db")
            if hasLog { try directory.write("db-wal", "db-wal".utf8) }
            return try makeCopy()
        }
        let failed = try forEachCall(prepare: prepare, { try $0.swapIn(keepingOldUnder: directory.file("kept")) }) {
            (call, error) throws in
            guard let error else {
                #expect(directory.names == ["db"] + names.map { $0.replacing("db", with: "kept") }, "\(call)")
                #expect(try text("db") == "copy" && text("kept") == "db", "\(call)")
                if hasLog { #expect(try text("kept-wal") == "db-wal", "\(call)") }
                return
            }
            #expect(directory.names == names, "\(call): \(directory.names)")
            for name in names { #expect(try text(name) == name, "\(call)") }
            #expect(error.message.hasPrefix("Nothing was restored, and \(path) is unchanged: "), "\(error)")
        }
        let swap = hasLog ? ["unlink", "renameat2"] : ["rename"]
        #expect(failed.isSuperset(of: swap + ["link", "open", "fsync"]), "\(failed)")
    }

    // MARK: A new name

    @Test func aLogWithoutADatabase() throws {
        for suffix in ["-wal", "-journal"] {
            let log = "db" + suffix
            // Empty, or safe under another name.
            try makeFiles()
            try directory.write(log, [])
            try StoreCopy.requireNoLog(of: path)
            #expect(directory.names == [])
            try makeFiles(log)
            try #require(link(directory.file(log), directory.file("kept")) == 0)
            try StoreCopy.requireNoLog(of: path)
            #expect(directory.names == ["kept"])
            try makeFiles(log)
            let error = failure { try StoreCopy.requireNoLog(of: path) }
            #expect(error?.reason == .alreadyExists && error?.message.hasPrefix(directory.file(log)) == true)
            #expect(try text(log) == log)
        }
    }

    /// What cannot be examined or removed may be one.
    @Test func aLogThatCannotBeSeen() throws {
        let prepare = {
            try makeFiles()
            try directory.write("db-journal", [])
        }
        let failed = try forEachCall(prepare: prepare, { _ in try StoreCopy.requireNoLog(of: path) }) { call, error in
            #expect(directory.names == (error == nil ? [] : ["db-journal"]), "\(call)")
            guard let error else { return }
            let name = String(call.split(separator: " ").last ?? "")
            #expect(error.message.contains(directory.file(name)), "\(call): \(error)")
            #expect(error.reason == (call.hasPrefix("unlink") ? .alreadyExists : .ioError), "\(call)")
        }
        #expect(failed == ["lstat", "unlink"])
    }

    @Test func aNewNameThatCannotBeHad() throws {
        let prepare = {
            try makeFiles()
            let copy = try StoreCopy(beside: path, takesAttributes: false)
            try Data("copy".utf8).write(to: URL(fileURLWithPath: copy.path))
            return copy
        }
        let failed = try forEachCall(prepare: prepare, { try $0.moveIn() }) { call, error in
            #expect(directory.names == (error == nil ? ["db"] : []), "\(call)")
            #expect(error == nil || error?.reason == (call.hasPrefix("rename") ? .cannotCreate : .ioError), "\(call)")
        }
        #expect(failed == ["lstat", "renameat2"])
    }
}

/// The name of a store that is to be replaced.
@Suite(.hangLimit)
struct ReplaceablePlaceTests {
    private let directory: TemporaryDirectory
    private var path: String { directory.file("db") }

    init() throws {
        directory = try TemporaryDirectory()
        try directory.write("db", [1, 2, 3])
    }

    /// Only a second name of the store is taken away, not what somebody has made of that name meanwhile.
    @Test func theSecondNameOfTheStore() throws {
        let place = try ReplaceablePlace(path, oldFileSuffix: ".old")
        try place.removeUnfinishedLink()
        #expect(directory.names == ["db"])
        try directory.write("db.old", [4])
        try place.removeUnfinishedLink()
        #expect(try directory.bytes("db.old") == Data([4]))
        #expect(unlink(directory.file("db.old")) == 0 && link(path, directory.file("db.old")) == 0)
        try place.requireOneName()
        // One name more is one too many.
        #expect(link(path, directory.file("third")) == 0)
        let linked = #expect(throws: DatabaseError.self) { try place.requireOneName() }
        #expect(linked?.reason == .hardLinked && linked?.message.contains("has 3 hard links") == true)
        #expect(unlink(directory.file("third")) == 0)
        let watch = CallWatch(directory.path)
        try place.removeUnfinishedLink()
        let calls = watch.endWithAll()
        #expect(directory.names == ["db"])
        // It is not said to be gone when it is not.
        #expect(link(path, directory.file("db.old")) == 0)
        let index = try #require(calls.firstIndex { $0.hasPrefix("unlink") })
        let failing = CallWatch(directory.path, failing: index...index, code: EPERM)
        let error = #expect(throws: DatabaseError.self) { try place.removeUnfinishedLink() }
        failing.end()
        #expect(error?.reason == .ioError && error?.message.contains("\(path).old") == true)
        #expect(directory.names == ["db", "db.old"])
    }

    @Test func whatTheCopyNeeds() throws {
        let place = try ReplaceablePlace(path)
        let small = PageTotals(count: 1000, size: 4096)
        let expected: ClosedRange<Int64> = 4_464_640...4_546_560
        #expect(expected.contains(place.neededSpace(for: small)))
        try place.requireSpace(for: small)
        // More than any disk has.
        let huge = PageTotals(count: 1 << 40, size: 65536)
        let full = #expect(throws: DatabaseError.self) { try place.requireSpace(for: huge) }
        #expect(full?.reason == .noSpace && full?.code == SQLITE_FULL)
        #expect(full?.message.contains("needs \(place.neededSpace(for: huge)) bytes") == true)
        // In a directory where no file can be made, there is no place for it, however much is free.
        for (index, reason) in [DatabaseError.Reason.cannotCreate, .ioError].enumerated() {
            let watch = CallWatch(directory.path, failing: index...index, code: EACCES)
            let error = #expect(throws: DatabaseError.self) { try place.requireSpace(for: small) }
            let call = watch.end(describing: index)
            #expect(error?.reason == reason, "\(String(describing: call))")
        }
    }
}
