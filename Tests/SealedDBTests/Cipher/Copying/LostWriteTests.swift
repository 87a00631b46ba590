import Foundation
import Testing

@testable import SealedDB

/// A write that the disk has lost leaves an older page, whose code is right. SQLite finds no way to the rows behind it, and a
/// copy made row by row would lack them without a trace.
@Suite(.hangLimit, .enabled(if: isEncrypting, "needs a codec"))
struct LostWriteTests {
    enum Conversion: CaseIterable, Sendable { case migration, decryption, encryption }

    private let directory: TemporaryDirectory
    private var store: String { directory.file("db") }

    init() throws {
        directory = try TemporaryDirectory()
    }

    private func withStore(_ conversion: Conversion, _ body: (Database) throws -> Void) throws {
        var configuration = Configuration(key: conversion == .encryption ? nil : try .testing(1))
        configuration.journalMode = .delete
        let database = Database(path: store, configuration: configuration)
        try database.openVerified()
        try body(database)
        #expect(database.close())
    }

    /// - Parameter page: the page whose last write is lost; `nil` for none.
    private func makeStore(_ conversion: Conversion, losing page: Int?) throws {
        try withStore(conversion) { db in
            try db.execute(script: "CREATE TABLE t (id INTEGER PRIMARY KEY, a); CREATE INDEX i ON t (a)")
            try db.executeUpdate("INSERT INTO t (a) VALUES ('first')")
        }
        let before = try directory.bytes("db")
        try withStore(conversion) { db in
            try db.executeUpdate(
                """
                WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1999)
                INSERT INTO t (a) SELECT 'row ' || i FROM n
                """
            )
        }
        guard let page else { return }
        var bytes = try directory.bytes("db")
        let place = (page - 1) * 4096..<page * 4096
        bytes.replaceSubrange(place, with: before[place])
        try directory.write("db", bytes)
    }

    private func convert(_ conversion: Conversion) throws {
        let target = directory.file("new")
        switch conversion {
        case .migration: try StoreMigration(path: store, key: .testing(1), to: CipherSettings(pageSize: 1024)).run()
        case .decryption: try StoreDecryption(path: store, key: .testing(1), plaintextPath: target).run()
        case .encryption: try StoreEncryption(plaintextPath: store, path: target, key: .testing(1)).run()
        }
    }

    /// The root of the table, and that of its index.
    @Test(arguments: Conversion.allCases, [2, 3])
    func whatLacksRowsIsNotCopied(conversion: Conversion, page: Int) throws {
        try makeStore(conversion, losing: page)
        let before = try directory.bytes("db")
        let error = #expect(throws: DatabaseError.self) { try convert(conversion) }
        #expect(error?.reason == .damaged, "\(String(describing: error))")
        #expect(error?.message.contains("never used") == true, "\(String(describing: error))")
        let remedy = conversion == .encryption ? "`.recover`" : "`sealdb recover`"
        #expect(error?.message.contains(remedy) == true, "\(String(describing: error))")
        #expect(try directory.bytes("db") == before)
        #expect(directory.namesOfFiles == ["db"])
    }

    @Test(arguments: Conversion.allCases)
    func theSameStoreWhole(conversion: Conversion) throws {
        try makeStore(conversion, losing: nil)
        try convert(conversion)
    }

    /// Of a leaf, only the index tells which rows are missing. A new index would not.
    @Test(arguments: Conversion.allCases)
    func whatOnlyAnIndexTells(conversion: Conversion) throws {
        try makeStore(conversion, losing: nil)
        var before = Data()
        try withStore(conversion) { db in
            // Its place is on a page that stays.
            try db.executeUpdate("DELETE FROM t WHERE id = 2000")
        }
        before = try directory.bytes("db")
        try withStore(conversion) { db in try db.executeUpdate("INSERT INTO t VALUES (2000, 'the last')") }
        let after = try directory.bytes("db")
        try #require(before.count == after.count)
        // Of the pages that were written, that of the table comes first.
        let written = stride(from: 4096, to: after.count, by: 4096).filter {
            before[$0..<$0 + 4096] != after[$0..<$0 + 4096]
        }
        let start = try #require(written.first)
        var bytes = after
        let place = start..<start + 4096
        bytes.replaceSubrange(place, with: before[place])
        try directory.write("db", bytes)
        let error = #expect(throws: DatabaseError.self) { try convert(conversion) }
        #expect(error?.reason == .damaged, "\(String(describing: error))")
        #expect(error?.message.contains("index i") == true, "\(String(describing: error))")
    }

    /// Of full text without contents SQLite says that it cannot tell, which is no damage.
    @Test(arguments: Conversion.allCases)
    func fullTextWithoutContents(conversion: Conversion) throws {
        try withStore(conversion) { db in
            try db.execute(script: "CREATE VIRTUAL TABLE f USING fts4(content='', x)")
            try db.executeUpdate("INSERT INTO f (docid, x) VALUES (1, 'some words')")
        }
        let key: Key? = conversion == .encryption ? nil : try .testing(1)
        let report = try IntegrityReport.verify(path: store, key: key, isDeep: true)
        #expect(report.isSound, "\(report.structureProblems)")
        try convert(conversion)
    }

    /// A backup has the pages of its source, and does not blame itself.
    @Test func aBackupThatCannotBeReadBlamesItsSource() throws {
        try makeStore(.migration, losing: nil)
        // The table has the root of its index.
        let database = try Database.testing(store)
        try database.execute(
            script: "PRAGMA writable_schema = ON; UPDATE sqlite_schema SET rootpage = 3 WHERE name = 't'"
        )
        #expect(database.close())
        let error = #expect(throws: DatabaseError.self) {
            try StoreBackup(path: store, key: .testing(1), to: directory.file("backup")).run()
        }
        #expect(error?.reason == .damaged, "\(String(describing: error))")
        #expect(error?.message.contains("the source is damaged") == true, "\(String(describing: error))")
        #expect(directory.namesOfFiles == ["db"])
    }
}
