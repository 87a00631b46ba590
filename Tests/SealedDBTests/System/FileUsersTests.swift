import CSealedDBSystem
import Foundation
import Testing

@testable import SealedDB

@Suite(.hangLimit)
struct FileUsersTests {
    private let directory: TemporaryDirectory
    private let store: String

    init() throws {
        directory = try TemporaryDirectory()
        store = try directory.write("db", [1])
    }

    private func requireNobodyElse() throws(DatabaseError) {
        try FileUsers.requireNobodyElse(store, ignoresUnseen: false)
    }

    /// A process that has the store open until its input ends.
    private func holdStore() throws -> (holder: Process, input: Pipe) {
        let input = Pipe()
        let output = Pipe()
        let holder = Process()
        holder.executableURL = URL(fileURLWithPath: "/bin/sh")
        holder.arguments = ["-c", "exec 9<>'\(store)'; echo ready; read line"]
        holder.standardInput = input
        holder.standardOutput = output
        try holder.run()
        #expect(output.fileHandleForReading.availableData == Data("ready\n".utf8))
        return (holder, input)
    }

    @Test func oneDescriptorIsAllowed() throws {
        let descriptor = open(store, O_RDWR | O_CLOEXEC)
        // A child that another test starts has a copy until it calls exec.
        while sealeddb_is_only_descriptor(descriptor) == 0 { sched_yield() }
        #expect(sealeddb_is_only_descriptor(descriptor) == 1)
        try requireNobodyElse()
        let second = open(store, O_RDONLY | O_CLOEXEC)
        #expect(sealeddb_is_only_descriptor(descriptor) == 0)
        let error = #expect(throws: DatabaseError.self) { try requireNobodyElse() }
        #expect(error?.reason == .busy && error?.message.contains("another connection of this process") == true)
        close(second)
        try requireNobodyElse()
        close(descriptor)
    }

    /// A child that has copies of all descriptors must have time to call exec.
    @Test func thereIsAPauseBetweenTheAttempts() throws {
        let descriptors = [open(store, O_RDWR | O_CLOEXEC), open(store, O_RDONLY | O_CLOEXEC)]
        defer { for descriptor in descriptors { close(descriptor) } }
        let watch = CallWatch(nil)
        let error = #expect(throws: DatabaseError.self) { try requireNobodyElse() }
        let calls = watch.endWithAll()
        #expect(error?.reason == .busy)
        #expect(calls.filter { $0 == "nanosleep" }.count == 19, "\(calls)")
    }

    /// No lock, no name in a table of locks: only an open descriptor.
    @Test func otherProcessIsNamed() throws {
        let descriptor = open(store, O_RDWR | O_CLOEXEC)
        defer { close(descriptor) }
        let (holder, input) = try holdStore()
        #expect(try FileUsers.others(store) == [holder.processIdentifier])
        let error = #expect(throws: DatabaseError.self) { try requireNobodyElse() }
        #expect(error?.message.contains("process \(holder.processIdentifier) (sh)") == true, "\(error as Any)")
        try input.fileHandleForWriting.close()
        holder.waitUntilExit()
        try requireNobodyElse()
    }

    /// A process that cannot be examined now is not one that has ended.
    @Test(arguments: [EMFILE, ENFILE, ENOMEM, EACCES])
    func aProcessThatCannotBeExaminedIsTold(code: Int32) throws {
        let (holder, input) = try holdStore()
        let watch = CallWatch("/proc/\(holder.processIdentifier)", failing: 0...1000, code: code)
        let error = #expect(throws: DatabaseError.self) { try requireNobodyElse() }
        let calls = watch.endWithAll()
        #expect(!calls.isEmpty)
        #expect(error?.message.contains("cannot be told") == true, "\(error as Any)")
        #expect(error?.message.contains("process \(holder.processIdentifier)") == true, "\(error as Any)")
        try input.fileHandleForWriting.close()
        holder.waitUntilExit()
    }

    /// Without a descriptor of its own it asks all processes instead of the kernel. That some are hidden, and the store not to
    /// be replaced for that, is said only where it is so.
    @Test(.enabled(if: FileManager.default.fileExists(atPath: "/proc/1"), "needs a /proc that shows the first process"))
    func nobodyIsHiddenWhereTheFirstProcessIsSeen() throws {
        do throws(DatabaseError) {
            try requireNobodyElse()
        } catch {
            // There may be a container around, or processes of others.
            #expect(!error.message.contains("/proc"), "\(error)")
        }
    }

    /// In a container, processes outside of it are not seen; so also where it cannot be told whether this is one.
    @Test func whoIsOutsideOfAContainerIsNotSeen() throws {
        let watch = CallWatch("/proc/self/ns/pid", failing: 0...1000, code: EACCES)
        let error = #expect(throws: DatabaseError.self) { try requireNobodyElse() }
        let calls = watch.endWithAll()
        #expect(!calls.isEmpty)
        let message = try #require(error?.message)
        // If there are many that are not seen, not all are named.
        #expect(message.contains("processes outside of this container") || message.contains(" more"), "\(message)")
    }

    /// The kernel knows of users whom no process shows: here of a mapping that has outlived its descriptor.
    @Test func whoCannotBeFoundCounts() throws {
        let descriptor = open(store, O_RDWR | O_CLOEXEC)
        defer { close(descriptor) }
        let second = open(store, O_RDWR | O_CLOEXEC)
        let mapping = try #require(mmap(nil, 1, PROT_READ, MAP_SHARED, second, 0))
        close(second)
        #expect(mapping != MAP_FAILED)
        #expect(sealeddb_is_only_descriptor(descriptor) == 0)
        let error = #expect(throws: DatabaseError.self) {
            try FileUsers.requireNobodyElse(store, ignoresUnseen: true)
        }
        #expect(error?.reason == .busy && error?.message.contains("is open in another process") == true)
        munmap(mapping, 1)
        try requireNobodyElse()
    }

    /// Here too: a child that has a copy of the lock's descriptor for a moment is not one who has the store open.
    @Test func whoHasTheStoreForLongIsNamed() throws {
        let (holder, input) = try holdStore()
        // No pause lasts then.
        let watch = CallWatch(nil, failing: 0...Int.max)
        let error = #expect(throws: DatabaseError.self) { try LockHolders.requireNoOthers(of: store) }
        let calls = watch.endWithAll()
        #expect(error?.reason == .busy)
        #expect(error?.message.contains("process \(holder.processIdentifier) (sh)") == true, "\(error as Any)")
        #expect(calls.filter { $0 == "nanosleep" }.count == 19, "\(calls)")
        try input.fileHandleForWriting.close()
        holder.waitUntilExit()
        try LockHolders.requireNoOthers(of: store)
        // One that has ended has no name.
        #expect(LockHolders.describe(holder.processIdentifier) == "process \(holder.processIdentifier)")
    }

    /// What this process has open itself is not in the way.
    @Test func ownUseIsNoOther() throws {
        let descriptor = open(store, O_RDWR | O_CLOEXEC)
        defer { close(descriptor) }
        let lock = try UsageLock.shared(store, timeout: 0)
        try LockHolders.requireNoOthers(of: store)
        lock?.release()
    }

    @Test func onlyDescriptors() throws {
        let descriptor = open(store, O_RDWR | O_CLOEXEC)
        defer { close(descriptor) }
        // Each waits for a second for the children that other tests start.
        #expect((0..<20).contains { _ in FileUsers.isOnly(descriptor) })
        let second = open(store, O_RDONLY | O_CLOEXEC)
        let watch = CallWatch(nil, failing: 0...Int.max)
        let isOnly = FileUsers.isOnly(descriptor)
        let calls = watch.endWithAll()
        #expect(!isOnly && calls.filter { $0 == "nanosleep" }.count == 19, "\(calls)")
        close(second)
        // Where the kernel cannot tell, it is not asked again.
        let device = open("/dev/null", O_RDWR | O_CLOEXEC)
        defer { close(device) }
        let other = CallWatch(nil, failing: 0...Int.max)
        let isTheOnly = FileUsers.isOnly(device)
        let none = other.endWithAll()
        #expect(!isTheOnly && !none.contains("nanosleep"), "\(none)")
    }
}
