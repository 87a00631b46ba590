import Foundation
import Testing

@testable import SealedDB

/// What the errors of statements say of files, where SQLite's own text names none.
@Suite(.hangLimit)
struct FailurePlaceTests {
    private let directory: TemporaryDirectory
    private var path: String { directory.file("app.db") }

    init() throws {
        directory = try TemporaryDirectory()
    }

    private func connection(_ flags: Int32 = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE) throws -> Connection {
        try Connection(path: path, flags: flags)
    }

    private func message(of body: () throws -> Void) -> String {
        let error = #expect(throws: DatabaseError.self) { try body() }
        return error?.message ?? ""
    }

    @Test func noRoom() throws {
        let connection = try connection()
        defer { connection.close() }
        try connection.run("CREATE TABLE t (a)")
        try connection.run("PRAGMA max_page_count = 4")
        let message = message { try connection.run("INSERT INTO t VALUES (zeroblob(100000))") }
        #expect(message.hasPrefix("database or disk is full: there is no room for \(path)"), "\(message)")
        #expect(try connection.integer("SELECT count(*) FROM t") == 0)
    }

    @Test func readOnly() throws {
        do {
            let connection = try connection()
            defer { connection.close() }
            try connection.run("CREATE TABLE t (a)")
        }
        let connection = try connection(SQLITE_OPEN_READONLY)
        defer { connection.close() }
        let message = message { try connection.run("INSERT INTO t VALUES (1)") }
        #expect(message.hasPrefix("attempt to write a readonly database: \(path),"), "\(message)")
        #expect(message.contains("opened for reading only"), "\(message)")
    }

    @Test func movedAway() throws {
        let connection = try connection()
        defer { connection.close() }
        try connection.run("CREATE TABLE t (a)")
        #expect(rename(path, directory.file("other.db")) == 0)
        let message = message { try connection.run("INSERT INTO t VALUES (1)") }
        #expect(
            message
                == "attempt to write a readonly database: \(path) was moved, removed or replaced while it was open. Close the database, and open it again"
        )
    }

    /// The rollback journal cannot be made where a directory has its name.
    @Test func aFileBesideTheStoreThatCannotBeOpened() throws {
        let connection = try connection()
        defer { connection.close() }
        try connection.run("CREATE TABLE t (a)")
        #expect(mkdir(path + "-journal", 0o700) == 0)
        let message = message { try connection.run("INSERT INTO t VALUES (1)") }
        #expect(message.contains("(\(path), a file beside it, or one that is attached)"), "\(message)")
        // Of what SQLite looked for afterwards.
        #expect(!message.contains(String(cString: strerror(ENOENT))), "\(message)")
    }

    @Test func noDescriptorIsLeft() throws {
        let connection = try connection()
        defer { connection.close() }
        try connection.run("CREATE TABLE t (a)")
        // The file itself is open.
        let watch = CallWatch(path + "-journal", failing: 0...1000, code: EMFILE)
        let message = message { try connection.run("INSERT INTO t VALUES (1)") }
        #expect(watch.endWithAll().contains { $0.hasPrefix("open") })
        #expect(message.hasPrefix("unable to open database file (\(path), a file beside it"), "\(message)")
        #expect(message.hasSuffix("attached): \(String(cString: strerror(EMFILE)))"), "\(message)")
    }

    @Test func aDatabaseInMemoryHasNoPlace() throws {
        let connection = try Connection(path: ":memory:", flags: SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE)
        defer { connection.close() }
        try connection.run("CREATE TABLE t (a)")
        try connection.run("PRAGMA max_page_count = 4")
        let message = message { try connection.run("INSERT INTO t VALUES (zeroblob(100000))") }
        #expect(message == "database or disk is full")
    }

    /// Other texts that SQLite has for these codes say what happened.
    @Test func aTextOfItsOwnStays() throws {
        let connection = try connection()
        defer { connection.close() }
        let message = message { try connection.run("ATTACH '\(directory.file("none"))/b.db' AS b") }
        #expect(message == "unable to open database: \(directory.file("none"))/b.db", "\(message)")
    }
}
