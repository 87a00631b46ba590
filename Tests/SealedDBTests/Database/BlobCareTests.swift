import Foundation
import Testing

@testable import SealedDB

/// Who may use a blob, and what is told of that which was written to it.
@Suite(.hangLimit)
struct BlobCareTests {
    private let directory: TemporaryDirectory
    private let database: Database

    init() throws {
        directory = try TemporaryDirectory()
        database = try Database.testing(directory.file("db"), journalMode: .delete)
        try database.run("CREATE TABLE t (id INTEGER PRIMARY KEY, body)")
        try database.run("INSERT INTO t VALUES (1, zeroblob(9)), (2, zeroblob(9))")
    }

    private func blob(_ rowID: Int64 = 1) throws -> Blob {
        try database.openBlob(table: "t", column: "body", rowID: rowID, isWritable: true)
    }

    private func observer() -> ChangeObserver {
        let observer = ChangeObserver(
            names: [TableName("t", in: "main"): "t"],
            continuation: AsyncStream.makeStream(of: Void.self).continuation
        )
        database.additions.hooks.changes.hub.add(observer)
        database.refreshObservation()
        // Of what was committed before.
        _ = observer.take()
        return observer
    }

    @Test func observersAreToldOfTheRowThatABlobHasMovedTo() throws {
        let observer = observer()
        let blob = try blob()
        try blob.reopen(rowID: 2)
        try blob.write([1])
        try blob.close()
        #expect(observer.take() == ["t": .some([2])])
    }

    /// Who writes it once more after such an error would not know that it is there already.
    @Test func aFailureBehindTheMomentOfTheCommit() throws {
        let blob = try blob()
        try blob.write([7])
        // The end of the journal is the moment.
        #expect(unlink(directory.file("db-journal")) == 0)
        let error = #expect(throws: DatabaseError.self) { try blob.close() }
        #expect(error?.mayBeStored == true, "\(error as Any)")
        #expect(error?.message.contains("may be stored") == true, "\(error as Any)")
        database.close()
        let found = try Database.testing(directory.file("db"))
        #expect(try found.value("SELECT hex(substr(body, 1, 1)) FROM t WHERE id = 1") == "07")
        #expect(found.close())
    }

    /// SQLite is at work further up the call stack.
    @Test func aHookDoesNotCloseABlob() throws {
        let blob = try database.openBlob(table: "t", column: "body", rowID: 1)
        var error: DatabaseError?
        database.updateHook = { _ in
            error = #expect(throws: DatabaseError.self) { try blob.close() }
        }
        try database.run("INSERT INTO t VALUES (3, 'x')")
        database.updateHook = nil
        #expect(error?.code == SQLITE_MISUSE && error?.message.contains("hook") == true, "\(error as Any)")
        #expect(try blob.read(count: 9) == Data(count: 9))
        try blob.close()
    }

    /// What it wrote would be undone with the block's transaction, as if it were stored.
    @Test func aBlockThatReadsOpensNoBlobForWriting() throws {
        #expect(database.close())
        let queue = try DatabaseQueue(
            path: directory.file("db"),
            configuration: Configuration(key: isEncrypting ? try .testing(1) : nil)
        )
        try queue.read { (db) throws in
            let refusal = #expect(throws: DatabaseError.self) { try db.executeUpdate("DELETE FROM t") }
            let error = #expect(throws: DatabaseError.self) {
                try db.openBlob(table: "t", column: "body", rowID: 1, isWritable: true)
            }
            #expect(error?.message == refusal?.message, "\(error as Any)")
            #expect(try db.openBlob(table: "t", column: "body", rowID: 1).count == 9)
        }
        queue.close()
    }
}
