import Foundation
import Testing

@testable import SealedDB

@Suite(.hangLimit, .enabled(if: isEncrypting, "needs a codec"))
struct IntegrityReportTests {
    let directory: TemporaryDirectory

    init() throws {
        directory = try TemporaryDirectory()
    }

    func flip(page: Int, pageSize: Int = 4096) throws {
        var bytes = try directory.bytes("db")
        bytes[(page - 1) * pageSize + 100] ^= 1
        try bytes.write(to: URL(fileURLWithPath: directory.file("db")))
    }

    func verify(deep: Bool, settings: CipherSettings = .init()) throws -> IntegrityReport {
        try IntegrityReport.verify(
            path: directory.file("db"),
            key: .testing(1),
            cipherSettings: settings,
            isDeep: deep
        )
    }

    @Test(arguments: [false, true])
    func damagedPagesByNumber(deep: Bool) throws {
        let database = try Database.testing(directory.file("db"))
        try database.fill(rows: 2000)
        database.close()
        let sound = try verify(deep: deep)
        #expect(sound.isSound && sound.damagedPages.isEmpty && sound.isAuthenticated)
        for page in [20, 33, 61] { try flip(page: page) }
        let before = try directory.bytes("db")
        let report = try verify(deep: deep)
        #expect(report.damagedPages == [20, 33, 61])
        #expect(!report.isSound)
        #expect(try directory.bytes("db") == before)
    }

    /// Its pages are authentic, and what they hold makes SQLite give up.
    @Test func aFullTextTableWithoutItsIndex() throws {
        let database = try Database.testing(directory.file("db"))
        try database.executeUpdate("CREATE VIRTUAL TABLE f USING fts5(body)")
        try database.executeUpdate("INSERT INTO f VALUES ('words')")
        database.close()
        let key = String(repeating: Hexadecimal.string([1]), count: 32)
        let script = ".dbconfig defensive off\nPRAGMA key = \"x'\(key)'\"; DELETE FROM f_data;"
        try StockShell.run(directory.file("db"), script)
        for deep in [false, true] {
            let report = try verify(deep: deep)
            #expect(!report.isSound && report.damagedPages.isEmpty && report.structureProblems.count == 1, "\(report)")
        }
    }

    /// The log is moved into the file first: until then its pages would look damaged, or be missed.
    @Test func logOfAKilledWriter() throws {
        let database = try Database.testing(directory.file("owned"), journalMode: .wal)
        try database.fill(rows: 300)
        for suffix in ["", "-wal"] {
            try directory.bytes("owned\(suffix)").write(to: URL(fileURLWithPath: directory.file("db\(suffix)")))
        }
        database.close()
        let report = try verify(deep: true)
        #expect(report.isSound)
        #expect(report.fileSize == report.pageCount * 4096)
    }

    /// Index entries without a row are found by the deep check alone.
    @Test func deepComparesIndexes() throws {
        let database = try Database.testing(directory.file("db"))
        try database.fill(rows: 50)
        #expect(
            database.executeStatements(
                """
                CREATE INDEX i ON t (body);
                PRAGMA writable_schema = ON;
                UPDATE sqlite_schema SET sql = 'CREATE INDEX i ON t (id)' WHERE name = 'i';
                """
            )
        )
        database.close()
        #expect(try verify(deep: false).isSound)
        let report = try verify(deep: true)
        #expect(!report.isSound && !report.structureProblems.isEmpty && report.damagedPages.isEmpty)
    }

    @Test func deepTellsHowFarItIs() throws {
        try Database.testing(directory.file("db")).fill(rows: 2000)
        var last: KeyRotation.Progress?
        let path = directory.file("db")
        let report = try IntegrityReport.verify(path: path, key: .testing(1), isDeep: true) { last = $0 }
        #expect(last?.completedPages == report.pageCount && last?.totalPages == report.pageCount)
        let error = #expect(throws: DatabaseError.self) {
            _ = try IntegrityReport.verify(path: path, key: .testing(1), isDeep: true) { _ in
                throw CancellationError()
            }
        }
        #expect(error?.reason == .interrupted)
    }

    @Test func damagedFirstPageWithAPassphrase() throws {
        let key = try Key.passphrase("p")
        let database = Database(path: directory.file("db"), configuration: Configuration(key: key))
        try database.openVerified()
        try database.fill(rows: 100)
        database.close()
        try flip(page: 1)
        let error = #expect(throws: DatabaseError.self) {
            try IntegrityReport.verify(path: directory.file("db"), key: key)
        }
        #expect(error?.reason == .damaged)
    }

    @Test func withoutAuthenticationOnlyTheStructureCanBeChecked() throws {
        var configuration = Configuration(key: try .testing(1))
        configuration.cipherSettings = .sqlCipher1
        let database = Database(path: directory.file("db"), configuration: configuration)
        try database.openVerified()
        try database.fill(rows: 100)
        database.close()
        let report = try verify(deep: true, settings: .sqlCipher1)
        #expect(report.isSound && !report.isAuthenticated)
    }

    @Test func pageOfTheLocks() {
        #expect(PageScan.lockPage(pageSize: 4096) == 262_145)
        #expect(PageScan.lockPage(pageSize: 65536) == 16385)
    }

    /// A look that took no lock begins again when somebody came meanwhile.
    @Test(arguments: [1, 5])
    func aStoreThatIsWrittenToWhileItIsLookedAt(times: Int) throws {
        let path = directory.file("db")
        try Database.testing(path, journalMode: .wal).fill(rows: 50)
        let key = try Key.testing(1)
        let opening = try StoreOpening.existing(path, key: key, settings: .init())
        var looks = 0
        let result = Result { () throws(DatabaseError) in
            try opening.look { connection throws(DatabaseError) in
                looks += 1
                guard looks <= times else { return try connection.integer("SELECT count(*) FROM t") }
                let writer = Database(path: path, configuration: Configuration(key: key))
                try writer.openVerified()
                try writer.executeUpdate("DELETE FROM t WHERE rowid = ?", values: [looks])
                writer.close()
                return nil
            }
        }
        if times < 5 {
            #expect(looks == times + 1)
            #expect(try result.get() == Int64(50 - times))
        } else {
            #expect(looks == 5)
            #expect(throws: DatabaseError.self) { try result.get() }
        }
    }

    /// Beside a user of the log it is a reader, which nobody disturbs.
    @Test func aStoreThatItsUserWritesToWhileItIsLookedAt() throws {
        let path = directory.file("db")
        let service = try Database.testing(path, journalMode: .wal)
        try service.fill(rows: 50)
        let opening = try StoreOpening.existing(path, key: .testing(1), settings: .init())
        var looks = 0
        let count = try opening.look { connection throws(DatabaseError) in
            looks += 1
            try service.executeUpdate("DELETE FROM t WHERE rowid = ?", values: [looks])
            return try connection.integer("SELECT count(*) FROM t")
        }
        #expect(looks == 1 && count == 50)
        service.close()
    }

    /// A backup that nobody has open, and somebody writes to while it is restored.
    @Test(arguments: [false, true])
    func aBackupThatIsWrittenToWhileItIsRestored(replaces: Bool) throws {
        let (backup, target) = (directory.file("backup"), directory.file("db"))
        try Database.testing(backup, journalMode: .wal).fill(rows: 50)
        if replaces { try Database.testing(target).fill(rows: 7) }
        var hasCome = false
        let error = #expect(throws: DatabaseError.self) {
            try StoreRestore(backupPath: backup, key: .testing(1), to: target).run { _ in
                guard !hasCome else { return }
                hasCome = true
                let writer = try Database.testing(backup)
                try writer.executeUpdate("DELETE FROM t WHERE rowid > 20", values: nil)
                writer.close()
            }
        }
        #expect(error?.reason == .busy, "\(String(describing: error))")
        if replaces {
            #expect(try Database.testing(target).integers("SELECT count(*) FROM t") == [7])
        } else {
            #expect(!FileManager.default.fileExists(atPath: target))
        }
    }

    /// A transaction that was cut off after its commit leaves them, before the file is shortened: some were never written.
    @Test(arguments: [Data(count: 8192), Data(repeating: 1, count: 4096)])
    func pagesBehindTheEnd(left: Data) throws {
        let database = try Database.testing(directory.file("db"))
        try database.fill(rows: 50)
        database.close()
        let file = directory.file("db")
        try (directory.bytes("db") + left).write(to: URL(fileURLWithPath: file))
        let report = try verify(deep: true)
        #expect(report.isSound, "\(report)")
        #expect(try StoreDiagnosis.examine(path: file, key: .testing(1)).finding == .opens)
        _ = try StoreRestore(backupPath: file, key: .testing(1), to: directory.file("restored")).run()
        let restored = try Database.testing(directory.file("restored"))
        #expect(try restored.integers("SELECT count(*) FROM t") == [50])
    }

    @Test func bytesAfterTheLastPage() throws {
        let database = try Database.testing(directory.file("db"))
        try database.fill(rows: 100)
        database.close()
        try (directory.bytes("db") + Data(count: 100)).write(to: URL(fileURLWithPath: directory.file("db")))
        let report = try verify(deep: false)
        #expect(!report.isSound && report.damagedPages.isEmpty)
        #expect(report.structureProblems == ["the file ends with 100 bytes that are no whole page"])
    }

    /// With an engine whose reads cannot be watched.
    @Test func pagesAreLookedAtBeforeACopyWhereNobodyWatches() throws {
        let database = try Database.testing(directory.file("db"))
        try database.fill(rows: 2000)
        database.close()
        let opening = try StoreOpening.existing(directory.file("db"), key: .testing(1), settings: .init())
        try opening.requireAuthenticPages(isWatched: false)
        try flip(page: 33)
        try opening.requireAuthenticPages(isWatched: true)
        let error = #expect(throws: DatabaseError.self) { try opening.requireAuthenticPages(isWatched: false) }
        #expect(error?.reason == .damaged && error?.message.contains("Page 33") == true)
    }

    /// File and log are exchanged while it looks for them.
    @Test func aStoreWhoseKeyIsRotatedMeanwhile() async throws {
        var configuration = Configuration(key: try .testing(1))
        configuration.journalMode = .wal
        // Attempts that begin while somebody looks end soon, and others follow.
        configuration.busyTimeout = .milliseconds(100)
        let queue = try DatabaseQueue(path: directory.file("db"), configuration: configuration)
        defer { queue.close() }
        try await queue.write { db in try db.fill(rows: 100) }
        let isOver = StopFlag()
        // Not on the threads of tasks: other tests would wait for this one, and it for them.
        async let rotating: Void = onThread {
            defer { isOver.set() }
            var present: UInt8 = 1
            for number in 0..<15 {
                do {
                    try queue.rotateKey(to: .testing(3 - present))
                    present = 3 - present
                } catch let error as DatabaseError where error.reason == .busy {
                    // Whoever looks has the file open.
                }
                try queue.write { db in try db.executeUpdate("DELETE FROM t WHERE id = ?", values: [number]) }
            }
        }
        let path = directory.file("db")
        let soundCount = try await onThread {
            var count = 0
            while !isOver.isSet {
                for byte: UInt8 in [1, 2] {
                    do {
                        let report = try IntegrityReport.verify(
                            path: path,
                            key: .testing(byte),
                            busyTimeout: .milliseconds(100)
                        )
                        #expect(report.isSound, "\(report)")
                        count += 1
                    } catch let error as DatabaseError {
                        #expect([.wrongKey, .busy].contains(error.reason), "\(error)")
                    }
                }
            }
            return count
        }
        try await rotating
        #expect(soundCount > 0)
    }
}

extension IntegrityReportTests {
    /// What was wrong when it was written stands in pages that are authentic.
    @Test func pagesAlone() throws {
        let path = directory.file("db")
        let database = try Database.testing(path)
        try database.fill(rows: 2000)
        #expect(
            database.executeStatements(
                """
                CREATE INDEX i ON t (body);
                PRAGMA writable_schema = ON;
                DELETE FROM sqlite_schema WHERE name = 'i';
                """
            )
        )
        database.close()
        var last: KeyRotation.Progress?
        let report = try IntegrityReport.verifyPages(path: path, key: .testing(1)) { last = $0 }
        #expect(report.isSound && !report.isStructureChecked && report.isAuthenticated)
        #expect(last?.phase == .verify && last?.fractionCompleted == 1)
        let whole = try verify(deep: false)
        #expect(!whole.isSound && whole.isStructureChecked && whole.damagedPages.isEmpty)
        for page in [20, 33] { try flip(page: page) }
        let damaged = try IntegrityReport.verifyPages(path: path, key: .testing(1))
        #expect(damaged.damagedPages == [20, 33] && !damaged.isSound)
        #expect(throws: DatabaseError.self) { try IntegrityReport.verifyPages(path: path, key: .testing(2)) }
        let error = #expect(throws: DatabaseError.self) {
            try IntegrityReport.verifyPages(path: path, key: .testing(1), cipherSettings: .sqlCipher1)
        }
        #expect(error?.reason == .unsupported)
    }

    /// What one table names says nothing of the pages of others.
    @Test(arguments: ["index", "virtual table", "expression"])
    func damageBesideWhatOnlyItsProgramKnows(what: String) throws {
        let database = try Database.testing(directory.file("db"))
        try database.fill(rows: 50)
        let makes =
            switch what {
            case "index": "CREATE TABLE own (a TEXT); CREATE INDEX own_a ON own (a)"
            case "virtual table": "CREATE VIRTUAL TABLE own USING fts5(a)"
            default: "CREATE TABLE own (a TEXT); INSERT INTO own VALUES ('x'); CREATE INDEX own_a ON own (a)"
            }
        let names =
            switch what {
            case "index": "sql = 'CREATE INDEX own_a ON own (a COLLATE only_there)' WHERE name = 'own_a'"
            case "virtual table":
                "sql = 'CREATE VIRTUAL TABLE own USING fts5(a, tokenize = only_there)' WHERE name = 'own'"
            default: "sql = 'CREATE INDEX own_a ON own (json_extract(a, ''$.x''))' WHERE name = 'own_a'"
            }
        #expect(
            database.executeStatements(
                """
                \(raw: makes); CREATE TABLE other (a); INSERT INTO other VALUES (1);
                PRAGMA writable_schema = ON; UPDATE sqlite_schema SET \(raw: names);
                UPDATE sqlite_schema SET rootpage = (SELECT rootpage FROM sqlite_schema WHERE name = 't')
                WHERE name = 'other';
                """
            )
        )
        database.close()
        for deep in [false, true] {
            let found = try verify(deep: deep)
            #expect(!found.isSound, "\(deep): \(found)")
            #expect(found.structureProblems.joined().contains("2nd reference"), "\(deep): \(found)")
        }
    }

    /// A deep check says of which tables it cannot know whether their indexes belong to them; the others it compares.
    @Test func deepSaysWhatItDidNotCompare() throws {
        let database = try Database.testing(directory.file("db"))
        try database.fill(rows: 50)
        #expect(
            database.executeStatements(
                """
                CREATE TABLE own (a TEXT); CREATE INDEX own_a ON own (a); INSERT INTO own VALUES ('x'), ('y');
                CREATE INDEX i ON t (body);
                PRAGMA writable_schema = ON;
                UPDATE sqlite_schema SET sql = 'CREATE INDEX own_a ON own (a COLLATE only_there)' WHERE name = 'own_a';
                """
            )
        )
        database.close()
        let quick = try verify(deep: false)
        #expect(quick.isSound && quick.tablesNotCompared.isEmpty, "\(quick)")
        let deep = try verify(deep: true)
        #expect(deep.isSound && deep.tablesNotCompared == ["own"], "\(deep)")
        let again = try Database.testing(directory.file("db"))
        #expect(
            again.executeStatements(
                """
                PRAGMA writable_schema = ON;
                UPDATE sqlite_schema SET sql = 'CREATE INDEX i ON t (id)' WHERE name = 'i';
                """
            )
        )
        again.close()
        let found = try verify(deep: true)
        #expect(!found.isSound && found.tablesNotCompared == ["own"] && !found.structureProblems.isEmpty, "\(found)")
    }
}
