import CSealedDBSystem
import Foundation
import Testing

@testable import SealedDB

/// What is believed of processes by their locks and descriptors.
@Suite(.hangLimit)
struct ProcessQuestionTests {
    private let directory: TemporaryDirectory
    private let store: String
    /// Other tests look into all processes meanwhile, so that no number is certain to be that of a call of this one.
    private static let all = 0...Int.max - 1

    init() throws {
        directory = try TemporaryDirectory()
        store = try directory.write("db", [1])
    }

    /// A process that has a file open until its input ends.
    private func holder(_ redirection: String) throws -> (process: Process, input: Pipe) {
        let (input, output) = (Pipe(), Pipe())
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/bin/sh")
        process.arguments = ["-c", "exec 9\(redirection); echo ready; read line"]
        process.standardInput = input
        process.standardOutput = output
        try process.run()
        #expect(output.fileHandleForReading.availableData == Data("ready\n".utf8))
        return (process, input)
    }

    private func end(_ holder: (process: Process, input: Pipe)) throws {
        try holder.input.fileHandleForWriting.close()
        holder.process.waitUntilExit(minutes: 10)
    }

    // MARK: Who has a store open

    /// This process has it not open itself, so that the kernel cannot be asked.
    @Test(arguments: [true, false]) func aUserThatASearchFinds(ignoresUnseen: Bool) throws {
        let holder = try holder("<>'\(store)'")
        let error = #expect(throws: DatabaseError.self) {
            try FileUsers.requireNobodyElse(store, ignoresUnseen: ignoresUnseen)
        }
        let name = "process \(holder.process.processIdentifier) (sh)"
        #expect(error?.message.contains("is open in \(name)") == true, "\(error as Any)")
        try end(holder)
        try FileUsers.requireNobodyElse(store, ignoresUnseen: true)
    }

    /// It has memory of its own, so it is none of the kernel's.
    @Test func aProcessWhoseDescriptorsAreHidden() throws {
        let holder = try holder("<>'\(store)'")
        let process = holder.process.processIdentifier
        let watch = CallWatch("/proc/\(process)/fd", failing: Self.all, code: EACCES)
        let error = #expect(throws: DatabaseError.self) {
            try FileUsers.requireNobodyElse(store, ignoresUnseen: false)
        }
        watch.end()
        let message = try #require(error?.message)
        #expect(message.contains("cannot be told"), "\(message)")
        // If there are many of them, not all are named.
        #expect(message.contains("process \(process)") || message.contains(" more"), "\(message)")
        try end(holder)
    }

    // MARK: Who uses a journal

    /// A program that copies files changes none.
    @Test func aJournalThatIsOnlyRead() throws {
        let journal = try directory.write("db-journal", Array(repeating: 1, count: 600))
        let reader = try holder("<'\(journal)'")
        #expect(try FileUsers.withDescriptors(ofLog: journal).found == [reader.process.processIdentifier])
        try StoreOpening.requireNoJournalOfFormerFile(ofStore: store)
        try end(reader)
        let writer = try holder("<>'\(journal)'")
        for table in [LockTable(), nil] {
            let error = #expect(throws: DatabaseError.self) {
                try StoreOpening.requireNoJournalOfFormerFile(ofStore: store) { table }
            }
            let name = "process \(writer.process.processIdentifier) (sh)"
            #expect(error?.message.contains("than the one that \(name) is changing") == true, "\(error as Any)")
        }
        try end(writer)
        try StoreOpening.requireNoJournalOfFormerFile(ofStore: store)
    }

    private func place(log: String? = nil, index: String? = nil) throws -> FileUsers.Place {
        func name(_ file: String) throws -> String {
            LockTable.name(of: try FileSystem.status(directory.file(file)), at: directory.file(file))
        }
        return FileUsers.Place(path: store, store: try name("db"), log: try log.map(name), index: try index.map(name))
    }

    /// In another name space of processes than that of /proc, its numbers say nothing.
    @Test func processesThatProcDoesNotShow() throws {
        let ended = try holder("<'\(store)'")
        let process = ended.process.processIdentifier
        try end(ended)
        #expect(ProcessDescriptors.own == getpid())
        #expect(ProcessDescriptors.hasEnded(process, ENOENT) && ProcessDescriptors.hasEnded(process, ESRCH))
        #expect(!ProcessDescriptors.hasEnded(process, EACCES) && !ProcessDescriptors.hasEnded(getpid(), ENOENT))
        #expect(!ProcessDescriptors.hasEnded(process, ENOENT, own: getpid() + 1))
    }

    /// Only one that has ended uses nothing for sure.
    @Test func whoCannotBeLookedAtMayUseTheLog() throws {
        let log = try directory.write("db-wal", [1])
        let table = try #require(LockTable())
        let user = try holder("<>'\(log)'")
        let process = user.process.processIdentifier
        let place = try place(log: "db-wal")
        #expect(FileUsers.logUse(of: place, by: process, table) == .ofAnother(former: []))
        // One that /proc hides is there all the same.
        let unknown = [
            ("fd", EACCES), ("fd", EMFILE), ("fd", ENOENT), ("fd", ESRCH), ("fd/9", EACCES), ("fd/9", ENOMEM),
            ("fdinfo/9", EMFILE),
        ]
        for (path, code) in unknown {
            let watch = CallWatch("/proc/\(process)/\(path)", failing: Self.all, code: code)
            let use = FileUsers.logUse(of: place, by: process, table)
            watch.end()
            #expect(use == .unknown, "\(path) \(code)")
        }
        for (path, code) in [("fd/9", ENOENT), ("fdinfo/9", ENOENT)] {
            let watch = CallWatch("/proc/\(process)/\(path)", failing: Self.all, code: code)
            let use = FileUsers.logUse(of: place, by: process, table)
            watch.end()
            #expect(use == .none, "\(path) \(code)")
        }
        // SQLite has a lock on the store as long as it has one on the index.
        try directory.write("db-shm", [1])
        let withIndex = try self.place(log: "db-wal", index: "db-shm")
        func line(_ file: String, _ start: Int) throws -> String {
            let id = LockTable.name(of: try FileSystem.status(directory.file(file)), at: directory.file(file))
            return "1: POSIX  ADVISORY  READ  \(process) \(id) \(start) \(start)"
        }
        let lines = try [line("db-shm", 124), line("db", 0x4000_0002)]
        let watch = CallWatch("/proc/\(process)/fd", failing: Self.all, code: EACCES)
        let uses = [lines, [lines[0]], [lines[1]], []].map {
            FileUsers.logUse(of: withIndex, by: process, LockTable(lines: $0))
        }
        watch.end()
        let expected: [FileUsers.LogUse] = [
            .ofThisFile(locksIndex: true), .ofAnother(former: []), .ofThisFile(locksIndex: false), .unknown,
        ]
        #expect(uses == expected)
        // It shows other descriptors than that of what it has locked.
        #expect(FileUsers.logUse(of: try self.place(index: "db-shm"), by: process, LockTable(lines: lines)) == uses[0])
        try end(user)
        #expect(FileUsers.logUse(of: place, by: process, table) == .none)
    }

    // MARK: Locks

    /// Locks at other places, of other kinds, or of nobody do not keep a writer out.
    @Test func locksThatAreNotSQLites() throws {
        let descriptor = open(store, O_RDWR | O_CLOEXEC)
        defer { close(descriptor) }
        try #require(flock(descriptor, LOCK_EX) == 0)
        #expect(LockHolders.of(store) == [])
        #expect(LockHolders.of(store, isForAlone: true) == [])
        // The kernel names no process for these.
        try #require(sealeddb_lock(descriptor, Int32(F_WRLCK), 0, 1) == 0)
        #expect(LockHolders.of(store) == [])
        lock(descriptor, 0x4000_0000, F_WRLCK)
        #expect(LockHolders.of(store) == ["another connection of this process"])
    }

    private func lock(_ descriptor: Int32, _ start: Int, _ type: Int32 = F_RDLCK) {
        var lock = flock(
            l_type: Int16(type),
            l_whence: Int16(SEEK_SET),
            l_start: start,
            l_len: 1,
            l_pid: 0
        )
        #expect(fcntl(descriptor, F_SETLK, &lock) == 0)
    }

    /// Whoever uses a log last removes its index, and the inode is soon that of another store's file. Its user is in nobody's way.
    @Test func anInodeThatAnotherFileGot() throws {
        let index = directory.file("db-shm")
        func table(at look: Int) throws -> LockTable? {
            guard look == 1 else { return LockTable(lines: []) }
            let line = try line(of: 1, "READ", index, 123)
            try FileManager.default.removeItem(atPath: index)
            return LockTable(lines: [line])
        }
        for isForAlone in [true, false] {
            try directory.write("db-shm", [1])
            var looks = 0
            let holders = LockHolders.of(store, isForAlone: isForAlone) {
                looks += 1
                return try? table(at: looks)
            }
            #expect(holders == [])
            #expect(looks == 2)
        }
        try directory.write("db-shm", [1])
        var looks = 0
        let hasLocks = LockHolders.hasLocks(on: index, ifUnknown: true) {
            looks += 1
            return try? table(at: looks)
        }
        #expect(!hasLocks)
    }

    /// Who has left meanwhile is not in the way, and who stays is named, also if this user may not look into that process.
    @Test func aLockForAMoment() throws {
        let table = LockTable(lines: [try line(of: 1, "WRITE", store, 0x4000_0000)])
        var looks = 0
        try LockHolders.requireNoOthers(of: store) {
            looks += 1
            return looks == 1 ? table : LockTable(lines: [])
        }
        #expect(looks == 2)
        // No pause lasts then.
        let watch = CallWatch(nil, failing: 0...Int.max)
        let error = #expect(throws: DatabaseError.self) { try LockHolders.requireNoOthers(of: store) { table } }
        watch.end()
        #expect(error?.reason == .busy)
        #expect(error?.message.contains("is open in process 1") == true, "\(error as Any)")
    }

    private func line(of process: Int32, _ kind: String, _ path: String, _ place: Int) throws -> String {
        "1: POSIX  ADVISORY  \(kind) \(process) \(LockTable.name(of: try FileSystem.status(path), at: path)) \(place) \(place)"
    }

    /// The number of a process may be that of a byte.
    @Test func aByteIsNoProcess() throws {
        let descriptor = open(store, O_RDWR | O_CLOEXEC)
        defer { close(descriptor) }
        lock(descriptor, 0x4000_0002)
        let name = LockTable.name(of: try FileSystem.status(store), at: store)
        // The table may lack a lock, because it changes while it is read.
        while true {
            let table = try #require(LockTable())
            guard table.hasStoreLock(name, of: getpid()) else { continue }
            #expect(!table.hasStoreLock(name, of: 0x4000_0002))
            break
        }
    }
}
