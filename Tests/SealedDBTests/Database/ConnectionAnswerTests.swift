import Foundation
import Testing

@testable import SealedDB

/// What single calls of a database and its statements answer where two answers are possible.
@Suite(.hangLimit)
struct ConnectionAnswerTests {
    private let directory: TemporaryDirectory
    private let database: Database

    init() throws {
        directory = try TemporaryDirectory()
        database = try Database.testing(directory.file("db"))
        try database.execute(
            script: """
                CREATE TABLE parent (id INTEGER PRIMARY KEY);
                CREATE TABLE t (id INTEGER PRIMARY KEY, p REFERENCES parent (id) DEFERRABLE INITIALLY DEFERRED);
                PRAGMA foreign_keys = ON;
                """
        )
    }

    /// Two connections to one store are two databases.
    @Test func equality() throws {
        let other = try Database.testing(directory.file("db"))
        let same = database
        #expect(database == same)
        #expect(database != other)
    }

    /// A call that fails is told of by its own error, although a statement that was dropped before has failed too.
    @Test func theLastErrorIsThatOfTheLastCall() throws {
        func leaveARow() throws {
            let rows = try database.executeQuery("INSERT INTO t (p) VALUES (4711) RETURNING id")
            #expect(rows.next())
        }
        try leaveARow()
        #expect(!database.executeUpdate("nonsense", withArgumentsIn: []))
        #expect(database.lastErrorMessage().contains("nonsense"), "\(database.lastError())")
        try leaveARow()
        #expect(database.lastExtendedErrorCode() == SQLITE_CONSTRAINT_FOREIGNKEY)
    }

    /// It did not store its row, and can be bound again.
    @Test func aPreparedStatementWhoseEndFails() throws {
        let statement = try database.prepare("INSERT INTO t (p) VALUES (?) RETURNING id")
        #expect(statement.bind(with: [4711]))
        let rows = statement.rows(Int.self)
        #expect(try rows.next() == 1)
        let error = #expect(throws: DatabaseError.self) { try rows.closeWithError() }
        #expect(error?.extendedCode == SQLITE_CONSTRAINT_FOREIGNKEY, "\(error as Any)")
        #expect(statement.bind(with: [NSNull()]), "\(database.lastError())")
        #expect(try statement.first(Int.self) == 1)
        try statement.closeWithError()
        #expect(try database.integers("SELECT count(*) FROM t") == [1])
    }

    @Test func columnsOfNoRow() throws {
        let rows = try database.executeQuery("SELECT 1, 2")
        func message() -> String? {
            #expect(throws: DatabaseError.self) { try rows.value(Int.self, forColumnIndex: 2) }?.message
        }
        #expect(message()?.contains("stands on no row") == true)
        #expect(rows.next())
        #expect(message()?.contains("The row has 2 columns") == true)
    }

    private struct Named: Codable, Equatable {
        var homeURL: String
        var firstName: String
        var last: String

        private enum CodingKeys: String, CodingKey {
            case homeURL = "home_URL"
            case firstName = "first_Name"
            case last = "_Last"
        }
    }

    /// There is one underscore where there was one.
    @Test func namesThatHaveUnderscores() throws {
        database.columnNaming = .snakeCase
        try database.execute(script: "CREATE TABLE named (home_url, first_name, _last)")
        let value = Named(homeURL: "a", firstName: "b", last: "c")
        try database.insert(value, into: "named")
        #expect(try database.executeQuery("SELECT * FROM named").all(Named.self) == [value])
        #expect(
            try database.rows("SELECT home_url, first_name, _last FROM named") == [["a", "b", "c"].map(SQLValue.text)]
        )
    }

    /// A value that SQLite does not take is not left out.
    @Test func aHeldValueThatIsTooLong() throws {
        database.limit(for: SQLITE_LIMIT_LENGTH, value: 1000)
        let statement = try database.prepare("INSERT INTO t (id, p) VALUES (?, ?)")
        let error = #expect(throws: DatabaseError.self) {
            try [UInt8](repeating: 0x61, count: 2000).withUnsafeBytes { bytes in
                try statement.bind([.integer(1), .text(bytes)])
            }
        }
        #expect(error?.code == SQLITE_TOOBIG, "\(error as Any)")
        #expect(!statement.step())
        #expect(try database.integers("SELECT count(*) FROM t") == [0])
    }

    @Test(.enabled(if: isEncrypting, "needs a codec"))
    func aPassphraseOfBytesInPlace() throws {
        try database.executeUpdate("INSERT INTO t VALUES (5, NULL)")
        #expect(database.rekey(with: Data("new secret".utf8)), "\(database.lastError())")
        #expect(database.close())
        let other = Database(
            path: directory.file("db"),
            configuration: Configuration(key: try .passphrase("new secret"))
        )
        try other.openVerified()
        #expect(try other.integers("SELECT id FROM t") == [5])
        // Without a key nothing is done.
        #expect(!other.rekey(with: Data()))
        #expect(try other.integers("SELECT id FROM t") == [5])
    }

    /// The key of a backup that is the store's own is not asked for again: its file may be gone by now.
    @Test(.enabled(if: isEncrypting, "needs a codec"))
    func aBackupUnderTheKeyThatTheStoreHas() throws {
        let file = directory.file("key")
        try KeyFile.create(atPath: file)
        let key = try KeySource.keyFile(file).key()
        let queue = try DatabaseQueue(path: directory.file("other"), configuration: Configuration(key: key))
        try queue.write { db in try db.fill(rows: 3) }
        #expect(unlink(file) == 0)
        try queue.backup(to: directory.file("backup"), key: key)
        let copy = Database(path: directory.file("backup"), configuration: Configuration(key: key))
        try copy.openVerified()
        #expect(try copy.integers("SELECT count(*) FROM t") == [3])
    }

    /// The last step of a copy is told as well, also if it is the only one.
    @Test(.enabled(if: isEncrypting, "needs a codec"))
    func theEndOfACopyOfWhatIsInMemory() throws {
        let memory = try Database.testing(nil)
        try memory.fill(rows: 30)
        var completed: [Int64] = []
        let report = try memory.backup(toNewFile: directory.file("copy"), key: nil) { state in
            if state.phase == .copy { completed.append(state.completedPages) }
        }
        #expect(completed.last == report.pageCount, "\(completed)")
    }
}
