import Foundation
import Testing

@testable import SealedDB

/// A store may have tables with the names by which SQLite gives what pragmas tell as tables. What the library does must not
/// depend on what somebody has written there.
@Suite(.hangLimit)
struct ShadowedPragmaTests {
    private let directory: TemporaryDirectory

    init() throws {
        directory = try TemporaryDirectory()
    }

    /// With a table of that name, and these rows in it.
    private func database(_ rows: [(name: String, file: String)]) throws -> Database {
        var configuration = Configuration(key: isEncrypting ? try .testing(1) : nil)
        // Not the default, which an attached file has by itself.
        configuration.synchronous = .normal
        let database = Database(path: directory.file("main"), configuration: configuration)
        try database.openVerified()
        try database.run("CREATE TABLE pragma_database_list (seq, name TEXT, file TEXT)")
        for (name, file) in rows {
            try database.run("INSERT INTO pragma_database_list VALUES (2, ?, ?)", [name, file])
        }
        #expect(try database.integers("SELECT count(*) FROM pragma_database_list") == [rows.count])
        return database
    }

    private func attachSide(to database: Database) throws {
        try database.attach(directory.file("side"), as: "side", key: isEncrypting ? try Key.testing(2) : nil)
    }

    /// None of its rows names a schema that is there.
    @Test(arguments: [false, true])
    func attachedFilesGetTheSettingsOfTheConnection(hasRows: Bool) throws {
        let database = try database(hasRows ? [("nowhere", "/nowhere")] : [])
        defer { database.close() }
        #expect(try #require(database.connection).statementGuard.heldChanges.areHeld)
        try attachSide(to: database)
        #expect(try database.integers("PRAGMA side.cache_spill") == [Int(Int32.max)])
        #expect(try database.integers("PRAGMA main.synchronous") == [1])
        #expect(try database.integers("PRAGMA side.synchronous") == [1])
    }

    @Test func queuesHoldTheChangesOfAttachedFilesToo() throws {
        try database([("nowhere", "/nowhere")]).close()
        let configuration = Configuration(key: isEncrypting ? try .testing(1) : nil)
        let queue = try DatabaseQueue(path: directory.file("main"), configuration: configuration)
        defer { queue.close() }
        try queue.inDatabase { db throws in
            try attachSide(to: db)
            #expect(try db.integers("PRAGMA side.cache_spill") == [Int(Int32.max)])
            try db.detach("side")
        }
    }

    /// An attached database would be lost without a word, and a row of the table would refuse what loses nothing.
    @Test func whatWouldBeLostIsToldByTheConnection() throws {
        let database = try database([("ghost", "/ghost")])
        defer { database.close() }
        let connection = try #require(database.connection)
        #expect(throws: Never.self) { try connection.requireNothingTemporary() }
        try attachSide(to: database)
        let error = #expect(throws: DatabaseError.self) { try connection.requireNothingTemporary() }
        #expect(error?.message.contains("attached databases (side)") == true, "\(error as Any)")
        try database.detach("side")
        #expect(throws: Never.self) { try connection.requireNothingTemporary() }
    }

    // MARK: Columns

    /// With a table and a full-text table, and with tables of the names by which SQLite gives the columns of tables.
    private func databaseWithShadowedColumns() throws -> Database {
        let database = try database([])
        try database.run("CREATE TABLE seats (seat INT, Row TEXT, guest TEXT DEFAULT 'n', PRIMARY KEY (row, seat))")
        try database.run("INSERT INTO seats VALUES (1, 'a', 'Ada'), (2, 'b', 'Bob')")
        try database.run("CREATE VIRTUAL TABLE texts USING fts5(body)")
        for name in ["pragma_table_info", "pragma_table_xinfo"] {
            try database.run("CREATE TABLE \(name) (arg, schema, cid, name, type, 'notnull', dflt_value, pk, hidden)")
            try database.run("INSERT INTO \(name)(cid, name, pk, hidden) VALUES (0, 'ghost', 1, 1)")
        }
        return database
    }

    @Test func columnsAreThoseOfTheTable() throws {
        let database = try databaseWithShadowedColumns()
        defer { database.close() }
        #expect(database.columnExists("ROW", inTableWithName: "Seats"))
        #expect(!database.columnExists("ghost", inTableWithName: "seats"))
        #expect(!database.columnExists("row", inTableWithName: "nowhere"))
        let rows = try #require(database.getTableSchema("seats"))
        defer { rows.close() }
        #expect(rows.columnCount == 6)
        var columns: [String] = []
        while try rows.nextWithError() {
            columns.append("\(rows.string(forColumn: "name") ?? "") \(rows.int(forColumn: "pk"))")
        }
        #expect(columns == ["seat 2", "Row 1", "guest 0"])
    }

    @Test func rowsAreFoundByTheKeyOfTheTable() throws {
        let database = try databaseWithShadowedColumns()
        defer { database.close() }
        #expect(try database.exists(in: "seats", key: "b", 2))
        #expect(try !database.exists(in: "seats", key: "b", 1))
        #expect(try database.delete(from: "seats", key: "a", 1))
        #expect(try database.integers("SELECT seat FROM seats") == [2])
        #expect(throws: DatabaseError.self) { _ = try database.exists(in: "nowhere", key: 1) }
    }

    @Test func fullTextTablesAreKnownByTheirOwnColumns() throws {
        let database = try databaseWithShadowedColumns()
        defer { database.close() }
        #expect(throws: Never.self) { try database.perform(.optimize, onTable: "texts") }
        #expect(throws: DatabaseError.self) { try database.perform(.optimize, onTable: "seats") }
    }
}
