import FailingCalls
import Foundation
import Testing

@testable import SealedDB

/// Copies that are made page by page without SQLCipher.
@Suite(.hangLimit, .enabled(if: isEncrypting, "needs a codec"))
struct PageTransferTests {
    private let directory: TemporaryDirectory

    init() throws {
        directory = try TemporaryDirectory()
    }

    private static let size = 4096

    /// A store under key 1, of more than one run of pages unless it is small.
    private func make(rows: Int = 3000, mode: Configuration.JournalMode = .delete) throws {
        let store = try Database.testing(directory.file("db"), journalMode: mode)
        try store.fill(rows: rows)
        try store.executeUpdate("INSERT INTO t (body) VALUES (hex(zeroblob(20000)))", values: nil)
        #expect(store.close())
    }

    private func rotate() throws {
        try KeyRotation(path: directory.file("db"), from: .testing(1), to: .testing(2)).run()
    }

    private func backup(key: UInt8 = 1) throws {
        try StoreBackup(
            path: directory.file("db"),
            key: .testing(1),
            to: directory.file("backup"),
            backupKey: .testing(key)
        ).run()
    }

    private func count(_ name: String, key: UInt8 = 1) throws -> [Int] {
        let database = try Database.testing(directory.file(name), key: key)
        defer { database.close() }
        return try database.integers("SELECT count(*) FROM t")
    }

    private func error(_ body: () throws -> Void) -> DatabaseError? {
        do {
            try body()
            return nil
        } catch {
            return error as? DatabaseError
        }
    }

    private func source(_ connection: Connection) throws -> PageSource {
        try PageSource(still: connection, key: .testing(1), settings: .init())
    }

    private func newFile() throws -> NewFile {
        let path = directory.file("new")
        let file = try NewFile(FileIdentity(creating: path), path: path)
        return try #require(file)
    }

    private func open(_ name: String, key: UInt8 = 1) throws -> Connection {
        try StoreOpening(path: directory.file(name), key: .testing(key), takesLock: false).open()
    }

    // MARK: What is written

    /// Also under the same key: the log of the store, left beside a backup that took its place, is not taken for the
    /// backup's own.
    @Test func aBackupHasASaltOfItsOwn() throws {
        let store = try Database.testing(directory.file("db"), journalMode: .wal)
        try store.fill(rows: 10)
        try backup()
        try store.fill(rows: 10)
        let log = try directory.bytes("db-wal")
        #expect(store.close())
        try directory.write("db", directory.bytes("backup"))
        try directory.write("db-wal", log)
        #expect(error { _ = try open("db") }?.reason == .damaged)
        unlink(directory.file("db-wal"))
        #expect(try count("db") == [10])
    }

    @Test(arguments: [Configuration.JournalMode.delete, .wal], [1, 2] as [UInt8])
    func copiesKeepTheJournalMode(mode: Configuration.JournalMode, key: UInt8) throws {
        try make(rows: 30, mode: mode)
        try backup(key: key)
        try rotate()
        for (name, key) in [("backup", key), ("db", 2)] {
            let copy = try open(name, key: key)
            defer { copy.close() }
            #expect(try copy.text("PRAGMA journal_mode") == mode.rawValue, "\(name)")
            #expect(try copy.text("PRAGMA integrity_check") == "ok", "\(name)")
        }
    }

    /// The IVs of all pages of all files.
    @Test func noIVIsUsedTwice() throws {
        try make()
        var vectors: Set<Data> = []
        func add(_ name: String) throws -> Int {
            let bytes = try directory.bytes(name)
            for end in stride(from: Self.size, through: bytes.count, by: Self.size) {
                vectors.insert(bytes[(end - 80)..<(end - 64)])
            }
            return bytes.count / Self.size
        }
        var pages = try add("db")
        try backup(key: 3)
        pages += try add("backup")
        try rotate()
        pages += try add("db")
        #expect(pages > 300 && vectors.count == pages)
    }

    /// Under the same raw key, pages keep ciphertext and IV, and get codes under the new salt; with a salt that is part of
    /// the key, they are the same.
    @Test(arguments: [false, true]) func underTheSameKeyCiphertextIsKept(isSalted: Bool) throws {
        let key = try Array(0..<UInt8(isSalted ? 48 : 32)).withUnsafeBytes { bytes in
            try isSalted
                ? Key.raw(.init(rebasing: bytes[..<32]), salt: .init(rebasing: bytes[32...])) : Key.raw(bytes)
        }
        let store = Database(path: directory.file("db"), configuration: Configuration(key: key))
        try store.openVerified()
        try store.fill(rows: 3000)
        #expect(store.close())
        try StoreBackup(path: directory.file("db"), key: key, to: directory.file("backup")).run()
        let (source, copy) = (try directory.bytes("db"), try directory.bytes("backup"))
        #expect(source.count == copy.count && source.count > 100 * Self.size)
        #expect((source == copy) == isSalted)
        #expect((source.prefix(16) == copy.prefix(16)) == isSalted)
        for start in stride(from: 0, to: source.count, by: Self.size) {
            let kept = (start == 0 ? 16 : start)..<(start + Self.size - 64)
            let code = (start + Self.size - 64)..<(start + Self.size)
            #expect(source[kept] == copy[kept] && (source[code] == copy[code]) == isSalted, "\(start)")
        }
        #expect(try IntegrityReport.verify(path: directory.file("backup"), key: key).isSound)
    }

    /// A page that is changed on the way is encrypted anew, also under the same key.
    @Test func aChangedPageHasAnotherIV() throws {
        try make()
        let connection = try open("db")
        defer { connection.close() }
        let transfer = try PageTransfer(source(connection), to: Sealing(key: .testing(1)), .wal)
        try transfer.run(into: newFile()) { _ in }
        let (source, copy) = (try directory.bytes("db"), try directory.bytes("new"))
        func vector(_ bytes: Data, _ page: Int) -> Data { bytes[(page * Self.size - 80)..<(page * Self.size - 64)] }
        #expect(vector(source, 1) != vector(copy, 1) && vector(source, 2) == vector(copy, 2))
        #expect(source[16..<32] != copy[16..<32])
        let opened = try open("new")
        defer { opened.close() }
        #expect(try opened.text("PRAGMA journal_mode") == "wal")
        #expect(try opened.integer("SELECT count(*) FROM t") == 3001)
    }

    @Test(arguments: [1, 2, 63, 64, 65, 128, 200]) func filesOfThisManyPages(wanted: Int) throws {
        let store = try Database.testing(directory.file("db"))
        try store.executeUpdate("CREATE TABLE t (a)")
        while try store.integers("PRAGMA page_count")[0] < wanted {
            try store.executeUpdate("INSERT INTO t VALUES (zeroblob(4200))")
        }
        let pages = try store.integers("PRAGMA page_count")[0]
        let rows = try store.integers("SELECT count(*) FROM t")
        #expect(store.close())
        try rotate()
        #expect(try directory.bytes("db").count == pages * Self.size)
        #expect(try count("db", key: 2) == rows)
        #expect(try IntegrityReport.verify(path: directory.file("db"), key: .testing(2)).isSound)
    }

    /// Pages after the end of the database, and a piece of one, are not copied.
    @Test func whatStandsBehindTheEnd() throws {
        try make(rows: 30)
        let before = try directory.bytes("db")
        try directory.write("db", before + [UInt8](repeating: 5, count: 3 * Self.size + 100))
        try backup()
        #expect(try directory.bytes("backup").count == before.count && count("backup") == [31])
        try rotate()
        #expect(try directory.bytes("db").count == before.count)
        #expect(try count("db", key: 2) == [31])
    }

    /// SQLite never writes the page with its lock bytes, so it has no code.
    @Test(arguments: [1, 2] as [UInt8]) func theLockPageIsLeftOut(key: UInt8) throws {
        try make()
        var bytes = try directory.bytes("db")
        let range = 4 * Self.size..<5 * Self.size
        bytes.replaceSubrange(range, with: Data(repeating: 9, count: Self.size))
        try directory.write("db", bytes)
        let connection = try open("db")
        defer { connection.close() }
        var transfer = try PageTransfer(source(connection), to: Sealing(key: .testing(key)), .kept)
        let found = error { try transfer.run(into: newFile()) { _ in } }
        #expect(found?.message.contains("Page 5 ") == true)
        unlink(directory.file("new"))
        transfer.lockPage = 5
        try transfer.run(into: newFile()) { _ in }
        let copy = try directory.bytes("new")
        #expect(copy.count == bytes.count && copy[range] == Data(count: Self.size))
        #expect(PageScan.lockPage(pageSize: 4096) == 262_145)
    }

    /// A gibibyte behind the start of files that hold little of it.
    @Test(arguments: [1, 2] as [UInt8]) func aroundTheLockPage(key: UInt8) throws {
        try make(rows: 30)
        let connection = try open("db")
        defer { connection.close() }
        let transfer = try PageTransfer(source(connection), to: Sealing(key: .testing(key)), .kept)
        let numbers = transfer.lockPage - 1...transfer.lockPage + 1
        let contents = [UInt8](repeating: 7, count: Self.size)
        var page = [UInt8](repeating: 0, count: Self.size)
        let file = try FileHandle(forWritingTo: URL(fileURLWithPath: directory.file("db")))
        for number in [numbers.lowerBound, numbers.upperBound] {
            try contents.withUnsafeBytes { contents in
                try page.withUnsafeMutableBytes { try transfer.sourceCipher.seal(contents, number: number, into: $0) }
            }
            try file.seek(toOffset: UInt64(number - 1) * UInt64(Self.size))
            try file.write(contentsOf: page)
        }
        try file.close()
        let new = try newFile()
        let worker = try TransferWorker(transfer, new, pageCount: numbers.count)
        try worker.read(numbers)
        #expect(try worker.outcome(of: numbers) == numbers.count)
        for number in numbers {
            #expect(try page.withUnsafeMutableBytes { try new.read(into: $0, at: (number - 1) * Int64(Self.size)) })
            guard number != transfer.lockPage else {
                #expect(page.allSatisfy { $0 == 0 })
                continue
            }
            #expect(try transfer.targetCipher.isAuthentic(page, number: number))
            let found = try transfer.targetCipher.contents(page[...], number: number)
            #expect(found == Array(contents[..<transfer.targetCipher.contentSize]))
        }
    }

    // MARK: Damage

    /// Anywhere in a page, of whatever kind.
    @Test(arguments: [0, 1, 2]) func noDamagedPageIsCopied(way: Int) throws {
        try make()
        let sound = try directory.bytes("db")
        let pages = sound.count / Self.size
        for page in Set([2, 64, 65, pages] + (0..<4).map { _ in Int.random(in: 2...pages) }) {
            var bytes = sound
            bytes[(page - 1) * Self.size + Int.random(in: 0..<Self.size)] ^= 1
            try directory.write("db", bytes)
            let found = error {
                switch way {
                case 0: try rotate()
                case 1: try backup(key: 1)
                default: try backup(key: 2)
                }
            }
            #expect(found?.reason == .damaged, "page \(page): \(String(describing: found))")
            #expect(found?.message.contains("Page \(page) ") == true, "\(String(describing: found))")
            #expect(directory.namesOfFiles == ["db"])
            #expect(try directory.bytes("db") == bytes)
        }
    }

    /// A page of the same store, authentic under the key, that stands in another place.
    @Test func aPageInTheWrongPlaceIsNotCopied() throws {
        try make()
        var bytes = try directory.bytes("db")
        bytes.replaceSubrange(7 * Self.size..<8 * Self.size, with: bytes[9 * Self.size..<10 * Self.size])
        try directory.write("db", bytes)
        #expect(error { try rotate() }?.message.contains("Page 8 ") == true)
        #expect(error { try backup() }?.reason == .damaged)
    }

    @Test func aSourceThatShrinks() throws {
        try make()
        let connection = try open("db")
        defer { connection.close() }
        let source = try self.source(connection)
        try #require(truncate(directory.file("db"), off_t(150 * Self.size + 7)) == 0)
        let transfer = try PageTransfer(source, to: Sealing(key: .testing(2)), .kept)
        var last: Int64 = 0
        let found = error { try transfer.run(into: newFile()) { last = $0 } }
        #expect(found?.reason == .damaged, "\(String(describing: found))")
        #expect(found?.message.contains("page 151,") == true, "\(String(describing: found))")
        #expect(last == 128)
    }

    // MARK: The disk

    /// Makes a backup in a directory of its own, and has calls for files there fail.
    private func copy(
        _ key: UInt8,
        failing calls: ClosedRange<Int>? = nil,
        _ code: Int32 = EIO
    ) throws -> (error: DatabaseError?, calls: [String]) {
        let copies = directory.file("copies")
        try? FileManager.default.removeItem(atPath: copies)
        try FileManager.default.createDirectory(atPath: copies, withIntermediateDirectories: false)
        let watch = CallWatch(copies, failing: calls, code: code)
        let found = error {
            try StoreBackup(
                path: directory.file("db"),
                key: .testing(1),
                to: copies + "/db",
                backupKey: .testing(key)
            ).run()
        }
        let all = watch.endWithAll()
        if found != nil { #expect(try FileManager.default.contentsOfDirectory(atPath: copies) == []) }
        return (found, all)
    }

    private func firstCall(_ name: String) throws -> ClosedRange<Int> {
        let index = try #require(try copy(2).calls.firstIndex { $0.hasPrefix(name) })
        return index...index
    }

    /// A disk that stores another bit than it was given, or returns another one than it stored, and says nothing, is found
    /// out while the source is at hand.
    @Test(arguments: ["pwrite", "pread"], [1, 2] as [UInt8])
    func whatIsReadBackIsCompared(name: String, key: UInt8) throws {
        try make(rows: 60)
        let found = try copy(key, failing: firstCall(name), Int32(failing_calls_changing)).error
        #expect(found?.reason == .unverified, "\(String(describing: found))")
        #expect(found?.message.contains("read back") == true, "\(String(describing: found))")
    }

    @Test(arguments: [1, 2] as [UInt8]) func readsAndWritesOfAPart(key: UInt8) throws {
        try make()
        let found = try copy(key, failing: 0...Int.max, Int32(failing_calls_shortening)).error
        #expect(found == nil, "\(String(describing: found))")
        #expect(try count("copies/db", key: key) == [3001])
        #expect(try IntegrityReport.verify(path: directory.file("copies/db"), key: .testing(key)).isSound)
    }

    @Test(arguments: ["pwrite", "pread"]) func callsThatASignalEnds(name: String) throws {
        try make(rows: 60)
        let found = try copy(2, failing: firstCall(name), EINTR).error
        #expect(found == nil, "\(String(describing: found))")
        #expect(try count("copies/db", key: 2) == [61])
    }

    @Test func aFullDisk() throws {
        try make(rows: 60)
        let found = try copy(2, failing: firstCall("pwrite"), ENOSPC).error
        #expect(found?.reason == .noSpace, "\(String(describing: found))")
    }

    /// Parts of a large file are on their way to the disk before the sync: eight begin. One call asks whether the system can
    /// wait for them.
    @Test(arguments: [1, 2] as [UInt8]) func whatIsWrittenBeforeTheSync(key: UInt8) throws {
        let store = try Database.testing(directory.file("db"))
        try store.executeUpdate("CREATE TABLE t (a)")
        try store.executeUpdate("INSERT INTO t VALUES (zeroblob(9000000))")
        #expect(store.close())
        let calls = try copy(key).calls
        #expect(calls.filter { $0.hasPrefix("sync_file_range") }.count == 1 + 8)
        let sync = try #require(calls.firstIndex { $0.hasPrefix("fsync") })
        #expect(calls[..<sync].contains { $0.hasPrefix("sync_file_range") })
        #expect(try count("copies/db", key: key) == [1])
    }

    /// Not every file system can begin to write. A disk that fails need not say so twice.
    @Test func whatCannotBeWritten() throws {
        let file = try newFile()
        for code in [ENOSYS, EPERM, EINVAL, EIO, ENOSPC] {
            let watch = CallWatch(directory.path, failing: 0...0, code: code)
            var hasBegun: Bool?
            let found = error { hasBegun = try file.beginWriting(0..<4096) }
            let calls = watch.endWithAll()
            #expect(calls.count == 1 && calls[0].hasPrefix("sync_file_range"))
            #expect(found?.reason == (code == EIO ? .ioError : code == ENOSPC ? .noSpace : nil), "\(code)")
            #expect(hasBegun == (found == nil ? false : nil), "\(code)")
        }
        #expect(try file.beginWriting(0..<4096))
    }

    /// Where it is not possible to wait, this is found before anything is written.
    @Test func whatCannotBeWaitedFor() throws {
        let watch = CallWatch(directory.path)
        _ = try newFile()
        let question = try #require(watch.endWithAll().firstIndex { $0.hasPrefix("sync_file_range") })
        try FileManager.default.removeItem(atPath: directory.file("new"))
        let failing = CallWatch(directory.path, failing: question...question, code: ENOSYS)
        let file = try newFile()
        #expect(failing.end(describing: question)?.hasPrefix("sync_file_range") == true)
        let later = CallWatch(directory.path)
        try file.awaitWriting(0..<4096)
        #expect(later.endWithAll() == [])
    }

    /// The sync does not tell it again.
    @Test func whatCouldNotBeWrittenIsAlwaysTold() throws {
        let file = try newFile()
        for code in [ENOSYS, EPERM, EINVAL, EIO, ENOSPC] {
            let watch = CallWatch(directory.path, failing: 0...0, code: code)
            let found = error { try file.awaitWriting(0..<4096) }
            _ = watch.endWithAll()
            #expect(found != nil, "\(code)")
        }
    }

    // MARK: SQLCipher's last word

    /// A mistake in what is written: SQLCipher reads no page but the first one.
    @Test func whatSQLCipherReadsCounts() throws {
        try make()
        let connection = try open("db")
        defer { connection.close() }
        let transfer = try PageTransfer(source(connection), to: Sealing(key: .testing(2)), .kept)
        try transfer.run(into: newFile()) { _ in }
        let sound = try directory.bytes("new")
        func answer() throws -> String? {
            let copy = try open("new", key: 2)
            defer { copy.close() }
            return try SampleCheck(totals: transfer.source.totals).problem(copy)
        }
        #expect(try answer() == nil)
        var bytes = sound
        for end in stride(from: 2 * Self.size, through: bytes.count, by: Self.size) { bytes[end - 1] ^= 1 }
        try directory.write("new", bytes)
        #expect(error { _ = try answer() }?.code == SQLITE_CORRUPT)
        // The pages of rows that are in the middle of the file.
        bytes = sound
        for end in stride(from: 60 * Self.size, through: 100 * Self.size, by: Self.size) { bytes[end - 1] ^= 1 }
        try directory.write("new", bytes)
        #expect(error { _ = try answer() }?.code == SQLITE_CORRUPT)
        // A file that lacks its end is refused before.
        try directory.write("new", sound.dropLast(Self.size))
        #expect(throws: DatabaseError.self) { try answer() }
    }

    /// Tables of all kinds, and ones whose row ids are as far apart as can be.
    @Test(arguments: [0, 1]) func samplesOfAllTables(autoVacuum: Int) throws {
        let store = try Database.testing(directory.file("db"))
        try RichDatabase.fill(store, autoVacuum: autoVacuum)
        #expect(
            store.executeStatements(
                """
                CREATE TABLE far (a);
                INSERT INTO far (rowid, a) VALUES (-9223372036854775808, 1), (0, 2), (9223372036854775807, 3);
                CREATE TABLE none (a);
                """
            )
        )
        let contents = try RichDatabase.contents(of: store)
        #expect(store.close())
        try backup(key: 2)
        let copy = try Database.testing(directory.file("backup"), key: 2)
        defer { copy.close() }
        #expect(try RichDatabase.contents(of: copy) == contents)
        try RichDatabase.use(copy)
    }

    @Test func places() {
        for count in [0, 1, 2, 63, 64, 65, 1000] {
            let places = SampleCheck.places(of: count)
            #expect(places.count == min(count, 64) && Set(places).count == places.count)
            guard count > 0 else { continue }
            #expect(places.first == 0 && places.last == count - 1 && places == places.sorted())
        }
    }

    // MARK: Logs

    /// What is only in the log, of a store that is in use.
    @Test(arguments: [1, 2] as [UInt8]) func whatTheLogHolds(key: UInt8) throws {
        let store = try Database.testing(directory.file("db"), journalMode: .wal)
        defer { store.close() }
        try store.executeUpdate("CREATE TABLE t (id INTEGER PRIMARY KEY, body TEXT)")
        try store.executeUpdate("PRAGMA wal_autocheckpoint = 0")
        var rows = 0
        for step in ["in the log", "checkpointed", "in the log", "restarted", "shorter", "alone in the log"] {
            try store.fill(rows: 300)
            rows += 300
            switch step {
            case "checkpointed": _ = try store.integers("PRAGMA wal_checkpoint(PASSIVE)")
            case "restarted":
                _ = try store.integers("PRAGMA wal_checkpoint(RESTART)")
                try store.executeUpdate("INSERT INTO t (body) VALUES ('more')")
                rows += 1
            case "shorter":
                try store.executeUpdate("DELETE FROM t WHERE id > 100")
                try store.executeUpdate("VACUUM")
                rows = 100
            default: break
            }
            try backup(key: key)
            #expect(try count("backup", key: key) == [rows], "\(step)")
            let report = try IntegrityReport.verify(path: directory.file("backup"), key: .testing(key))
            #expect(report.isSound, "\(step)")
            unlink(directory.file("backup"))
        }
    }

    /// Backups while others write, checkpoint and begin the log anew: each is a state that was committed.
    @Test(arguments: [1, 2] as [UInt8]) func whileOthersWrite(key: UInt8) throws {
        let path = directory.file("db")
        let store = try Database.testing(path, journalMode: .wal)
        // Every row has the number of the last transaction.
        try store.fill(rows: 200)
        try store.executeUpdate("CREATE TABLE n (n)")
        try store.executeUpdate("INSERT INTO n VALUES (0)")
        try store.executeUpdate("UPDATE t SET body = 0")
        #expect(store.close())
        let (stop, written) = (StopFlag(), Guarded(0))
        let (commit, end) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
        Thread.detachNewThread {
            defer {
                commit.signal()
                end.signal()
            }
            guard let store = try? Database.testing(path, journalMode: .wal) else { return }
            defer { store.close() }
            while !stop.isSet {
                let number = written.withLock { $0 } + 1
                let isStored = store.executeStatements(
                    """
                    BEGIN IMMEDIATE;
                    UPDATE n SET n = \(raw: number);
                    UPDATE t SET body = '\(raw: number)' || hex(zeroblob(abs(random() % 300)));
                    COMMIT
                    """
                )
                guard isStored else { return }
                written.withLock { $0 = number }
                commit.signal()
                // One that cannot get ahead of the readers does what it can.
                _ = try? store.integers("PRAGMA wal_checkpoint(\(["PASSIVE", "RESTART", "TRUNCATE"][number % 3]))")
            }
        }
        defer {
            stop.set()
            end.wait()
        }
        for number in 1...12 {
            let before = written.withLock { $0 }
            while written.withLock({ $0 }) == before {
                try #require(commit.wait(timeout: .now() + 120) == .success)
            }
            try StoreBackup(
                path: path,
                key: .testing(1),
                to: directory.file("backup-\(number)"),
                backupKey: .testing(key),
                busyTimeout: .seconds(60)
            ).run()
            let copy = try Database.testing(directory.file("backup-\(number)"), key: key)
            defer { copy.close() }
            let state = try copy.integers("SELECT n FROM n")[0]
            #expect(state > before)
            #expect(try copy.integers("SELECT count(*) FROM t WHERE body NOT LIKE '\(state)%'") == [0])
            let sound = "SELECT count(*) FROM pragma_integrity_check WHERE integrity_check = 'ok'"
            #expect(try copy.integers(sound) == [1])
        }
    }

    /// A log that lacks what its index says: a backup of the rest would lose transactions.
    @Test func aLogThatWasCutOff() throws {
        let store = try Database.testing(directory.file("db"), journalMode: .wal)
        defer { store.close() }
        try store.executeUpdate("PRAGMA wal_autocheckpoint = 0")
        try store.fill(rows: 300)
        try store.executeUpdate("INSERT INTO t (body) VALUES ('last')")
        let reader = try open("db")
        defer { reader.close() }
        try reader.run("BEGIN")
        _ = try reader.integer("SELECT count(*) FROM sqlite_schema")
        func source() throws -> PageSource { try PageSource(reading: reader, key: .testing(1), settings: .init()) }
        #expect(try source().totals.count > 10)
        let log = try directory.bytes("db-wal")
        try #require(truncate(directory.file("db-wal"), off_t(log.count - 4120)) == 0)
        #expect(error { _ = try source() }?.reason == .damaged)
        // As it was, so that the store can be closed.
        let file = try FileHandle(forWritingTo: URL(fileURLWithPath: directory.file("db-wal")))
        try file.write(contentsOf: log)
        try file.close()
        #expect(try source().totals.count > 10)
    }

    /// What an open transaction has read is what its copy has, whoever has written since.
    @Test func aTransactionThatHasBegun() throws {
        let store = try Database.testing(directory.file("db"), journalMode: .wal)
        let reader = try Database.testing(directory.file("db"), journalMode: .wal)
        defer { for database in [reader, store] { database.close() } }
        try store.fill(rows: 10)
        #expect(reader.beginDeferredTransaction())
        #expect(try reader.integers("SELECT count(*) FROM t") == [10])
        try store.executeUpdate("INSERT INTO t (body) VALUES ('later')")
        try reader.backup(toNewFile: directory.file("backup"), key: nil, progress: nil)
        #expect(try count("backup") == [10])
        #expect(reader.commit())
        try reader.backup(toNewFile: directory.file("later"), key: .testing(2), progress: nil)
        #expect(try count("later", key: 2) == [11])
    }
}
