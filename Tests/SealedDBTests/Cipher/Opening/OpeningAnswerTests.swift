import Foundation
import Testing

@testable import SealedDB

/// What is found out before a file is opened, and while somebody else changes it.
@Suite(.hangLimit)
struct OpeningAnswerTests {
    private let directory: TemporaryDirectory
    private let path: String

    init() throws {
        directory = try TemporaryDirectory()
        path = directory.file("db")
    }

    private func refusal(_ path: String, _ flags: Int32 = SQLITE_OPEN_READWRITE) -> DatabaseError.Reason? {
        do throws(DatabaseError) {
            try StoreOpening(path: path, flags: flags).refuseEmptied()
            return nil
        } catch {
            return error.reason
        }
    }

    // MARK: Files that are none

    /// Who gives no key may open what SQLite opens.
    @Test func aDeviceWithoutAKey() throws {
        #expect(refusal("/dev/null") == nil)
        var opening = StoreOpening(path: "/dev/null")
        opening.needsContents = true
        #expect(throws: DatabaseError.self) { try opening.refuseEmptied() }
    }

    /// What is written to a file without a name is lost. Reading loses nothing.
    @Test func aFileWithoutAName() throws {
        let descriptor = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
        defer { close(descriptor) }
        try #require(write(descriptor, "contents", 8) == 8 && unlink(path) == 0)
        let name = "/proc/self/fd/\(descriptor)"
        #expect(refusal(name) == .noSuchFile)
        #expect(refusal(name, SQLITE_OPEN_READONLY) == nil)
    }

    /// A restore that was killed left the second name: what is in it is safe there.
    @Test func aLogWithASecondName() throws {
        let create = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE
        try directory.write("db-wal", [UInt8](repeating: 1, count: 100))
        #expect(refusal(path, create) == .alreadyExists)
        try #require(link(directory.file("db-wal"), directory.file("old-wal")) == 0)
        #expect(refusal(path, create) == nil)
    }

    @Test func aJournalWithASecondName() throws {
        let create = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE
        let owner = try Database.testing(directory.file("owned"))
        try owner.fill(rows: 300)
        #expect(owner.beginImmediateTransaction())
        try owner.spillChanges()
        try owner.executeUpdate("UPDATE t SET body = body || 'x'", values: nil)
        try directory.write("db-journal", directory.bytes("owned-journal"))
        #expect(owner.rollback())
        owner.close()
        #expect(refusal(path, create) == .alreadyExists)
        try #require(link(directory.file("db-journal"), directory.file("old-journal")) == 0)
        #expect(refusal(path, create) == nil)
    }

    /// The journal mode stands in the header, if that is whole.
    @Test func aHeaderThatIsCutOff() throws {
        var header = Array("SQLite format 3\0".utf8) + [16, 0, 2, 2]
        header += [UInt8](repeating: 0, count: 100 - header.count)
        func mode(_ count: Int) throws -> String {
            try directory.write("db", header.prefix(count))
            let connection = try Connection(path: path, flags: SQLITE_OPEN_READONLY)
            defer { connection.close() }
            return try connection.storedJournalMode(Sealing(key: nil))
        }
        #expect(try mode(100) == "wal")
        #expect(try mode(99) == "delete")
        #expect(try mode(20) == "delete")
    }

    // MARK: Attaching

    /// Where neither has a key, a new file is what was asked for.
    @Test func aNewFileIsAttachedToAPlainOne() throws {
        let database = Database(path: path)
        try database.openVerified()
        defer { database.close() }
        try database.attach(directory.file("new"), as: "new")
        try database.executeUpdate("CREATE TABLE new.t (a)", values: nil)
        #expect(try directory.bytes("new").starts(with: Data("SQLite format 3\0".utf8)))
    }

    // MARK: Locks

    /// To close another descriptor would drop the locks of this process.
    @Test func aFileThatThisProcessHasOpen() throws {
        try directory.write("db", [UInt8](repeating: 1, count: 4096))
        let descriptor = open(path, O_RDONLY | O_CLOEXEC)
        let error = #expect(throws: DatabaseError.self) { try StoreLock(path).release() }
        #expect(error?.reason == .busy)
        close(descriptor)
        try StoreLock(path).release()
    }

    @Test func aSignalWhileALockedFileIsRead() throws {
        let call = try FailedCall("pread db", EINTR, prepare: { try $0.write("db", [5, 6, 7]) }) { directory in
            try StoreLock(directory.file("db")).beginning(16).bytes
        }
        #expect(call.value == [5, 6, 7], "\(call.error as Any)")
        #expect(call.open == [])
    }

    // MARK: Logs of others

    /// A process that has the log or journal open, and cannot be looked into.
    private func withUnseenUser(of suffix: String = "-wal", _ body: (_ process: Int32) throws -> Void) throws {
        let (input, output) = (Pipe(), Pipe())
        let holder = Process()
        holder.executableURL = URL(fileURLWithPath: "/bin/sh")
        holder.arguments = ["-c", "exec 9<>'\(path)\(suffix)'; echo ready; read line"]
        (holder.standardInput, holder.standardOutput) = (input, output)
        try holder.run()
        #expect(output.fileHandleForReading.availableData == Data("ready\n".utf8))
        let watch = CallWatch("/proc/\(holder.processIdentifier)/fd", failing: 0...Int.max - 1, code: EACCES)
        let result = Result { try body(holder.processIdentifier) }
        watch.end()
        try input.fileHandleForWriting.close()
        holder.waitUntilExit(minutes: 10)
        try result.get()
    }

    /// If somebody has a lock on the store, the log is believed to be used for that.
    @Test func aLogThatAnUnseenProcessHasOpen() throws {
        try directory.write("db", [UInt8](repeating: 1, count: 4096))
        let log = try FileSystem.status(directory.write("db-wal", [UInt8](repeating: 1, count: 100)))
        try withUnseenUser { _ in
            let error = #expect(throws: DatabaseError.self) { try StoreOpening.isLogInUse(ofStore: path, log: log) }
            #expect(error?.message.contains("may not look into") == true, "\(error as Any)")
            // Without the table it may be used for this file: its pages are looked at.
            #expect(try !StoreOpening.isLogInUse(ofStore: path, log: log) { nil })
            let store = open(path, O_RDWR | O_CLOEXEC)
            defer { close(store) }
            var lock = flock(
                l_type: Int16(F_RDLCK),
                l_whence: Int16(SEEK_SET),
                l_start: 0x4000_0002,
                l_len: 1,
                l_pid: 0
            )
            try #require(fcntl(store, F_SETLK, &lock) == 0)
            #expect(try !StoreOpening.isLogInUse(ofStore: path, log: log))
        }
    }

    /// As long as somebody has reserved the store, it is that which is changed.
    @Test func aJournalThatAnUnseenProcessWrites() throws {
        let plain = Database(path: path)
        try plain.openVerified()
        try plain.executeUpdate("CREATE TABLE t (a)", values: nil)
        try directory.write("db-journal", [UInt8](repeating: 1, count: 600))
        let id = LockTable.name(of: try FileSystem.status(path), at: path)
        try withUnseenUser(of: "-journal") { process in
            func refusal(_ lines: [String], _ hasWriters: Int32?) -> String? {
                do throws(DatabaseError) {
                    try StoreOpening.requireNoJournalOfFormerFile(
                        ofStore: path,
                        table: { LockTable(lines: lines) },
                        hasWriters: hasWriters.map { answer in { _ in answer } } ?? StoreOpening.hasWriters
                    )
                    return nil
                } catch {
                    return error.reason == .busy ? error.message : "\(error)"
                }
            }
            let unseen = "has not locked the file that is there"
            #expect(refusal([], nil)?.contains(unseen) == true)
            #expect(refusal([], 0) == nil && refusal([], -1) == nil)
            // Where the kernel gives no lease: somebody who writes another store of the device.
            let other = "1: POSIX  ADVISORY  WRITE \(process) \(id)0 1073741825 1073741825"
            #expect(refusal([other], -1)?.contains("such as process \(process) (sh)") == true)
            let harmless = [
                "1: POSIX  ADVISORY  READ \(process) \(id)0 1073741825 1073741825",
                "1: POSIX  ADVISORY  WRITE \(process) \(id)0 1073741826 1073742335",
                "1: POSIX  ADVISORY  WRITE \(process) \(id) 1073741825 1073741825",
                "1: POSIX  ADVISORY  WRITE \(getpid()) \(id)0 1073741825 1073741825",
                "1: POSIX  ADVISORY  WRITE -1 \(id)0 1073741825 1073741825",
            ]
            #expect(refusal(harmless, -1) == nil)
            // Who has a lock on this one, too, writes this one.
            #expect(refusal([other, harmless[2]], -1) == nil)
            unlink(directory.file("db-journal"))
            try #require(plain.beginImmediateTransaction())
            try directory.write("db-journal", [UInt8](repeating: 1, count: 600))
            #expect(refusal([], 1) == nil && refusal([other], -1) == nil)
            unlink(directory.file("db-journal"))
            #expect(plain.rollback())
        }
        plain.close()
    }
}

/// The same for stores with keys.
@Suite(.hangLimit, .enabled(if: isEncrypting, "needs a codec"))
struct KeyedOpeningAnswerTests {
    private let directory: TemporaryDirectory
    private let path: String

    init() throws {
        directory = try TemporaryDirectory()
        path = directory.file("db")
    }

    /// There are no codes that could be checked.
    @Test func pagesWithoutCodes() throws {
        let settings = CipherSettings(usesHMAC: false)
        var configuration = Configuration(key: try .testing(1))
        configuration.cipherSettings = settings
        let database = Database(path: path, configuration: configuration)
        try database.openVerified()
        try database.fill(rows: 20)
        database.close()
        let store = StoreOpening(path: path, key: try .testing(1), settings: settings)
        #expect(throws: Never.self) { try store.requireAuthenticPages(isWatched: false) }
        let inMemory = StoreOpening(path: ":memory:", key: try .testing(1))
        #expect(throws: Never.self) { try inMemory.requireAuthenticPages(isWatched: false) }
        let missing = StoreOpening(path: directory.file("missing"), key: try .testing(1))
        #expect(throws: DatabaseError.self) { try missing.requireAuthenticPages(isWatched: false) }
    }

    /// Only another salt tells that another store was put there. A file that was emptied has none.
    @Test func aStoreThatIsEmptiedWhileItIsOpened() throws {
        let opening = StoreOpening(
            path: path,
            key: try .passphrase("hush"),
            flags: SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE
        )
        let connection = try opening.open()
        defer { connection.close() }
        let error = DatabaseError(extendedCode: SQLITE_NOTADB, reason: .wrongKey, message: "of the test")
        #expect(!opening.isOvertaken(connection, by: error))
        let bytes = try directory.bytes("db")
        for count in [0, 10] {
            try #require(truncate(path, count) == 0)
            #expect(!opening.isOvertaken(connection, by: error), "\(count)")
        }
        // In the same file, as SQLite writes it.
        let other = open(path, O_RDWR | O_CLOEXEC)
        defer { close(other) }
        let changed = [bytes[0] ^ 1] + Array(bytes.dropFirst())
        try #require(pwrite(other, changed, changed.count, 0) == changed.count)
        #expect(opening.isOvertaken(connection, by: error))
    }

    /// To read a store in WAL mode, SQLite has to make an index beside it.
    @Test func aDirectoryInWhichNoIndexCanBeMade() throws {
        let store = try Database.testing(path, journalMode: .wal)
        try store.fill(rows: 3)
        store.close()
        let opening = StoreOpening(path: path, key: try .testing(1))
        func calls() throws -> [String] {
            let count = CallWatch(directory.path)
            let result = Result { try opening.open().close() }
            let calls = count.endWithAll()
            _ = try result.get()
            return calls
        }
        let index = try #require(try calls().firstIndex(of: "open db-shm"))
        /// With an index that cannot be made, and other calls that fail too.
        func failure(_ others: ClosedRange<Int>? = nil) throws -> (error: DatabaseError?, calls: [String]) {
            // The one before has left a log.
            unlink(path + "-wal")
            let watch = CallWatch(directory.path, failing: index...index + 1, code: EACCES)
            let other = CallWatch(directory.path, failing: others, code: EACCES)
            let error = #expect(throws: DatabaseError.self) { try opening.open().close() }
            let calls = other.endWithAll()
            watch.end()
            return (error, calls)
        }
        let (error, made) = try failure()
        #expect(error?.message.contains("cannot be read here") == false, "\(error as Any)")
        let last = try #require(made.lastIndex(of: "access \(directory.path)"), "\(made)")
        let told = try failure(last...last).error
        #expect(told?.message.contains("this user may not write in its directory") == true, "\(told as Any)")
        // Who may not read the file either needs more than that.
        #expect(made[last - 1] == "access db")
        let both = try failure(last - 1...last).error
        #expect(both?.message.contains("cannot be read here") == false, "\(both as Any)")
    }

    /// Somebody puts a store in the place of the new one, before that can be locked.
    @Test func aStoreThatTakesThePlaceOfANewOne() throws {
        let store = try Database.testing(directory.file("other"))
        try store.fill(rows: 3)
        store.close()
        try directory.write("db-sealdb-lock", [])
        let lock = try UsageLock.exclusive(path, timeout: 0)
        let (path, key) = (path, try Key.testing(1))
        let outcome = Guarded<Result<Int64?, any Error>?>(nil)
        let done = DispatchSemaphore(value: 0)
        let place = directory.path
        let left = Guarded<[String]>([])
        Thread.detachNewThread {
            let result = Result { () throws -> Int64? in
                let flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE
                let connection = try StoreOpening(path: path, key: key, flags: flags, busyTimeout: 600).open()
                defer { connection.close() }
                let all = (try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd")) ?? []
                let files = all.compactMap {
                    try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/fd/\($0)")
                }
                left.withLock { $0 = files.filter { $0.hasPrefix(place + "/db") && $0.hasSuffix("(deleted)") } }
                return try connection.integer("SELECT count(*) FROM t")
            }
            outcome.withLock { $0 = result }
            done.signal()
        }
        // It has made its file by then, and waits for the lock.
        while !FileSystem.exists(path), outcome.withLock({ $0 == nil }) { sched_yield() }
        try #require(rename(directory.file("other"), path) == 0)
        lock.release()
        done.wait()
        #expect(try outcome.withLock { $0 }?.get() == 3)
        #expect(left.withLock { $0 } == [])
    }
}
