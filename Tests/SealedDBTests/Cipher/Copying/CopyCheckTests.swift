import Foundation
import Testing

@testable import SealedDB

@Suite(.hangLimit, .enabled(if: isEncrypting, "needs a codec"))
struct CopyCheckTests {
    private let directory: TemporaryDirectory

    init() throws {
        directory = try TemporaryDirectory()
    }

    private func makeStore(_ sql: String = "", journalMode: Configuration.JournalMode? = nil) throws {
        let database = try Database.testing(directory.file("db"), journalMode: journalMode)
        try database.fill(rows: 2000)
        #expect(database.executeStatements("CREATE INDEX i ON t (body); \(raw: sql)"))
        database.close()
    }

    private func problems(
        pages: Int64? = nil,
        report: @escaping (Int64) throws(DatabaseError) -> Void = { _ in }
    ) throws(DatabaseError) -> [String] {
        let sealing = Sealing(key: try? .testing(1))
        let opening = StoreOpening(path: directory.file("db"), key: sealing.key, takesLock: false)
        let size = (try? directory.bytes("db").count) ?? 0
        let check = CopyCheck(opening: opening, sealing: sealing, report: report)
        return try check.problems(pageCount: pages ?? Int64(size / 4096))
    }

    private func change(at offset: Int, _ body: (inout UInt8) -> Void) throws {
        var bytes = try directory.bytes("db")
        body(&bytes[offset])
        try bytes.write(to: URL(fileURLWithPath: directory.file("db")))
    }

    @Test(arguments: [Configuration.JournalMode.delete, .wal])
    func soundCopy(mode: Configuration.JournalMode) throws {
        try makeStore(journalMode: mode)
        #expect(try problems() == [])
        #expect(directory.names == ["db"])
    }

    @Test(arguments: [1, 2, 40, 90])
    func everyPageIsLookedAt(page: Int) throws {
        try makeStore()
        try change(at: (page - 1) * 4096 + 200) { $0 ^= 1 }
        if page == 1 {
            #expect(throws: DatabaseError.self) { try problems() }
        } else {
            #expect(try problems().first == "page \(page)")
        }
    }

    /// Free pages are no part of the structure.
    @Test func freePagesToo() throws {
        try makeStore("DELETE FROM t")
        let last = try directory.bytes("db").count / 4096
        try change(at: (last - 1) * 4096 + 200) { $0 ^= 1 }
        #expect(try problems() == ["page \(last)"])
    }

    /// Every page is as it was written, but one belongs to two trees.
    @Test func structure() throws {
        try makeStore(
            """
            CREATE TABLE u (a);
            PRAGMA writable_schema = ON;
            UPDATE sqlite_schema SET rootpage = (SELECT rootpage FROM sqlite_schema WHERE name = 't') WHERE name = 'u';
            """
        )
        let found = try problems()
        #expect(!found.isEmpty && !found.contains { $0.hasPrefix("page ") })
    }

    @Test func numberOfPages() throws {
        try makeStore()
        #expect(try problems(pages: 7).first?.contains("pages instead of 7") == true)
        let size = try directory.bytes("db").count
        try (directory.bytes("db") + Data(count: 4096)).write(to: URL(fileURLWithPath: directory.file("db")))
        #expect(try problems(pages: Int64(size / 4096)).contains("the file has \(size + 4096) bytes"))
    }

    @Test func plaintext() throws {
        let database = Database(path: directory.file("db"))
        #expect(database.open())
        try database.fill(rows: 10)
        database.close()
        let error = #expect(throws: DatabaseError.self) { try problems() }
        #expect(error?.reason == .plaintext)
    }

    @Test func tellsHowFarItIs() throws {
        try makeStore()
        let pages = Int64(try directory.bytes("db").count / 4096)
        var told: [Int64] = []
        #expect(try problems { told.append($0) } == [])
        #expect(told == told.sorted() && told.last == pages)
    }

    @Test func stopsWhenItIsToldTo() throws {
        try makeStore()
        let stop = DatabaseError(extendedCode: SQLITE_INTERRUPT, reason: .interrupted, message: "Enough.")
        let error = #expect(throws: DatabaseError.self) {
            try problems { _ throws(DatabaseError) in throw stop }
        }
        #expect(error == stop)
        #expect(directory.names == ["db"])
    }

    /// Whichever call it is, the last one, too, after which nothing is left to be checked.
    @Test func stopsAtEachCall() throws {
        try makeStore()
        let stop = DatabaseError(extendedCode: SQLITE_INTERRUPT, reason: .interrupted, message: "Enough.")
        var hasThrown = true
        var index = 0
        // How often it calls depends on how fast the other thread is.
        while hasThrown {
            var count = 0
            hasThrown = false
            var error: DatabaseError?
            do throws(DatabaseError) {
                _ = try problems { _ throws(DatabaseError) in
                    count += 1
                    guard count == index + 1 else { return }
                    hasThrown = true
                    throw stop
                }
            } catch let failure {
                error = failure
            }
            #expect(error == (hasThrown ? stop : nil), "call \(index)")
            index += 1
        }
        #expect(index > 2)
    }

    /// The codes are checked on another thread, which must not go on to the end of a large store.
    @Test func theOtherThreadStopsToo() throws {
        // Free pages have codes, and the check of the structure, which tells of the progress, hardly reads them.
        try makeStore("CREATE TABLE b (b); INSERT INTO b VALUES (zeroblob(48 << 20)); DROP TABLE b")
        let pages = try Int64(directory.bytes("db").count / 4096)
        let stop = DatabaseError(extendedCode: SQLITE_INTERRUPT, reason: .interrupted, message: "Enough.")
        func stopsEarly() -> Bool {
            var watch: CallWatch?
            var completed = pages
            #expect(throws: DatabaseError.self) {
                try problems { count throws(DatabaseError) in
                    watch = CallWatch(directory.path)
                    completed = count
                    throw stop
                }
            }
            let reads = watch?.endWithAll().filter { $0.contains(/^p?read db$/) }.count ?? .max
            // It reads 64 pages at once: for all that are left there would be at least 64 reads. Up to 32 such runs are
            // in work.
            return pages - completed >= 4096 && reads < 48
        }
        // It may have got far before this thread could stop it, but not each time.
        #expect((0..<50).contains { _ in stopsEarly() })
    }

    /// What only its program knows of a schema does not hide what is wrong beside it.
    @Test func anUnknownCollation() throws {
        try makeStore(
            """
            CREATE TABLE n (a);
            INSERT INTO n VALUES (NULL);
            CREATE TABLE c (a UNIQUE);
            PRAGMA writable_schema = ON;
            UPDATE sqlite_schema SET sql = 'CREATE TABLE n (a NOT NULL)' WHERE name = 'n';
            UPDATE sqlite_schema SET sql = 'CREATE TABLE c (a COLLATE strange UNIQUE)' WHERE name = 'c';
            """
        )
        let connection = try StoreOpening(path: directory.file("db"), key: .testing(1)).open()
        defer { connection.close() }
        #expect(try StructureCheck(connection: connection).findings(.quick).problems == ["NULL value in n.a"])
    }

    /// A table without row ids is in the order of a collation that only its program has.
    @Test func aRotationOfWhatOnlyItsProgramCanSort() throws {
        try makeStore(
            """
            CREATE TABLE w (a PRIMARY KEY, b) WITHOUT ROWID;
            INSERT INTO w VALUES ('x', 1), ('y', 2);
            PRAGMA writable_schema = ON;
            UPDATE sqlite_schema SET sql = 'CREATE TABLE w (a COLLATE strange PRIMARY KEY, b) WITHOUT ROWID' WHERE name = 'w';
            """
        )
        try KeyRotation(path: directory.file("db"), from: .testing(1), to: .testing(2)).run()
        #expect(try IntegrityReport.verify(path: directory.file("db"), key: .testing(2)).isSound)
    }

    /// What somebody puts in the copy's place while it is made stays as it is: nothing is written into it.
    /// A file that is made once the copy is removed may get the number of its inode.
    @Test(arguments: [StoreCopy.Method.pages, .rows(of: nil)], [false, true])
    func aFileInPlaceOfTheCopy(method: StoreCopy.Method, isMadeAnew: Bool) throws {
        try makeStore()
        let source = try StoreOpening(path: directory.file("db"), key: .testing(1)).open()
        defer { source.close() }
        let copy = try StoreCopy(beside: directory.file("db"))
        if isMadeAnew {
            #expect(unlink(copy.path) == 0)
            #expect(FileManager.default.createFile(atPath: copy.path, contents: nil))
        } else {
            try directory.write("other", [])
            #expect(rename(directory.file("other"), copy.path) == 0)
        }
        let sealing = Sealing(key: try .testing(2))
        let error = #expect(throws: DatabaseError.self) {
            _ = try copy.fill(from: source, sealing: sealing, method: method, setsWAL: false, progress: nil)
        }
        #expect(error?.reason == .unverified && error?.message.contains("another file in its place") == true)
        #expect(FileManager.default.contents(atPath: copy.path) == Data())
    }

    /// SQLite leaves the index of the copy's log behind if it cannot get a lock for a moment.
    @Test func noIndexIsLeftBesideTheCopy() throws {
        try makeStore(journalMode: .wal)
        let source = try StoreOpening(path: directory.file("db"), key: .testing(1)).open()
        defer { source.close() }
        let copy = try StoreCopy(beside: directory.file("db"))
        defer { copy.discard() }
        let sealing = Sealing(key: try .testing(2))
        var wasLeft = false
        _ = try copy.fill(from: source, sealing: sealing, method: .pages, setsWAL: true) { progress in
            guard progress.phase == .sync else { return }
            wasLeft = FileManager.default.createFile(atPath: copy.path + "-shm", contents: nil)
        }
        #expect(wasLeft)
        #expect(!FileSystem.exists(copy.path + "-shm"))
    }

    /// Rows are copied all or not at all: not as a part of somebody else's transaction.
    @Test func rowsWithinATransaction() throws {
        try makeStore()
        let source = try StoreOpening(path: directory.file("db"), key: .testing(1)).open()
        defer { source.close() }
        var opening = StoreOpening(path: directory.file("new"), key: try .testing(2))
        opening.flags |= SQLITE_OPEN_CREATE
        let target = try opening.open()
        defer { target.close() }
        try target.run("BEGIN")
        #expect(throws: DatabaseError.self) { _ = try RowCopy(source: source, target: target).run { _ in } }
        #expect(!target.isAutocommit)
        #expect(try target.integer("SELECT count(*) FROM sqlite_schema") == 0)
        try target.run("ROLLBACK")
    }

    /// A store whose rows break a constraint can be copied as well as any other.
    @Test(arguments: [20, 2000])
    func rowsAreNotCompared(rows: Int) throws {
        let database = try Database.testing(directory.file("db"))
        #expect(
            database.executeStatements(
                """
                CREATE TABLE n (a);
                INSERT INTO n VALUES (NULL);
                PRAGMA writable_schema = ON;
                UPDATE sqlite_schema SET sql = 'CREATE TABLE n (a NOT NULL)' WHERE name = 'n';
                """
            )
        )
        try database.fill(rows: rows)
        database.close()
        let connection = try StoreOpening(path: directory.file("db"), key: .testing(1)).open()
        #expect(try StructureCheck(connection: connection).findings(.quick).problems == ["NULL value in n.a"])
        #expect(try StructureCheck(connection: connection).pageProblems { true } == [])
        connection.close()
        try KeyRotation(path: directory.file("db"), from: .testing(1), to: .testing(2)).run()
    }

    /// Somebody exchanges the copy right after it got its name.
    @Test func aFileThatTookTheCopysPlaceIsNotAccepted() throws {
        let target = directory.file("new")
        let copy = try StoreCopy(beside: target, takesAttributes: false)
        try copy.moveIn()
        try copy.synchronizeNew()
        try copy.synchronizeSwap()
        let other = try directory.write("other", "a stranger's".utf8)
        #expect(rename(other, target) == 0)
        for synchronize in [copy.synchronizeNew, copy.synchronizeSwap] {
            let error = #expect(throws: DatabaseError.self) { try synchronize() }
            #expect(error?.reason == .unverified, "\(error as Any)")
            #expect(error?.message.hasPrefix("Somebody else put a file in the place of \(target)") == true)
        }
        #expect(try directory.bytes("new") == Data("a stranger's".utf8))
    }
}
