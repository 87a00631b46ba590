import Foundation
import Testing

@testable import sealdb

/// Whatever call of the system fails for the journal of a batch, no run begins without one, and two never share one.
@Suite(.hangLimit)
struct JournalCallTests {
    private let sandbox: Sandbox
    private let stores: [StoreItem]

    init() throws {
        sandbox = try Sandbox()
        stores = [try StoreItem("/no/such/store")]
    }

    /// Begins a run, and writes a record.
    private func run(_ path: String) throws {
        let journal = try BatchJournal(path: path)
        try journal.begin(operation: "rotate", stores, isResumeOnly: false)
        try journal.append(JournalRecord(.start, path: "/no/such/store"))
    }

    private func directory(_ name: String) throws -> String {
        let path = sandbox.path(name)
        try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: false)
        return URL(fileURLWithPath: path).resolvingSymlinksInPath().path
    }

    private func descriptors(below directory: String) throws -> [String] {
        try FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd").compactMap { descriptor in
            try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/fd/\(descriptor)")
        }.filter { $0.hasPrefix(directory + "/") || $0 == directory }
    }

    /// With a journal of an earlier run, or with none.
    @Test(arguments: [false, true], [EIO, EACCES, EAGAIN]) func eachCallFails(exists: Bool, code: Int32) throws {
        let first = try directory("counted")
        if exists { try run(first + "/journal") }
        let count = CallWatch(first)
        try run(first + "/journal")
        let calls = count.endWithAll()
        #expect(calls.contains { $0.hasPrefix("lock") } && calls.contains { $0.hasPrefix("fsync") })
        for index in calls.indices {
            let path = try directory("\(index)")
            if exists { try run(path + "/journal") }
            let watch = CallWatch(path, failing: index...index, code: code)
            var failure: (any Error)?
            do { try run(path + "/journal") } catch { failure = error }
            let call = watch.end(describing: index) ?? "a call that was not made"
            let found = failure.map { "\($0)" } ?? "nothing"
            // These alone may fail unnoticed: those that give back a descriptor, or look for files of earlier runs.
            let mayFail = ["close", "unlink", "opendir", "readdir", "lstat", "realpath"].contains { call.hasPrefix($0) }
            // Who has a lease on the file gives it back, so that it is opened again.
            let isTriedAgain = code == EAGAIN && call.hasPrefix("open ")
            #expect(isTriedAgain ? failure == nil : mayFail || failure is Failure, "\(call): \(found)")
            if call.hasPrefix("lock") {
                #expect(found.contains(code == EIO ? "Cannot lock" : "Another run uses"), "\(call): \(found)")
            }
            #expect(try descriptors(below: path) == [], "\(call): \(found)")
            try run(path + "/journal")
            #expect(try FileManager.default.contentsOfDirectory(atPath: path) == ["journal"], "\(call)")
        }
    }

    /// A child that is about to call exec shares the open file for a moment.
    @Test(arguments: [false, true]) func theLockEndsWithItsRunAlone(exists: Bool) throws {
        let directory = try directory("held")
        let path = directory + "/journal"
        if exists { try run(path) }
        var copies: [Int32] = []
        defer { for copy in copies { close(copy) } }
        do {
            let journal = try BatchJournal(path: path)
            try journal.begin(operation: "rotate", stores, isResumeOnly: false)
            for name in try FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd") {
                let file = try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/fd/" + name)
                // The copy may get a number that the list has for another file.
                if let number = Int32(name), file == path, copies.isEmpty { copies.append(dup(number)) }
            }
            withExtendedLifetime(journal) {}
        }
        #expect(copies.count == 1)
        try run(path)
    }

    @Test func aRunThatIsOnlyToGoOn() throws {
        let path = try directory("new") + "/journal"
        do {
            let journal = try BatchJournal(path: path)
            let failure = #expect(throws: Failure.self) {
                try journal.begin(operation: "rotate", stores, isResumeOnly: true)
            }
            #expect(failure?.status == .noInput)
            #expect(access(path, F_OK) != 0)
        }
        try run(path)
        let journal = try BatchJournal(path: path)
        try journal.begin(operation: "rotate", stores, isResumeOnly: true)
    }

    @Test func twoRunsNeverShareOne() throws {
        let path = sandbox.path("journal")
        let journal = try BatchJournal(path: path)
        try journal.begin(operation: "rotate", stores, isResumeOnly: false)
        let error = #expect(throws: Failure.self) { _ = try BatchJournal(path: path) }
        #expect("\(try #require(error))".contains("Another run uses"))
        withExtendedLifetime(journal) {}
    }
}
