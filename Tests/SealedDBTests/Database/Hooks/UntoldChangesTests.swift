import Foundation
import Testing

@testable import SealedDB

/// Changes that neither SQLite's update hook nor its authorizer tells: those of its own tables, and of blobs.
@Suite(.hangLimit)
struct UntoldChangesTests {
    private let database: Database

    init() throws {
        database = try Database.testing(nil)
        // Changed by UPDATE alone: what inserts rows may also count them.
        try database.run("CREATE TABLE marker (n)")
        try database.run("INSERT INTO marker VALUES (0)")
        try database.run("CREATE TABLE counted (id INTEGER PRIMARY KEY AUTOINCREMENT, a)")
        try database.run("CREATE TABLE n (a)")
    }

    /// What observers of the tables hear of the act. A marker is changed after it, so that nobody waits for what is not
    /// told.
    private func told(of tables: Set<String>, _ act: () throws -> Void) async throws -> [String: ChangedRows] {
        var changes = database.changes(in: tables.union(["marker"])).makeAsyncIterator()
        try act()
        try database.run("UPDATE marker SET n = n + 1")
        var told = try #require(await changes.next()).tables
        #expect(told.removeValue(forKey: "marker") != nil)
        return told
    }

    private func told(of tables: Set<String>, _ sql: String) async throws -> [String: ChangedRows] {
        try await told(of: tables) {
            #expect(database.executeStatements(sql), "\(database.lastError())")
        }
    }

    // MARK: Blobs

    /// The row that has changed is the one at which the blob is by then.
    @Test func blobsThatHaveMoved() async throws {
        try database.run("CREATE TABLE b (id INTEGER PRIMARY KEY, v)")
        try database.run("INSERT INTO b VALUES (1, x'0102'), (2, x'0304')")
        let told = try await told(of: ["b"]) {
            let blob = try database.openBlob(table: "b", column: "v", rowID: 1, isWritable: true)
            try blob.reopen(rowID: 2)
            try blob.write([9])
            try blob.close()
        }
        #expect(told == ["b": .some([2])])
        #expect(try database.rows("SELECT v FROM b") == [[.blob(Data([1, 2]))], [.blob(Data([9, 4]))]])
    }

    /// A statement or a blob that has not ended commits by itself, after the observation has begun.
    @Test(arguments: [false, true])
    func writersThatAreOpenWhenTheObservationBegins(isBlob: Bool) async throws {
        try database.run("CREATE TABLE b (id INTEGER PRIMARY KEY, v)")
        try database.run("INSERT INTO b VALUES (1, x'0102')")
        let end: () throws -> Void
        if isBlob {
            let blob = try database.openBlob(table: "b", column: "v", rowID: 1, isWritable: true)
            try blob.write([9])
            end = { try blob.close() }
        } else {
            let rows = try database.executeQuery("INSERT INTO b (v) VALUES (2), (3) RETURNING id")
            #expect(try rows.nextWithError())
            end = { rows.close() }
        }
        #expect(try await told(of: ["b"], end) == ["b": .any])
    }

    // MARK: AUTOINCREMENT

    @Test func whatIsCountedForAutoincrement() async throws {
        let insert = "INSERT INTO counted (a) VALUES (1)"
        #expect(try await told(of: ["sqlite_sequence"], insert) == ["sqlite_sequence": .any])
        let both = try await told(of: ["sqlite_sequence", "counted"], insert)
        #expect(both == ["sqlite_sequence": .any, "counted": .some([2])])
        #expect(try database.integers("SELECT seq FROM sqlite_sequence") == [2])
        #expect(try await told(of: ["sqlite_sequence"], "UPDATE counted SET a = 2") == [:])
        #expect(try await told(of: ["sqlite_sequence"], "DROP TABLE counted") == ["sqlite_sequence": .any])
    }

    /// All rows are there before the first one is returned, and nobody may ask for the others.
    @Test func rowsThatAreReturnedInPart() async throws {
        let told = try await told(of: ["sqlite_sequence"]) {
            let rows = try database.executeQuery(
                "INSERT INTO counted (a) VALUES (1), (2) RETURNING id",
                values: nil
            )
            #expect(try rows.nextWithError())
            rows.close()
        }
        #expect(told == ["sqlite_sequence": .any])
        #expect(try database.integers("SELECT seq FROM sqlite_sequence") == [2])
    }

    // MARK: OR FAIL

    /// SQLite's counts lack what the trigger had done before it failed, and which is kept.
    @Test func aTriggerThatFailsHalfWay() async throws {
        try database.execute(
            script: """
                CREATE TABLE keys (k PRIMARY KEY) WITHOUT ROWID;
                CREATE TRIGGER fill AFTER INSERT ON n BEGIN
                    INSERT INTO keys VALUES (NEW.a), (NEW.a + 1), (NEW.a);
                END;
                """
        )
        let told = try await told(of: ["keys"]) {
            #expect(throws: DatabaseError.self) { try database.execute(script: "INSERT OR FAIL INTO n VALUES (1)") }
        }
        #expect(told == ["keys": .any])
        #expect(try database.integers("SELECT k FROM keys") == [1, 2])
    }

    // MARK: ANALYZE

    @Test(arguments: ["ANALYZE", "ANALYZE n", "ANALYZE main"])
    func statistics(sql: String) async throws {
        try database.run("CREATE INDEX i ON n (a)")
        try database.run("INSERT INTO n VALUES (1), (2)")
        try database.run("ANALYZE")
        try database.run("INSERT INTO n VALUES (3)")
        let told = try await told(of: ["sqlite_stat1", "n"], sql)
        #expect(told == ["sqlite_stat1": .any])
        #expect(try database.value("SELECT stat FROM sqlite_stat1 WHERE idx = 'i'") == .text("3 1"))
    }
}
