import Foundation
import Testing

@testable import SealedDB

/// Names that Swift compares otherwise than SQLite: what makes a quote or slash another character to Swift does not end
/// the quoting, and what Swift takes for a quote stays what it is.
@Suite(.hangLimit)
struct HostileNameTests {
    private let directory: TemporaryDirectory

    init() throws {
        directory = try TemporaryDirectory()
    }

    /// Each quote alone, and with what joins it: a combining mark, a joiner, a variation selector. U+1FEF and U+037E are
    /// equal to the back quote and the semicolon, and U+212A to K.
    static let names: [String] =
        ["`", "\"", "'", "]", "/", ";", "\\", "%"].flatMap { quote in
            ["", "\u{301}", "\u{200d}", "\u{fe0f}", "\u{20e3}"].flatMap { mark in
                ["a\(quote)\(mark)b", "\(quote)\(mark)", "a\(quote)\(mark) AS x, sql FROM sqlite_schema --"]
            }
        } + [
            "a\u{1fef}b", "a\u{37e}b", "\u{212a}", "e\u{301}", "\u{e9}", "file:\u{301}x", ":\u{301}memory:", "\r\n",
            "\n\u{301}",
        ]

    @Test(arguments: names) func tablesAndColumns(_ name: String) throws {
        let database = try Database.testing(nil)
        try database.executeUpdate(
            "CREATE TABLE \(identifier: name) (id INTEGER PRIMARY KEY, \(identifier: name) TEXT)"
        )
        try database.insert([name: "v"], into: name)
        #expect(try database.exists(in: name, key: 1))
        #expect(
            try database.executeQuery("SELECT \(identifier: name) FROM \(identifier: name)").scalar(String.self) == "v"
        )
        let table = try #require(try database.executeQuery("SELECT name FROM sqlite_schema").scalar(String.self))
        #expect(Array(table.utf8) == Array(name.utf8))
        #expect(try database.delete(from: name, key: 1))
        #expect(try database.executeQuery("SELECT count(*) FROM sqlite_schema").scalar(Int.self) == 1)
    }

    @Test(arguments: names) func savepoints(_ name: String) throws {
        let database = try Database.testing(nil)
        try database.executeUpdate("CREATE TABLE t (a)")
        try database.startSavePoint(withName: name)
        try database.executeUpdate("INSERT INTO t VALUES (1)")
        try database.rollbackToSavePoint(withName: name)
        try database.executeUpdate("INSERT INTO t VALUES (2)")
        try database.releaseSavePoint(withName: name)
        #expect(!database.isInTransaction)
        #expect(try database.executeQuery("SELECT a FROM t").all(Int.self) == [2])
    }

    @Test(arguments: names) func attachedSchemas(_ name: String) throws {
        let database = try Database.testing(directory.file("db"))
        let key: Key? = isEncrypting ? try .testing(2) : nil
        try database.attach(directory.file("other"), as: name, key: key)
        try database.executeUpdate("CREATE TABLE \(identifier: name).t (a)")
        #expect(
            try database.executeQuery("SELECT count(*) FROM \(identifier: name).sqlite_schema").scalar(Int.self) == 1
        )
        #expect(try database.executeQuery("SELECT count(*) FROM main.sqlite_schema").scalar(Int.self) == 0)
        try database.detach(name)
    }

    /// A copy, and a look at each table.
    @Test func wholeStores() throws {
        let database = try Database.testing(directory.file("db"))
        // Names that are equal to SQLite differ in their bytes.
        for name in Self.names {
            try database.executeUpdate("CREATE TABLE \(identifier: name) (\(identifier: name) TEXT)")
            try database.executeUpdate(
                "CREATE INDEX \(identifier: "i" + name) ON \(identifier: name) (\(identifier: name))"
            )
            try database.executeUpdate("INSERT INTO \(identifier: name) VALUES (\(name))")
        }
        let copy = try Database.testing(nil)
        try database.backup(to: copy)
        #expect(try copy.executeQuery("SELECT count(*) FROM sqlite_schema").scalar(Int.self) == Self.names.count * 2)
        database.close()
        guard isEncrypting else { return }
        let rotation = KeyRotation(path: directory.file("db"), from: try .testing(1), to: try .testing(2))
        try rotation.run()
        try StoreDecryption(path: directory.file("db"), key: .testing(2), plaintextPath: directory.file("plain")).run()
        let rotated = Database(path: directory.file("db"), configuration: Configuration(key: try .testing(2)))
        try rotated.openVerified()
        #expect(try rotated.executeQuery("SELECT count(*) FROM sqlite_schema").scalar(Int.self) == Self.names.count * 2)
    }

    /// A file is where its bytes say, and what is made of it stands beside it.
    @Test(arguments: names.filter { !$0.contains("\0") && !$0.utf8.contains(UInt8(ascii: "/")) })
    func files(_ name: String) throws {
        let path = directory.file(name)
        let database = try Database.testing(path)
        try database.executeUpdate("CREATE TABLE t (a)")
        database.close()
        #expect(FileSystem.directory(of: path) == FileSystem.directory(of: directory.file("x")))
        #expect(Array(FileSystem.name(of: path).utf8) == Array(name.utf8))
        guard isEncrypting else { return }
        try KeyRotation(path: path, from: .testing(1), to: .testing(2)).run()
        #expect(directory.names.filter { !$0.hasSuffix("-sealdb-lock") }.map { Array($0.utf8) } == [Array(name.utf8)])
    }

    @Test(.enabled(if: isEncrypting, "the guard is for keyed stores")) func filesThatLookLikeURIs() throws {
        let database = try Database.testing(directory.file("db"))
        for name in ["file:x", "file:\u{301}x?mode=memory"] {
            let error = #expect(throws: DatabaseError.self) {
                try database.executeUpdate("ATTACH '\(raw: name)' AS other")
            }
            #expect(error?.reason == .notAllowed, "\(name)")
        }
    }

    /// These are two columns to SQLite, and one name to Swift.
    @Test func columnsWhoseNamesAreEqualToSwift() throws {
        let database = try Database.testing(nil)
        let (composed, decomposed) = ("\u{e9}", "e\u{301}")
        try database.executeUpdate(
            "CREATE TABLE t (k INTEGER PRIMARY KEY, \(identifier: composed), \(identifier: decomposed), `\u{212a}`)"
        )
        try database.executeUpdate("INSERT INTO t VALUES (1, 'composed', 'decomposed', 'kelvin')")
        let rows = try database.executeQuery("SELECT * FROM t")
        #expect(rows.next())
        for _ in 0..<2 {
            #expect(rows.string(forColumn: composed) == "composed")
            #expect(rows.string(forColumn: decomposed) == "decomposed")
            #expect(rows.string(forColumn: "\u{212a}") == "kelvin")
            #expect(rows.int(forColumn: "K") == 1)
        }
        rows.close()
        try database.upsert(Kelvin(k: 1, kelvin: "new"), into: "t")
        #expect(try database.executeQuery("SELECT `\u{212a}` FROM t").scalar(String.self) == "new")
    }

    private struct Kelvin: Encodable {
        let k: Int
        let kelvin: String

        enum CodingKeys: String, CodingKey {
            case k
            case kelvin = "\u{212a}"
        }
    }

    /// What is noted for an attached file stays as long as the file.
    @Test(.enabled(if: isEncrypting, "plain files have no lock")) func locksOfAttachedSchemas() throws {
        let database = try Database.testing(directory.file("db"))
        try database.attach(directory.file("one"), as: "\u{c4}", key: .testing(2))
        try database.attach(directory.file("two"), as: "\u{e4}", key: .testing(2))
        try database.attach(directory.file("three"), as: "x", key: .testing(2))
        try database.detach("x")
        #expect(database.connection?.usageLocks.count == 3)
        let rotation = KeyRotation(path: directory.file("one"), from: try .testing(2), to: try .testing(3))
        let error = #expect(throws: DatabaseError.self) { try rotation.run() }
        #expect(error?.reason == .busy)
        try database.detach("\u{c4}")
        #expect(database.connection?.usageLocks.count == 2)
    }

    /// A second name of the file is no leftover of a rotation because it begins in the same way to Swift.
    @Test func namesThatAreEqualToSwift() throws {
        let (composed, decomposed) = (directory.file("\u{e9}"), directory.file("e\u{301}"))
        let database = try Database.testing(composed)
        try database.executeUpdate("CREATE TABLE t (a)")
        database.close()
        try FileManager.default.linkItem(atPath: composed, toPath: decomposed)
        for path in [composed, decomposed] {
            let error = #expect(throws: DatabaseError.self) { try Database.testing(path) }
            #expect(error?.reason == .hardLinked)
        }
    }

    /// U+0600 joins what follows it, so that the name has no "-wal" to Swift.
    @Test func namesOfLogsBehindAJoiner() throws {
        let database = try Database.testing(directory.file("a\u{600}"))
        try database.executeUpdate("CREATE TABLE t (a)")
        database.close()
        for ending in ["-wal", "-journal", "-shm"] {
            let error = #expect(throws: DatabaseError.self) {
                try Database.testing(directory.file("a\u{600}" + ending))
            }
            #expect(error?.reason == .cannotCreate, "\(ending)")
        }
    }

    @Test func partsAndBeginnings() {
        #expect(
            "a\r\nb\n\u{301}c".parts(between: "\n").map { Array($0.utf8) } == [
                Array("a\r".utf8), [0x62], Array("\u{301}c".utf8),
            ]
        )
        #expect("".parts(between: "\n") == [""])
        #expect("\n".parts(between: "\n") == ["", ""])
        #expect("file:\u{301}".begins(with: "file:"))
        #expect(!"\u{212a}ey".begins(with: "K"))
        #expect("a/\u{301}".has("/"))
    }
}
