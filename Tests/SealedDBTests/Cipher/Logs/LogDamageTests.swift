import Foundation
import Logging
import Testing

@testable import SealedDB

/// Bytes of a log that were changed hide the transactions behind them from SQLite.
@Suite(.hangLimit, .enabled(if: isEncrypting, "needs a codec"))
struct LogDamageTests {
    private let directory: TemporaryDirectory

    private static let frameSize = 24 + 4096

    init() throws {
        directory = try TemporaryDirectory()
    }

    /// A store and its log as a service leaves them that was killed, after twenty transactions.
    private func makeStore(
        isInFile: Bool = false,
        lastStatement: String? = nil,
        _ change: (inout Data) -> Void
    ) throws {
        let service = try Database.testing(directory.file("service"), journalMode: .wal)
        defer {
            service.close()
            unlink(directory.file("service"))
        }
        try service.fill(rows: 30)
        for id in 1...20 { try service.executeUpdate("DELETE FROM t WHERE id = ?", values: [id]) }
        if let lastStatement { try service.executeUpdate(lastStatement, values: nil) }
        if isInFile { _ = try service.integers("PRAGMA wal_checkpoint(FULL)") }
        var log = try directory.bytes("service-wal")
        change(&log)
        try directory.bytes("service").write(to: URL(fileURLWithPath: directory.file("db")))
        try log.write(to: URL(fileURLWithPath: directory.file("db-wal")))
    }

    private func verify() throws -> IntegrityReport {
        try IntegrityReport.verify(path: directory.file("db"), key: .testing(1), isDeep: true)
    }

    private func expectDamage(_ comment: Comment? = nil, sourceLocation: SourceLocation = #_sourceLocation) throws {
        let files = (try directory.bytes("db"), try directory.bytes("db-wal"))
        let report = try verify()
        let isTold = report.structureProblems.contains { $0.hasPrefix("log: ") }
        #expect(!report.isSound && isTold, comment, sourceLocation: sourceLocation)
        let key = try Key.testing(2)
        for call: () throws -> Void in [
            { try KeyRotation(path: directory.file("db"), from: .testing(1), to: key).run() },
            {
                try StoreBackup(path: directory.file("db"), key: .testing(1), to: directory.file("b"), backupKey: key)
                    .run()
            },
            {
                try StoreDecryption(path: directory.file("db"), key: .testing(1), plaintextPath: directory.file("p"))
                    .run()
            },
            { try StoreRestore(backupPath: directory.file("db"), key: .testing(1), to: directory.file("r")).run() },
            { try Database.testing(nil).load(fromFile: directory.file("db")) },
        ] {
            let error = #expect(throws: DatabaseError.self, comment, sourceLocation: sourceLocation) { try call() }
            #expect(error?.reason == .damaged, comment, sourceLocation: sourceLocation)
        }
        #expect(try directory.bytes("db") == files.0 && directory.bytes("db-wal") == files.1)
    }

    @Test func aFrameBeforeOthers() throws {
        try makeStore { log in log[32 + 8 * Self.frameSize + 100] ^= 1 }
        try expectDamage()
    }

    /// The last transaction was written after this one had ended.
    /// It is opened all the same: a power failure can leave such a log. But somebody must learn of it.
    @Test(arguments: [nil, 500, 10], [true, false])
    func whoOpensIsTold(damaged offset: Int?, isReadOnly: Bool) throws {
        try makeStore { log in
            if let offset { log[offset] ^= 1 }
        }
        let log = Log<String>()
        var configuration = Configuration(key: try .testing(1))
        configuration.logger = Logger(to: log)
        configuration.isReadOnly = isReadOnly
        let database = Database(path: directory.file("db"), configuration: configuration)
        try database.openVerified()
        let texts = log.values.filter { $0.hasPrefix("error ") && $0.contains("db-wal is damaged") }
        #expect(texts.count == (offset == nil ? 0 : 1), "\(log.values)")
        #expect(texts.allSatisfy { $0.contains("drops it when") != isReadOnly }, "\(texts)")
    }

    @Test func whoAttachesIsTold() throws {
        try makeStore { log in log[500] ^= 1 }
        let log = Log<String>()
        var configuration = Configuration(key: try .testing(2))
        configuration.logger = Logger(to: log)
        let database = Database(path: directory.file("main"), configuration: configuration)
        try database.openVerified()
        #expect(log.values == [])
        try database.attach(directory.file("db"), as: "other", key: .testing(1))
        #expect(log.values.count == 1 && log.values[0].contains("db-wal is damaged"), "\(log.values)")
    }

    /// Salts of one frame are damaged, and the header, too.
    @Test(arguments: [0, 1]) func saltsBehindADamagedHeader(frame: Int) throws {
        try makeStore { log in
            log[17] ^= 1
            log[32 + frame * Self.frameSize + 9] ^= 1
        }
        try expectDamage()
        _ = try StoreRecovery(path: directory.file("db"), key: .testing(1), to: directory.file("new")).run()
        let saved = try Database.testing(directory.file("new"))
        defer { saved.close() }
        #expect(try saved.integers("SELECT count(*) FROM t") == [10])
    }

    @Test func theEndOfTheSecondLastTransaction() throws {
        try makeStore { log in
            let count = (log.count - 32) / Self.frameSize
            // Each transaction is one frame.
            log[32 + (count - 2) * Self.frameSize + 500] ^= 1
        }
        try expectDamage()
    }

    /// Where the frames begin that end a transaction.
    private static func commits(of log: Data) -> [Int] {
        stride(from: 32, to: log.count - frameSize + 1, by: frameSize).filter { start in
            log[start + 4..<start + 8].contains { $0 != 0 }
        }
    }

    /// Its page, how many there are, its salts and its checksum; the last transaction is one frame, or several.
    @Test(arguments: [0, 3, 4, 7, 8, 13, 16, 23], [nil, "UPDATE t SET body = body || hex(zeroblob(2000))"])
    func theHeaderOfTheSecondLastCommit(offset: Int, last: String?) throws {
        for isWhole in [false, true] {
            try makeStore(lastStatement: last) { log in
                let commits = Self.commits(of: log)
                let start = commits[commits.count - 2]
                if isWhole {
                    log.resetBytes(in: start..<start + 24)
                } else if offset == 7 {
                    log.resetBytes(in: start + 4..<start + 8)
                } else {
                    log[start + offset] ^= 1
                }
            }
            try expectDamage("byte \(offset)")
            // The page is whole, and so is what stands behind it.
            let name = "recovered\(isWhole)"
            _ = try StoreRecovery(path: directory.file("db"), key: .testing(1), to: directory.file(name)).run()
            let recovered = try Database.testing(directory.file(name))
            defer { recovered.close() }
            #expect(try recovered.integers("SELECT id FROM t") == Array(21...30), "byte \(offset)")
            let lengths = try recovered.integers("SELECT DISTINCT length(body) > 1000 FROM t")
            #expect(lengths == [last == nil ? 0 : 1], "byte \(offset)")
        }
    }

    /// A power failure has written the end of a transaction and not its beginning. It may be that of the page, too.
    @Test(arguments: [24, 24 + 512, 24 + 4096]) func theBeginningOfTheLastTransaction(count: Int) throws {
        try makeStore(lastStatement: "UPDATE t SET body = body || hex(zeroblob(2000))") { log in
            let start = Self.commits(of: log).dropLast().last! + Self.frameSize
            log.resetBytes(in: start..<start + count)
        }
        #expect(try verify().isSound)
    }

    /// Behind the end of a log that has begun anew stand frames of the former one.
    @Test(arguments: [true, false]) func aLogThatHasBegunAnew(isDamaged: Bool) throws {
        let service = try Database.testing(directory.file("service"), journalMode: .wal)
        defer { service.close() }
        try service.fill(rows: 30)
        for id in 1...20 { try service.executeUpdate("DELETE FROM t WHERE id = ?", values: [id]) }
        _ = try service.integers("PRAGMA wal_checkpoint(RESTART)")
        for id in 21...23 { try service.executeUpdate("DELETE FROM t WHERE id = ?", values: [id]) }
        var log = try directory.bytes("service-wal")
        // The salts of the second frame.
        if isDamaged { log[32 + Self.frameSize + 9] ^= 1 }
        try directory.write("db", directory.bytes("service"))
        try directory.write("db-wal", log)
        #expect(Self.commits(of: log).count > 3)
        if isDamaged { try expectDamage() } else { #expect(try verify().isSound) }
    }

    /// Magic, version, page size, sequence, salts, checksum.
    @Test(arguments: [0, 3, 7, 9, 10, 11, 15, 17, 21, 25, 31]) func theHeader(offset: Int) throws {
        try makeStore { log in log[offset] ^= 1 }
        try expectDamage("byte \(offset)")
        try makeStore { log in log.resetBytes(in: 0..<32) }
        try expectDamage("all zeros")
    }

    /// What the last transaction wrote before a kill hides nothing of those before it.
    @Test(arguments: [0, 10, 17, 31]) func theHeaderWithAnUnfinishedTransaction(offset: Int) throws {
        let sizes = try ["", "UPDATE t SET body = body || hex(zeroblob(2000))"].map { statement in
            var size = 0
            try makeStore(lastStatement: statement.isEmpty ? nil : statement) { log in
                if !statement.isEmpty { log.removeLast(Self.frameSize) }
                size = log.count
                log[offset] ^= 1
            }
            return size
        }
        // Frames without the end of their transaction.
        #expect(sizes[1] > sizes[0] + Self.frameSize)
        try expectDamage("byte \(offset)")
    }

    /// Each block of 4 KiB reaches over two frames. Behind the last but one stands a single commit.
    @Test func aBlockBeforeTheLastCommit() throws {
        try makeStore { log in
            let header = log.count - 2 * Self.frameSize
            let block = header / 4096 * 4096
            log.replaceSubrange(block..<(block + 4096), with: Data(count: 4096))
        }
        try expectDamage()
    }

    /// The first two of three transactions, each a frame, are damaged by one block.
    @Test func aBlockBehindTheHeader() throws {
        let service = try Database.testing(directory.file("service"), journalMode: .wal)
        try service.execute(script: "CREATE TABLE t (a); INSERT INTO t VALUES (0); PRAGMA wal_checkpoint(TRUNCATE)")
        let file = try directory.bytes("service")
        for value in 1...3 { try service.executeUpdate("UPDATE t SET a = \(value)") }
        var log = try directory.bytes("service-wal")
        #expect(service.close() && log.count == 32 + 3 * Self.frameSize)
        log.resetBytes(in: 4096..<8192)
        try directory.write("db", file)
        try directory.write("db-wal", log)
        try expectDamage()
    }

    /// The frame behind it tells what the header was, and no later one has that page.
    @Test func aHeaderThatIsLost() throws {
        let service = try Database.testing(directory.file("service"), journalMode: .wal)
        try service.execute(
            script: """
                CREATE TABLE t (a); INSERT INTO t VALUES (0); CREATE TABLE u (a); INSERT INTO u VALUES (0);
                PRAGMA wal_checkpoint(TRUNCATE)
                """
        )
        let file = try directory.bytes("service")
        for table in ["t", "u", "t"] { try service.executeUpdate("UPDATE \(raw: table) SET a = a + 1") }
        var log = try directory.bytes("service-wal")
        #expect(service.close() && log.count == 32 + 3 * Self.frameSize)
        log.resetBytes(in: 32 + Self.frameSize..<32 + Self.frameSize + 24)
        try directory.write("db", file)
        try directory.write("db-wal", log)
        try expectDamage()
        _ = try StoreRecovery(path: directory.file("db"), key: .testing(1), to: directory.file("new")).run()
        let saved = try Database.testing(directory.file("new"))
        defer { saved.close() }
        #expect(try saved.integers("SELECT t.a + 10 * u.a FROM t, u") == [12])
    }

    /// The frame that ends the damaged transaction is lost, too. Behind it pages come again, which one transaction has once.
    @Test(arguments: [0, 0xff] as [UInt8])
    func anEndThatIsLostBeforeTheLastTransaction(filling: UInt8) throws {
        let service = try Database.testing(directory.file("service"), journalMode: .wal)
        try service.fill(rows: 300)
        for _ in 0..<3 { try service.executeUpdate("UPDATE t SET body = upper(body) || 'x'") }
        let count = try service.integers("PRAGMA page_count")[0]
        var log = try directory.bytes("service-wal")
        let frames = (log.count - 32) / Self.frameSize
        // The last transaction alone is whole: it has almost all pages of the store.
        let ends = (0..<frames).filter { log[(32 + $0 * Self.frameSize + 4)...].prefix(4).contains { $0 != 0 } }
        let end = try #require(ends.dropLast().last)
        try #require(count > 10 && end > ends[ends.count - 3] + 5)
        let block = (32 + end * Self.frameSize) / 4096 * 4096
        log.replaceSubrange(block..<(block + 4096), with: Data(repeating: filling, count: 4096))
        try directory.write("db", directory.bytes("service"))
        try directory.write("db-wal", log)
        #expect(service.close())
        try expectDamage()
    }

    /// Zeros continue zeros.
    @Test func zerosOverTheHeaderAndTheFirstFrame() throws {
        try makeStore { log in log.replaceSubrange(..<8192, with: Data(count: 8192)) }
        try expectDamage()
    }

    /// A backup has another salt than the store whose log was left.
    @Test func aLogOfAnotherSaltIsNotLookedAt() throws {
        try makeStore(lastStatement: "CREATE TABLE u (a)") { _ in }
        let log = try directory.bytes("db-wal")
        try StoreBackup(path: directory.file("db"), key: .testing(1), to: directory.file("backup")).run()
        try directory.write("db", directory.bytes("backup"))
        try directory.write("db-wal", log)
        var readOnly = Configuration(key: try .testing(1))
        readOnly.isReadOnly = true
        for call: () throws -> Void in [
            { _ = try verify() },
            { try StoreRestore(backupPath: directory.file("db"), key: .testing(1), to: directory.file("r")).run() },
            { try Database(path: directory.file("db"), configuration: readOnly).openVerified() },
            { try Database.testing(directory.file("db")).close() },
        ] {
            let error = #expect(throws: DatabaseError.self) { try call() }
            #expect(
                error?.reason == .damaged && error?.message.contains("move the log away") == true,
                "\(error as Any)"
            )
        }
        #expect(try directory.bytes("db-wal") == log)
    }

    /// As a power failure may tear it when the log begins anew: what stood in it is in the file.
    @Test(arguments: [0, 10, 17, 31]) func theHeaderOfALogThatBeginsAnew(offset: Int) throws {
        try makeStore(isInFile: true) { log in log[offset] ^= 1 }
        let report = try verify()
        #expect(report.isSound, "\(report)")
        try KeyRotation(path: directory.file("db"), from: .testing(1), to: .testing(2)).run()
        let rotated = try Database.testing(directory.file("db"), key: 2)
        defer { rotated.close() }
        #expect(try rotated.integers("SELECT count(*) FROM t") == [10])
    }

    /// Pages that the store no longer has are in its log, and not in its file.
    @Test(arguments: [0, 10, 31]) func theHeaderOfALogOfAStoreThatShrank(offset: Int) throws {
        var pages: [UInt8] = []
        try makeStore(isInFile: true, lastStatement: "VACUUM") { log in
            pages = stride(from: 32, to: log.count, by: Self.frameSize).map { log[$0 + 3] }
            log[offset] ^= 1
        }
        #expect(try directory.bytes("db").count < Int(try #require(pages.max())) * 4096)
        let report = try verify()
        #expect(report.isSound, "\(report)")
    }

    /// A plaintext database that is to be encrypted can have a log, too.
    @Test func theLogOfAPlaintextDatabase() throws {
        let service = Database(path: directory.file("service"))
        try service.openVerified()
        defer { service.close() }
        #expect(service.executeStatements("PRAGMA journal_mode = WAL"))
        try service.fill(rows: 30)
        for id in 1...20 { try service.executeUpdate("DELETE FROM t WHERE id = ?", values: [id]) }
        var log = try directory.bytes("service-wal")
        for isDamaged in [true, false] {
            log[32 + 8 * Self.frameSize + 100] ^= 1
            if !isDamaged { #expect(try log == directory.bytes("service-wal")) }
            try directory.bytes("service").write(to: URL(fileURLWithPath: directory.file("plain")))
            try log.write(to: URL(fileURLWithPath: directory.file("plain-wal")))
            let encryption = StoreEncryption(
                plaintextPath: directory.file("plain"),
                path: directory.file("new"),
                key: try .testing(1)
            )
            guard isDamaged else {
                try encryption.run()
                continue
            }
            let error = #expect(throws: DatabaseError.self) { try encryption.run() }
            #expect(error?.reason == .damaged, "\(String(describing: error))")
            #expect(!directory.names.contains("new"))
        }
        let encrypted = try Database.testing(directory.file("new"))
        defer { encrypted.close() }
        #expect(try encrypted.integers("SELECT count(*) FROM t") == [10])
    }

    /// Nothing is behind it: as a power failure tears it.
    @Test func theLastFrame() throws {
        try makeStore { log in log.removeLast(2000) }
        #expect(try verify().isSound)
        try makeStore { log in log[log.count - 100] ^= 1 }
        #expect(try verify().isSound)
        try KeyRotation(path: directory.file("db"), from: .testing(1), to: .testing(2)).run()
        let rotated = try Database.testing(directory.file("db"), key: 2)
        defer { rotated.close() }
        #expect(try rotated.integers("SELECT count(*) FROM t") == [11])
    }

    /// A backup that was copied over a store, whose log stayed. SQLite would write the log into it.
    @Test(arguments: ["db-wal", "db-journal"]) func aLogOfAnotherStore(name: String) throws {
        let isLog = name == "db-wal"
        let service = try Database.testing(directory.file("service"), journalMode: isLog ? .wal : .delete)
        try service.fill(rows: 200)
        if isLog { _ = try service.integers("PRAGMA wal_checkpoint(TRUNCATE)") } else { try service.spillChanges() }
        let change = "UPDATE t SET body = body || 'x' WHERE id > 50"
        #expect(service.executeStatements((isLog ? "" : "BEGIN; ") + change))
        let log = try directory.bytes(isLog ? "service-wal" : "service-journal")
        try Database.testing(directory.file("backup"), journalMode: isLog ? .wal : .delete).fill(rows: 200)
        let backup = try directory.bytes("backup")
        try backup.write(to: URL(fileURLWithPath: directory.file("db")))
        try log.write(to: URL(fileURLWithPath: directory.file(name)))
        service.close()
        let key = try Key.testing(2)
        for call: () throws -> Void in [
            { try Database.testing(directory.file("db")).close() },
            {
                let database = try Database.testing(nil)
                defer { database.close() }
                try database.attach(directory.file("db"), as: "db", key: .testing(1))
            },
            { try KeyRotation(path: directory.file("db"), from: .testing(1), to: key).run() },
        ] {
            let error = #expect(throws: DatabaseError.self) { try call() }
            #expect(error?.reason == (isLog ? .damaged : .wrongKey), "\(String(describing: error))")
            #expect(try directory.bytes("db") == backup && directory.bytes(name) == log)
        }
        if !isLog {
            // The file itself is sound, and says nothing of why it does not open.
            let told = #expect(throws: DatabaseError.self) { _ = try verify() }
            #expect(told?.reason == .wrongKey, "\(String(describing: told))")
        }
        let error = #expect(throws: DatabaseError.self) { try Database.testing(directory.file("db"), key: 9).close() }
        #expect(error?.reason == .wrongKey, "\(String(describing: error))")
        unlink(directory.file(name))
        #expect(try Database.testing(directory.file("db")).integers("SELECT count(*) FROM t") == [200])
    }

    /// A log whose header and one transaction are right in themselves, with pages of this size.
    private func log(pageSize: Int) -> [UInt8] {
        func bytes(_ numbers: [Int]) -> [UInt8] {
            numbers.flatMap { number in [24, 16, 8, 0].map { UInt8(truncatingIfNeeded: number >> $0) } }
        }
        var log = bytes([0x377f_0683, 3_007_000, pageSize, 0, 1, 2])
        var sum = LogChecksum(isBigEndian: true)
        sum.add(log[...])
        log += sum.bytes
        let frame = bytes([1, 1])
        let page = [UInt8](repeating: 7, count: pageSize)
        sum.add(frame[...])
        sum.add(page[...])
        return log + frame + bytes([1, 2]) + sum.bytes + page
    }

    @Test(arguments: [
        (512, true), (4096, true), (65536, true), (256, false), (131_072, false), (0, false), (768, false),
    ])
    func sizesOfPages(size: Int, isLog: Bool) throws {
        try directory.write("db-wal", log(pageSize: size))
        #expect(try (LogOverlay(logOf: directory.file("db")) != nil) == isLog)
    }

    /// A log of small pages, each filled with the number of its frame.
    /// - Parameter frames: the page of each frame, and how many pages the store has if it ends a transaction, or else 0.
    private func log(of frames: [(page: Int, count: Int)]) -> [UInt8] {
        func bytes(_ numbers: [Int]) -> [UInt8] {
            numbers.flatMap { number in [24, 16, 8, 0].map { UInt8(truncatingIfNeeded: number >> $0) } }
        }
        var log = bytes([0x377f_0683, 3_007_000, 512, 0, 1, 2])
        var sum = LogChecksum(isBigEndian: true)
        sum.add(log[...])
        log += sum.bytes
        for (index, frame) in frames.enumerated() {
            let page = [UInt8](repeating: UInt8(index + 1), count: 512)
            sum.add(bytes([frame.page, frame.count])[...])
            sum.add(page[...])
            log += bytes([frame.page, frame.count, 1, 2]) + sum.bytes + page
        }
        return log
    }

    private func overlay(_ frames: [(page: Int, count: Int)]) throws -> LogOverlay? {
        try directory.write("db-wal", log(of: frames))
        return try LogOverlay(logOf: directory.file("db"))
    }

    /// What stands behind the last commit is of no transaction.
    @Test func whatIsCommittedInALog() throws {
        #expect(try overlay([]) == nil)
        #expect(try overlay([(1, 0), (2, 0)]) == nil)
        #expect(try overlay([(0, 1)]) == nil)
        let log = try #require(try overlay([(1, 0), (2, 3), (1, 0), (3, 3), (2, 0), (1, 0)]))
        #expect(log.frameCount == 4 && log.pageCount == 3 && log.ownPageCount == 3 && log.pageSize == 512)
        #expect(log.pageNumbers.sorted() == [1, 2, 3])
        // The last frame that was committed of each page.
        for (page, frame) in [(1, 3), (2, 2), (3, 4)] as [(Int64, UInt8)] {
            let found = try log.bytes(ofPage: page, from: 0, count: 512)
            #expect(found == [UInt8](repeating: frame, count: 512), "page \(page)")
        }
        #expect(try log.bytes(ofPage: 2, from: 500, count: 12)?.count == 12)
        #expect(try log.bytes(ofPage: 4, from: 0, count: 512) == nil)
        #expect(try #require(try overlay([(1, 1), (1, 0)])).frameCount == 1)
    }

    /// No frame is ever written of the page on which SQLite has its locks, and the file may end before it.
    @Test func aLogThatStepsOverTheLockPage() throws {
        let lockPage = PageScan.lockPage(pageSize: 512)
        try directory.write("db", [UInt8](repeating: 7, count: 512))
        #expect(truncate(directory.file("db"), off_t((lockPage - 1) * 512)) == 0)
        let next = Int(lockPage) + 1
        let log = try #require(try overlay([(next, 0), (next + 1, next + 1)]))
        // The log is not this connection's.
        let connection = try Connection(path: directory.file("db"), flags: SQLITE_OPEN_READONLY)
        defer { connection.close() }
        let pages = StoredPages(connection, PageTotals(count: Int64(next + 1), size: 512), log)
        let numbers = [lockPage - 1...lockPage + 2, lockPage...lockPage, lockPage...lockPage + 1]
        for range in numbers {
            var bytes = [UInt8](repeating: 9, count: range.count * 512)
            try bytes.withUnsafeMutableBytes { try pages.read(range, into: $0) }
            for (index, number) in range.enumerated() {
                // The frames hold their own numbers.
                let expected = number > lockPage ? UInt8(number - lockPage) : 0
                let page = bytes[(index * 512)..<((index + 1) * 512)]
                #expect(page.allSatisfy { $0 == expected }, "page \(number) of \(range)")
            }
        }
        // Another page that is missing is damage.
        #expect(truncate(directory.file("db"), off_t((lockPage - 2) * 512)) == 0)
        var bytes = [UInt8](repeating: 9, count: 512 * 3)
        let error = #expect(throws: DatabaseError.self) {
            try bytes.withUnsafeMutableBytes { try pages.read(lockPage - 1...lockPage + 1, into: $0) }
        }
        #expect(error?.reason == .damaged && error?.message.contains("ends in page \(lockPage - 1)") == true)
    }

    /// A log that has begun anew since it was read, or was cut off, does not hold what was found in it.
    @Test func aLogThatChangesWhileItIsRead() throws {
        let log = try #require(try overlay([(1, 0), (2, 2)]))
        #expect(try log.isSameLog())
        let file = try FileHandle(forUpdating: URL(fileURLWithPath: directory.file("db-wal")))
        try file.seek(toOffset: 19)
        try file.write(contentsOf: Data([9]))
        #expect(try !log.isSameLog())
        let end: UInt64 = 32 + 2 * (24 + 512) - 1
        try file.truncate(atOffset: end)
        #expect(try log.bytes(ofPage: 1, from: 0, count: 512) != nil)
        let error = #expect(throws: DatabaseError.self) { try log.bytes(ofPage: 2, from: 0, count: 512) }
        #expect(error?.extendedCode == SQLITE_IOERR_SHORT_READ)
        #expect(error?.message.contains("cut off") == true)
        try file.close()
    }
}
