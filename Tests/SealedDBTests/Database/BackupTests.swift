import Foundation
import Testing

@testable import SealedDB

@Suite(.hangLimit)
struct BackupTests {
    private struct Stop: Error, Equatable {}
    private let directory: TemporaryDirectory

    init() throws {
        directory = try TemporaryDirectory()
    }

    private func open(
        _ name: String?,
        key byte: UInt8? = 1,
        pageSize: Int? = nil,
        hmac: CipherSettings.Algorithm? = nil,
        journalMode: Configuration.JournalMode? = nil
    ) throws -> Database {
        var configuration = Configuration(key: isEncrypting ? try byte.map { try .testing($0) } : nil)
        configuration.cipherSettings.pageSize = pageSize
        configuration.cipherSettings.hmacAlgorithm = hmac
        configuration.journalMode = journalMode
        configuration.isDefensive = false
        configuration.busyTimeout = .zero
        let database = Database(path: name.map { directory.file($0) }, configuration: configuration)
        try database.openVerified()
        return database
    }

    private func sum(_ database: Database) throws -> [SQLValue]? {
        try database.rows("SELECT count(*), sum(length(body)), min(id), max(id) FROM t").first
    }

    @Test(arguments: [Configuration.JournalMode.delete, .wal])
    func copiesBetweenKeysAndReportsProgress(_ mode: Configuration.JournalMode) throws {
        let source = try open("a", journalMode: mode)
        try source.fill(rows: 3000)
        let target = try open("b", key: 2, journalMode: mode)
        try target.run("CREATE TABLE old (x)")
        var steps: [BackupProgress] = []
        try source.backup(to: target, pagesPerStep: 20) { steps.append($0) }
        #expect(steps.count > 3 && steps.last?.completedPages == steps.last?.totalPages)
        #expect(steps.map(\.completedPages) == steps.map(\.completedPages).sorted())
        #expect(steps.first?.completedPages == 20)
        #expect(try sum(target) == sum(source))
        #expect(throws: DatabaseError.self) { try target.value("SELECT * FROM old") }
        try target.run("INSERT INTO t (body) VALUES ('more')")
        #expect(target.close())
        #expect(try IntegrityReport.verify(path: directory.file("b"), key: isEncrypting ? .testing(2) : nil).isSound)
        if isEncrypting { #expect(try directory.bytes("b").range(of: Data("secret row".utf8)) == nil) }
    }

    @Test func writesMeanwhileAreCopied() throws {
        let source = try open("a")
        try source.fill(rows: 2000)
        let target = try open("b", key: 2)
        var steps = 0
        try source.backup(to: target, pagesPerStep: 10) { _ in
            steps += 1
            if steps < 5 { try source.run("INSERT INTO t (body) VALUES ('meanwhile')") }
        }
        #expect(try sum(target) == sum(source))
        #expect(try target.value("SELECT count(*) FROM t WHERE body = 'meanwhile'") == 4)
    }

    /// SQLite takes a source that has become shorter than what is copied for one that is copied.
    @Test(arguments: [true, false])
    func aSourceThatShrinksMeanwhile(isOwn: Bool) throws {
        let source = try open("a")
        try source.run("PRAGMA auto_vacuum = FULL")
        try source.fill(rows: 3000)
        let other = try open("a")
        let target = try open("b", key: 2)
        var steps = 0
        try source.backup(to: target, pagesPerStep: 10) { _ in
            steps += 1
            if steps == 8 { try (isOwn ? source : other).run("DELETE FROM t WHERE id % 100 <> 0") }
        }
        #expect(try sum(target) == sum(source))
        #expect(try target.value("SELECT count(*) FROM t") == 30)
    }

    /// What the destination holds afterwards is compared with the source, rows and schema.
    @Test(arguments: [
        "UPDATE t SET body = 'x' || substr(body, 2) WHERE id = 1000", "DELETE FROM t WHERE id = 7",
        "CREATE TABLE more (x)", "PRAGMA user_version = 5",
    ])
    func theCopyIsCompared(change: String) throws {
        let source = try open("a")
        try source.fill(rows: 2000)
        let target = try open("b", key: 2)
        let other = try open("b", key: 2)
        var isBegun = false
        var isChanged = false
        // Nobody else gets at it while it is written, and this is only called by statements.
        target.setProgressHandler(interval: 1) {
            if isBegun, !isChanged { isChanged = (try? other.run(change)) != nil }
            return true
        }
        let error = #expect(throws: DatabaseError.self) {
            try source.backup(to: target, pagesPerStep: 50) { _ in isBegun = true }
        }
        #expect(isChanged)
        #expect(error?.reason == .unverified, "\(error?.message ?? "")")
        #expect(error?.message.contains("not what the source holds") == true, "\(error?.message ?? "")")
        try source.backup(to: target)
        #expect(try sum(target) == sum(source))
    }

    /// Everything that is copied is in the log, so reading it does not show what the file itself has become.
    @Test(.enabled(if: isEncrypting, "needs a codec"))
    func aDestinationWithAPlaintextFileIsNotAccepted() throws {
        let plain = try open("plain", key: nil)
        try plain.fill(rows: 1)
        #expect(plain.close())
        let header = try directory.bytes("plain").prefix(100)
        let source = try open("a")
        try source.fill(rows: 200)
        let target = try open("b", key: 2, journalMode: .wal)
        try target.run("CREATE TABLE old (x)")
        var isWritten = false
        let error = #expect(throws: DatabaseError.self) {
            try source.backup(to: target, pagesPerStep: 5) { _ in
                guard !isWritten else { return }
                let file = try FileHandle(forWritingTo: URL(fileURLWithPath: directory.file("b")))
                try file.write(contentsOf: header)
                try file.close()
                isWritten = true
            }
        }
        #expect(isWritten)
        #expect(error?.reason == .unverified, "\(error as Any)")
        #expect(error?.message.contains("it is plaintext") == true, "\(error as Any)")
    }

    /// What the library compares does not depend on what the caller has set, or called like a table.
    @Test(arguments: [
        "PRAGMA reverse_unordered_selects = ON", "CREATE TEMP TABLE t (x)", "CREATE TEMP VIEW w AS SELECT 1",
    ])
    func theCallersSettingsDoNotCount(sql: String) throws {
        for isSource in [true, false] {
            let source = try open("a\(isSource)")
            try source.fill(rows: 50)
            try source.run("CREATE TABLE w (k PRIMARY KEY) WITHOUT ROWID")
            try source.run("INSERT INTO w VALUES (1), (2)")
            let target = try open("b\(isSource)", key: 2)
            try (isSource ? source : target).run(sql)
            try source.backup(to: target)
            #expect(try target.value("SELECT count(*) FROM main.t") == 50)
            let reversed = try (isSource ? source : target).value("PRAGMA reverse_unordered_selects")
            #expect(reversed == (sql.hasPrefix("PRAGMA") ? 1 : 0))
        }
    }

    /// Of each kind of index, what one side has and the other has not.
    @Test func indexesAreCompared() throws {
        let database = try open("a", key: nil)
        #expect(
            database.executeStatements(
                """
                CREATE TABLE t (a UNIQUE, b, c);
                CREATE INDEX plain ON t (b);
                CREATE INDEX part ON t (c) WHERE b > 10;
                CREATE INDEX expression ON t (abs(c), b);
                CREATE TABLE w (k PRIMARY KEY, v) WITHOUT ROWID;
                CREATE INDEX secondary ON w (v);
                INSERT INTO t VALUES (1, 5, -7), (2, 50, -8), (3, 60, 9);
                INSERT INTO w VALUES (1, 'x'), (2, 'y');
                """
            )
        )
        func parts(_ name: String) throws -> ContentDigest.Parts {
            let database = try open(name, key: nil)
            defer { database.close() }
            let connection = try database.openConnection()
            return try connection.snapshot { () throws(DatabaseError) in try ContentDigest.Parts(of: connection) }
        }
        let whole = try parts("a")
        #expect(try parts("a").differences(from: whole) == [])
        #expect(database.close())
        for index in ["sqlite_autoindex_t_1", "plain", "part", "expression", "secondary"] {
            let name = "without-\(index)"
            try directory.bytes("a").write(to: URL(fileURLWithPath: directory.file(name)))
            let other = try open(name, key: nil)
            // Its entries stay away, as those of a page that was not written.
            let sql = "SELECT rootpage FROM sqlite_schema WHERE name = '\(index)'"
            let page = try other.integers(sql)[0]
            let size = try other.integers("PRAGMA page_size")[0]
            #expect(other.close())
            var bytes = try directory.bytes(name)
            // The number of the page's cells. https://www.sqlite.org/fileformat.html#b_tree_pages
            #expect(bytes[(page - 1) * size + 4] > 1)
            bytes[(page - 1) * size + 4] -= 1
            try bytes.write(to: URL(fileURLWithPath: directory.file(name)))
            // Nothing else is: no table is read by way of an index.
            #expect(try parts(name).differences(from: whole) == ["index \(index)"])
        }
    }

    /// With the row id, such a table has more columns than a result.
    @Test func aTableOfAsManyColumnsAsThereCanBe() throws {
        let source = try open("a")
        let columns = (0..<2000).map { "c\($0)" }.joined(separator: ", ")
        try source.run("CREATE TABLE wide (\(columns))")
        try source.run("INSERT INTO wide (c0, c1999) VALUES (1, 2), (3, 4)")
        let target = try open("b", key: 2)
        try source.backup(to: target)
        #expect(try target.value("SELECT sum(c1999) FROM wide") == 6)
        // That last column is compared, too.
        func digest(_ database: Database) throws -> [UInt8] { try ContentDigest.of(try database.openConnection()) }
        #expect(try digest(source) == digest(target))
        try target.run("UPDATE wide SET c1999 = 5 WHERE c0 = 3")
        #expect(try digest(source) != digest(target))
        #expect(try source.serialized().count > 0)
    }

    /// It could not be taken back.
    @Test func aDestinationWithoutAJournalIsRefused() throws {
        let source = try open("a")
        try source.fill(rows: 10)
        for name in ["b", nil] {
            let target = try open(name, key: 1)
            try target.run("CREATE TABLE old (x)")
            #expect(try target.rows("PRAGMA journal_mode = OFF").first?.first == .text("off"))
            let error = #expect(throws: DatabaseError.self) {
                if name == nil { try target.load(fromFile: directory.file("a")) } else { try source.backup(to: target) }
            }
            #expect(
                error?.reason == .unsupported && error?.message.contains("journal") == true,
                "\(String(describing: error))"
            )
            #expect(try target.value("SELECT count(*) FROM old") == 0)
        }
    }

    @Test func anEmptySource() throws {
        let source = try open("a")
        let target = try open("b", key: 2)
        try target.run("CREATE TABLE old (x)")
        try source.backup(to: target)
        #expect(try target.value("SELECT count(*) FROM sqlite_schema") == 0)
    }

    /// The library's own statements take as long as they take.
    @Test func aTimeLimitDoesNotCount() throws {
        var configuration = Configuration(key: isEncrypting ? try .testing(1) : nil)
        configuration.statementTimeout = .microseconds(1)
        let source = try open("a")
        try source.fill(rows: 5000)
        let target = Database(path: directory.file("b"), configuration: configuration)
        try target.openVerified()
        try source.backup(to: target)
        let limited = Database(path: directory.file("a"), configuration: configuration)
        try limited.openVerified()
        try limited.backup(to: try open("c", key: 2))
        #expect(try limited.serialized().count > 0)
        let memory = Database(path: nil, configuration: configuration)
        try memory.openVerified()
        try memory.load(fromFile: directory.file("a"))
        try memory.save(toFile: directory.file("d"))
        #expect(try open("d").value("SELECT count(*) FROM t") == 5000)
    }

    /// What is read in it is of one moment, without a transaction.
    @Test(arguments: [Configuration.JournalMode.delete, .wal])
    func aLookAtOneMoment(mode: Configuration.JournalMode) throws {
        let source = try open("a", journalMode: mode)
        try source.fill(rows: 10)
        let other = try open("a")
        let connection = try source.openConnection()
        try connection.snapshot { () throws(DatabaseError) in
            let insertion = "INSERT INTO t (body) VALUES ('meanwhile')"
            // A reader keeps others from the file, or has a moment of its own.
            #expect(other.executeStatements(insertion) == (mode == .wal))
            #expect(try connection.integer("SELECT count(*) FROM t") == 10)
        }
        #expect(!source.isInTransaction)
        #expect(try source.value("SELECT count(*) FROM t") == (mode == .wal ? 11 : 10))
    }

    /// A source without pages has no encoding yet.
    @Test func anEmptySourceFitsAnyEncoding() throws {
        let target = try open("b", key: nil)
        try target.run("PRAGMA encoding = 'UTF-16le'")
        try target.fill(rows: 10)
        try open(nil, key: nil).backup(to: target)
        #expect(try target.value("SELECT count(*) FROM sqlite_schema") == 0)
    }

    /// A connection that knows its texts in one encoding cannot read them in another.
    @Test(arguments: [nil, "b"])
    func anotherEncodingIsRefusedBeforeAnythingIsWritten(name: String?) throws {
        let source = try open("a", key: nil)
        try source.run("PRAGMA encoding = 'UTF-16le'")
        try source.fill(rows: 10)
        let target = try open(name, key: nil)
        try target.run("CREATE TABLE old (x)")
        let error = #expect(throws: DatabaseError.self) {
            if name == nil { try target.load(fromFile: directory.file("a")) } else { try source.backup(to: target) }
        }
        #expect(error?.reason == .unsupported && error?.message.contains("UTF-16le") == true)
        #expect(try target.value("SELECT count(*) FROM old") == 0)
        let fitting = try open(name.map { $0 + "2" }, key: nil)
        try fitting.run("PRAGMA encoding = 'UTF-16le'")
        #expect(throws: Never.self) {
            if name == nil { try fitting.load(fromFile: directory.file("a")) } else { try source.backup(to: fitting) }
        }
        #expect(try fitting.value("SELECT count(*) FROM t") == 10)
        // It has used its own, although there is nothing left of that.
        let used = try open(name.map { $0 + "4" }, key: nil)
        try used.run("CREATE TEMP TABLE t (x)")
        try used.run("INSERT INTO t VALUES ('text')")
        #expect(throws: DatabaseError.self) {
            if name == nil { try used.load(fromFile: directory.file("a")) } else { try source.backup(to: used) }
        }
        #expect(try used.value("SELECT count(*) FROM temp.t") == 1)
        // What has not been looked at takes any.
        let fresh = Database(path: name.map { directory.file($0 + "3") })
        #expect(fresh.open())
        #expect(throws: Never.self) {
            if name == nil { try fresh.load(fromFile: directory.file("a")) } else { try source.backup(to: fresh) }
        }
        #expect(try fresh.value("SELECT count(*) FROM t") == 10)
    }

    @Test func theDestinationCannotBeUsedMeanwhile() throws {
        let source = try open("a")
        try source.fill(rows: 500)
        let target = try open("b", key: 2)
        try target.run("CREATE TABLE old (x)")
        try target.run("INSERT INTO old VALUES (zeroblob(10))")
        let prepared = try target.prepare("SELECT count(*) FROM old")
        var refusals = 0
        try source.backup(to: target, pagesPerStep: 1) { progress in
            guard progress.completedPages < progress.totalPages else { return }
            if (try? target.value("SELECT count(*) FROM old")) == nil { refusals += 1 }
            #expect(throws: DatabaseError.self) { try prepared.nextWithError() }
            #expect(throws: DatabaseError.self) { try target.openBlob(table: "old", column: "x", rowID: 1) }
            #expect(!target.executeStatements("DELETE FROM old") && target.lastErrorMessage().contains("backup"))
        }
        #expect(refusals > 0)
        #expect(try sum(target) == sum(source))
    }

    /// Where a read of the source fails while it is compared, the destination keeps what it has.
    @Test func aSourceThatCannotBeReadReplacesNothing() throws {
        let source = try open("a", key: nil)
        try source.fill(rows: 3000)
        let root = try source.integers("SELECT rootpage FROM sqlite_schema WHERE name = 't'")[0]
        #expect(source.close())
        var bytes = try directory.bytes("a")
        // A page of the tree that is none; a copy of pages does not mind.
        let page = root + 3
        for index in (page - 1) * 4096..<(page - 1) * 4096 + 200 { bytes[index] = 0xee }
        try bytes.write(to: URL(fileURLWithPath: directory.file("a")))
        let damaged = try open("a", key: nil)
        let target = try open("b", key: nil)
        try target.run("CREATE TABLE old (x)")
        let error = #expect(throws: DatabaseError.self) { try damaged.backup(to: target) }
        #expect(error?.message.contains("as it was before") == true, "\(error?.message ?? "")")
        #expect(try target.value("SELECT count(*) FROM sqlite_schema WHERE name = 'old'") == 1)
        let memory = try open(nil, key: nil)
        try memory.run("CREATE TABLE old (x)")
        #expect(throws: DatabaseError.self) { try memory.load(fromFile: directory.file("a")) }
        #expect(try memory.value("SELECT count(*) FROM sqlite_schema WHERE name = 'old'") == 1)
    }

    /// A copy is not held to be better than its source: an index that lacks an entry is copied with that.
    @Test func anIndexThatIsWrongIsCopiedAsItIs() throws {
        let source = try open("a", key: nil)
        try source.run("CREATE TABLE v (x TEXT)")
        try source.run("CREATE INDEX i ON v (x)")
        try source.run("INSERT INTO v VALUES ('first entry'), ('second entry'), ('third entry')")
        let root = try source.integers("SELECT rootpage FROM sqlite_schema WHERE name = 'i'")[0]
        #expect(source.close())
        var bytes = try directory.bytes("a")
        let entry = try #require(bytes.range(of: Data("second".utf8), in: (root - 1) * 4096..<root * 4096))
        bytes.replaceSubrange(entry, with: Data("tenth!".utf8))
        try bytes.write(to: URL(fileURLWithPath: directory.file("a")))
        let wrong = try open("a", key: nil)
        let target = try open("b", key: nil)
        try wrong.backup(to: target)
        let problems = try [wrong, target].map { try $0.executeQuery("PRAGMA integrity_check").all(String.self) }
        #expect(problems[0] == problems[1] && problems[0] != ["ok"], "\(problems)")
        #expect(try target.value("SELECT group_concat(x) FROM v NOT INDEXED") == "first entry,second entry,third entry")
    }

    /// Its rows cannot be read by who does not know the collation.
    @Test func tablesInAnUnknownOrderAreCopied() throws {
        let source = try open("a")
        try source.addCollation("backwards") { $1.compare($0) }
        try source.run("CREATE TABLE w (k TEXT COLLATE backwards PRIMARY KEY) WITHOUT ROWID")
        try source.run("INSERT INTO w VALUES ('a'), ('b')")
        let target = try open("b", key: 2)
        try source.backup(to: target)
        #expect(target.close())
        let again = try open("b", key: 2)
        try again.addCollation("backwards") { $1.compare($0) }
        #expect(try again.value("SELECT group_concat(k) FROM w") == "b,a")
    }

    @Test func inOneStep() throws {
        let source = try open("a")
        try source.fill(rows: 500)
        for pages in [0, -1, .max] {
            let target = try open(nil, key: 1)
            try source.backup(to: target, pagesPerStep: pages)
            #expect(try sum(target) == sum(source))
        }
    }

    @Test func cancellingAtTheEndIsTooLate() throws {
        let source = try open("a")
        try source.fill(rows: 200)
        let target = try open("b", key: 2)
        let error = #expect(throws: DatabaseError.self) {
            try source.backup(to: target) { state in
                if state.completedPages == state.totalPages { throw Stop() }
            }
        }
        #expect(error?.reason == .interrupted && error?.underlyingError is Stop)
        #expect(error?.message.contains("the destination has all of it") == true, "\(error as Any)")
        #expect(try sum(target) == sum(source))
    }

    @Test func cancellingLeavesTheDestinationAsItWas() throws {
        let source = try open("a")
        try source.fill(rows: 2000)
        for hasContents in [false, true] {
            let name = "b\(hasContents)"
            let target = try open(name, key: 2)
            if hasContents { try target.run("CREATE TABLE old (x)") }
            var steps = 0
            let error = #expect(throws: DatabaseError.self) {
                try source.backup(to: target, pagesPerStep: 10) { _ in
                    steps += 1
                    if steps == 3 { throw Stop() }
                }
            }
            #expect(error?.reason == .interrupted && error?.underlyingError is Stop)
            #expect(try target.value("SELECT count(*) FROM sqlite_schema") == (hasContents ? 1 : 0))
            let own = DatabaseError(extendedCode: SQLITE_FULL, message: "mine")
            #expect(throws: own) { try source.backup(to: target, pagesPerStep: 10) { _ in throw own } }
            #expect(source.lastError() as? DatabaseError == own)
            #expect(target.close() && target.open())
            #expect(try target.value("SELECT count(*) FROM sqlite_schema") == (hasContents ? 1 : 0))
            #expect(!directory.names.contains("\(name)-journal"))
        }
        #expect(try source.integers("SELECT count(*) FROM t") == [2000])
    }

    @Test func closingMeanwhileIsAnError() throws {
        let source = try open("a")
        try source.fill(rows: 2000)
        let target = try open("b", key: 2)
        for victim in [source, target] {
            let error = #expect(throws: DatabaseError.self) {
                try source.backup(to: target, pagesPerStep: 10) { _ in #expect(victim.close()) }
            }
            #expect(error?.code == SQLITE_ABORT || error?.code == SQLITE_MISUSE)
            #expect(victim.open())
            #expect(try target.value("SELECT count(*) FROM sqlite_schema") == 0)
        }
        try source.backup(to: target)
        #expect(try sum(target) == sum(source))
    }

    @Test(.enabled(if: isEncrypting, "needs a codec"))
    func differentPageSizesAreRefusedBeforeAnythingIsWritten() throws {
        let small = try open("a")
        try small.fill(rows: 100)
        let large = try open("b", key: 2, pageSize: 8192)
        try large.fill(rows: 200)
        for (source, target) in [(small, large), (large, small)] {
            let before = try sum(target)
            let error = #expect(throws: DatabaseError.self) { try source.backup(to: target) }
            #expect(error?.reason == .unusableSettings && error?.message.contains("Nothing was written") == true)
            #expect(try sum(target) == before)
        }
        let empty = try open("c", key: 2)
        #expect(throws: DatabaseError.self) { try large.backup(to: empty) }
        let fitting = try open("d", key: 2, pageSize: 8192)
        try large.backup(to: fitting)
        #expect(try sum(fitting) == sum(large))
    }

    @Test(.enabled(if: isEncrypting, "needs a codec"))
    func encryptedAndPlaintextAreRefused() throws {
        let encrypted = try open("a")
        try encrypted.fill(rows: 10)
        let plain = try open("b", key: nil)
        try plain.fill(rows: 20)
        for (source, target) in [(encrypted, plain), (plain, encrypted)] {
            let before = try sum(target)
            let error = #expect(throws: DatabaseError.self) { try source.backup(to: target) }
            #expect(error?.reason == .unsupported && error?.message.contains("plaintext") == true)
            #expect(try sum(target) == before)
        }
        #expect(throws: DatabaseError.self) { try encrypted.backup(to: try open(nil, key: nil)) }
        let memory = try open(nil, key: 7)
        try encrypted.backup(to: memory)
        #expect(try sum(memory) == sum(encrypted))
    }

    @Test(.enabled(if: isEncrypting, "needs a codec"))
    func otherAuthenticationIsTheDestinations() throws {
        let source = try open("a", hmac: .sha256)
        try source.fill(rows: 1000)
        let target = try open("b", key: 2)
        try source.backup(to: target)
        #expect(try sum(target) == sum(source))
        #expect(target.close())
        #expect(try IntegrityReport.verify(path: directory.file("b"), key: .testing(2)).isSound)
    }

    @Test func plaintextDestinationTakesThePageSize() throws {
        let source = try open("a", key: nil)
        try source.run("PRAGMA page_size = 8192")
        try source.fill(rows: 100)
        #expect(try source.value("PRAGMA page_size") == 8192)
        let target = try open("b", key: nil)
        try source.backup(to: target)
        #expect(try target.value("PRAGMA page_size") == 8192)
        #expect(try sum(target) == sum(source))
    }

    @Test func locksAreBusyAndLeaveEverything() throws {
        let source = try open("a")
        try source.fill(rows: 100)
        let target = try open("b", key: 2)
        try target.fill(rows: 3)
        let other = try open("b", key: 2)
        #expect(other.beginImmediateTransaction())
        let busy = #expect(throws: DatabaseError.self) { try source.backup(to: target) }
        #expect(busy?.reason == .busy)
        #expect(other.rollback())
        #expect(target.beginDeferredTransaction())
        _ = try sum(target)
        #expect(throws: DatabaseError.self) { try source.backup(to: target) }
        #expect(target.rollback())
        #expect(source.beginImmediateTransaction())
        try source.run("INSERT INTO t (body) VALUES ('x')")
        let inTransaction = #expect(throws: DatabaseError.self) { try source.backup(to: target) }
        #expect(inTransaction?.message.contains("Commit or roll back") == true)
        #expect(source.rollback())
        #expect(throws: DatabaseError.self) { try source.backup(to: source) }
        #expect(throws: DatabaseError.self) { try source.backup(to: Database(path: nil)) }
        #expect(throws: DatabaseError.self) { try Database(path: nil).backup(to: target) }
        #expect(try target.integers("SELECT count(*) FROM t") == [3])
        try source.backup(to: target)
        #expect(try sum(target) == sum(source))
    }

    @Test func waitsForALockAsLongAsTheTimeoutAllows() throws {
        let source = try open("a")
        try source.fill(rows: 10)
        let target = try open("b", key: 2)
        target.maxBusyRetryTimeInterval = 60
        let other = try open("b", key: 2)
        #expect(other.beginImmediateTransaction())
        nonisolated(unsafe) let holder = other
        // The lock is given up while the backup waits for it, or before; it succeeds either way.
        let ended = DispatchSemaphore(value: 0)
        Thread.detachNewThread {
            holder.rollback()
            ended.signal()
        }
        try source.backup(to: target)
        #expect(try sum(target) == sum(source))
        ended.wait()
    }

    @Test func theCallersAuthorizerIsNotAskedAboutTheLibrarysOwnStatements() throws {
        let source = try open("a")
        try source.fill(rows: 10)
        let target = try open("b", key: 2)
        for database in [source, target] { database.authorizer = { _ in .deny } }
        var refusals = 0
        try source.backup(to: target, pagesPerStep: 1) { _ in
            #expect(throws: DatabaseError.self) { try source.value("SELECT 1") }
            refusals += 1
        }
        #expect(refusals > 0)
        for database in [source, target] { database.authorizer = nil }
        #expect(try sum(target) == sum(source))
    }

    @Test func observersOfTheDestinationAreTold() async throws {
        let source = try open("a")
        try source.fill(rows: 10)
        let target = try open("b", key: 2)
        var changes = target.changes(in: ["t"]).makeAsyncIterator()
        try source.backup(to: target)
        #expect(await changes.next()?.tables == ["t": .any])
    }
}
