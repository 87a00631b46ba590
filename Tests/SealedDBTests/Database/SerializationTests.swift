import Foundation
import SealedDB
import Testing

@Suite(.hangLimit)
struct SerializationTests {
    private let directory: TemporaryDirectory

    init() throws {
        directory = try TemporaryDirectory()
    }

    @Test(.enabled(if: isEncrypting, "needs a codec"), arguments: [Configuration.JournalMode.delete, .wal, nil])
    func encryptedImage(mode: Configuration.JournalMode?) throws {
        // Without a mode: a database in memory.
        let database = try Database.testing(mode == nil ? nil : directory.file("db"), journalMode: mode)
        try database.fill(rows: 50)
        let image = try database.serialized()
        #expect(image.range(of: Data("secret row".utf8)) == nil)
        #expect(image.prefix(15) != Data("SQLite format 3".utf8))
        #expect(mode == nil || directory.names.allSatisfy { $0.hasPrefix("db") })

        let copy = try Database.opening(serialized: image, configuration: Configuration(key: .testing(1)))
        #expect(try copy.integers("SELECT count(*) FROM t") == [50])
        try copy.fill(rows: 50)
        #expect(try copy.integers("SELECT count(*) FROM t") == [100])
        #expect(try copy.serialized().range(of: Data("secret row".utf8)) == nil)
        let error = #expect(throws: DatabaseError.self) {
            _ = try Database.opening(serialized: image, configuration: Configuration(key: .testing(2)))
        }
        #expect(error?.reason == .wrongKey)
        // It is a file like any other.
        try image.write(to: URL(fileURLWithPath: directory.file("image")))
        #expect(try Database.testing(directory.file("image")).integers("SELECT count(*) FROM t") == [50])
    }

    /// Emptied, it is not a new one.
    @Test(.enabled(if: isEncrypting, "needs a codec")) func emptyImage() throws {
        let error = #expect(throws: DatabaseError.self) {
            try Database.opening(serialized: Data(), configuration: Configuration(key: .testing(1)))
        }
        #expect(error?.reason == .notADatabase)
        // One without tables is not empty.
        let image = try Database.testing(nil).serialized()
        #expect(!image.isEmpty)
        let copy = try Database.opening(serialized: image, configuration: Configuration(key: .testing(1)))
        #expect(try copy.integers("SELECT count(*) FROM sqlite_schema") == [0])
    }

    @Test(arguments: [Configuration.JournalMode.delete, .wal])
    func plaintextImage(mode: Configuration.JournalMode) throws {
        let database = try Database.testing(directory.file("db"), journalMode: mode)
        try database.fill(rows: 50)
        let image = try database.plaintextSerialized()
        #expect(image.range(of: Data("secret row".utf8)) != nil)
        let copy = try Database.opening(serialized: image)
        #expect(try copy.integers("SELECT count(*) FROM t") == [50])
        // Without a key it is what there is.
        #expect(try copy.serialized().range(of: Data("secret row".utf8)) != nil)
        #expect(directory.names.allSatisfy { $0.hasPrefix("db") })
    }

    @Test(arguments: [true, false])
    func theDatabaseIsNotWritten(isPlaintext: Bool) throws {
        let database = try Database.testing(directory.file("db"), journalMode: .delete)
        try database.fill(rows: 50)
        let before = try directory.bytes("db")
        _ = try isPlaintext ? database.plaintextSerialized() : database.serialized()
        #expect(try directory.bytes("db") == before)
    }

    @Test func refusals() throws {
        let database = try Database.testing(directory.file("db"))
        try database.fill(rows: 5)
        #expect(database.beginImmediateTransaction())
        #expect(throws: DatabaseError.self) { try database.serialized() }
        #expect(throws: DatabaseError.self) { try database.plaintextSerialized() }
        #expect(database.rollback())
        database.close()
        #expect(throws: DatabaseError.self) { try database.serialized() }
        let garbage = Data((0..<8192).map { UInt8(truncatingIfNeeded: $0 &* 167) })
        #expect(throws: DatabaseError.self) {
            try Database.opening(serialized: garbage).executeUpdate("CREATE TABLE t (a)", values: nil)
        }
    }
}
