import Foundation
import SealedDB
import Testing

@Suite(.hangLimit)
struct BlobTests {
    private let directory: TemporaryDirectory
    private let database: Database

    init() throws {
        directory = try TemporaryDirectory()
        database = try Database.testing(directory.file("db"))
        try database.run("CREATE TABLE t (id INTEGER PRIMARY KEY, body)")
        try database.run("INSERT INTO t VALUES (1, zeroblob(100000)), (2, x'0102'), (3, 'text'), (4, NULL), (5, 17)")
    }

    private func blob(_ rowID: Int64 = 1, isWritable: Bool = true) throws -> Blob {
        try database.openBlob(table: "t", column: "body", rowID: rowID, isWritable: isWritable)
    }

    @Test func readsAndWritesInParts() throws {
        let blob = try blob()
        #expect(blob.count == 100_000)
        try blob.write(Data([1, 2, 3]), at: 50_000)
        try blob.write([UInt8](repeating: 9, count: 2), at: 99_998)
        try blob.write(Data(), at: 100_000)
        #expect(try blob.read(at: 49_999, count: 5) == Data([0, 1, 2, 3, 0]))
        #expect(try blob.read(at: 100_000, count: 0) == Data())
        var buffer = [UInt8](repeating: 7, count: 4)
        try buffer.withUnsafeMutableBytes { try blob.read(at: 99_996, into: $0) }
        #expect(buffer == [0, 0, 9, 9])
        try blob.close()
        try blob.close()
        #expect(blob.count == 0)
        #expect(database.close() && database.open())
        #expect(try database.value("SELECT hex(substr(body, 50001, 3)) FROM t WHERE id = 1") == "010203")
    }

    /// SQLite would take the part before the NUL for the name, of which the rules know nothing.
    @Test func namesWithNULBytes() throws {
        for (table, column, schema) in [("t\0x", "body", "main"), ("t", "body\0x", "main"), ("t", "body", "main\0x")] {
            let error = #expect(throws: DatabaseError.self) {
                try database.openBlob(table: table, column: column, rowID: 1, database: schema)
            }
            #expect(error?.reason == .misuse, "\(table) \(column) \(schema)")
        }
        #expect(throws: DatabaseError.self) { try database.checkpoint(.passive, name: "main\0x") }
    }

    @Test func rangesAreChecked() throws {
        let blob = try blob()
        for (offset, count) in [
            (100_000, 1), (-1, 1), (0, 100_001), (1, .max), (.max, 1), (99_999, 2), (0, -1), (.min, 0),
        ] {
            let error = #expect(throws: DatabaseError.self) { try blob.read(at: offset, count: count) }
            #expect(error?.code == SQLITE_RANGE)
        }
        #expect(throws: DatabaseError.self) { try blob.write([1, 2], at: 99_999) }
        #expect(try blob.read(count: 100_000) == Data(count: 100_000))
    }

    @Test func otherValuesAndPlaces() throws {
        #expect(try blob(3, isWritable: false).read(count: 4) == Data("text".utf8))
        for rowID: Int64 in [4, 5, 99] { #expect(throws: DatabaseError.self) { try blob(rowID) } }
        for (table, column, schema) in [("t", "none", "main"), ("none", "body", "main"), ("t", "body", "aux")] {
            #expect(throws: DatabaseError.self) {
                try database.openBlob(table: table, column: column, rowID: 1, database: schema)
            }
        }
        try database.run("CREATE TABLE w (k PRIMARY KEY, v) WITHOUT ROWID")
        #expect(throws: DatabaseError.self) { try database.openBlob(table: "w", column: "v", rowID: 1) }
        let readOnly = try blob(isWritable: false)
        let error = #expect(throws: DatabaseError.self) { try readOnly.write([1]) }
        #expect(error?.code == SQLITE_READONLY)
        try database.run("ATTACH ':memory:' AS aux")
        try database.run("CREATE TABLE aux.t (body)")
        try database.run("INSERT INTO aux.t VALUES ('hi')")
        #expect(try database.openBlob(table: "t", column: "body", rowID: 1, database: "aux").count == 2)
    }

    @Test func expiresWhenItsRowChanges() throws {
        // Outside a transaction, nothing is written beside a blob that is open to be written.
        #expect(database.beginTransaction())
        let blob = try blob()
        try blob.write([1])
        try database.run("UPDATE t SET body = zeroblob(5) WHERE id = 2")
        #expect(try blob.read(count: 1) == Data([1]))
        try database.run("UPDATE t SET body = zeroblob(5) WHERE id = 1")
        for _ in 0..<2 {
            let error = #expect(throws: DatabaseError.self) { try blob.read(count: 1) }
            #expect(error?.code == SQLITE_ABORT)
            #expect(error?.message.contains("expired") == true)
        }
        #expect(throws: DatabaseError.self) { try blob.write([1]) }
        let other = try self.blob(2)
        try database.run("DELETE FROM t WHERE id = 2")
        #expect(throws: DatabaseError.self) { try other.read(count: 1) }
        #expect(database.commit())
        let reader = try self.blob(1, isWritable: false)
        try database.run("DELETE FROM t WHERE id = 1")
        #expect(throws: DatabaseError.self) { try reader.read(count: 1) }
    }

    @Test func movesToAnotherRow() throws {
        let blob = try blob(2)
        try blob.reopen(rowID: 3)
        #expect(try blob.read(count: blob.count) == Data("text".utf8))
        let error = #expect(throws: DatabaseError.self) { try blob.reopen(rowID: 99) }
        #expect(error?.message.contains("no such rowid") == true)
        #expect(throws: DatabaseError.self) { try blob.read(count: 1) }
    }

    @Test func endsWithItsDatabase() throws {
        let blob = try blob()
        try blob.write([1])
        #expect(database.close())
        let error = #expect(throws: DatabaseError.self) { try blob.read(count: 1) }
        #expect(error?.code == SQLITE_MISUSE)
        try blob.close()
        #expect(throws: DatabaseError.self) { try self.blob() }
        // The file is free: nothing keeps a lock.
        let other = try Database.testing(directory.file("db"))
        #expect(other.beginExclusiveTransaction() && other.rollback())
    }

    @Test func keepsItsDatabaseAndLetsGoOfIt() throws {
        weak var weakDatabase: Database?
        do {
            var blob: Blob?
            do {
                let other = try Database.testing(directory.file("db"))
                weakDatabase = other
                blob = try other.openBlob(table: "t", column: "body", rowID: 2)
            }
            #expect(try blob?.read(count: 2) == Data([1, 2]))
        }
        #expect(weakDatabase == nil)
        #expect(database.beginExclusiveTransaction() && database.rollback())
    }

    @Test func aCommitThatFailsIsTold() throws {
        let path = directory.file("db")
        let reader = try Database.testing(path)
        database.maxBusyRetryTimeInterval = 0
        let blob = try blob()
        try blob.write([1])
        #expect(reader.beginDeferredTransaction())
        _ = try reader.integers("SELECT count(*) FROM t")
        let error = #expect(throws: DatabaseError.self) { try blob.close() }
        #expect(error?.reason == .busy)
        #expect(reader.rollback())
        #expect(try self.blob().read(count: 1) == Data([0]))
    }

    @Test func endsWithTheBlockOfAQueue() throws {
        let queue = try DatabaseQueue(
            path: directory.file("db"),
            configuration: Configuration(key: isEncrypting ? try .testing(1) : nil)
        )
        database.close()
        nonisolated(unsafe) var kept: Blob?
        try queue.inDatabase { db in
            kept = try db.openBlob(table: "t", column: "body", rowID: 1, isWritable: true)
            try kept?.write([5])
        }
        #expect(throws: DatabaseError.self) { try kept?.read(count: 1) }
        kept = nil
        let first = try queue.inDatabase { db in try db.value("SELECT hex(substr(body, 1, 1)) FROM t WHERE id = 1") }
        #expect(first == "05")
    }

    /// Many threads drop blobs and statements while the database is used, closed and opened.
    @Test func droppedLateOnOtherThreads() throws {
        final class Box: @unchecked Sendable {
            // Handed to the thread that drops it.
            var things: [AnyObject] = []
        }
        let droppers = DispatchQueue(label: "droppers", attributes: .concurrent)
        let group = DispatchGroup()
        for round in 0..<60 {
            for _ in 0..<4 {
                let box = Box()
                box.things = [
                    try blob(1, isWritable: false), try database.prepare("SELECT * FROM t"),
                    try blob(2, isWritable: false),
                ]
                droppers.async(group: group) { box.things = [] }
            }
            #expect(try database.integers("SELECT count(*) FROM t") == [5])
            if round.isMultiple(of: 5) { #expect(database.close() && database.open()) }
        }
        group.wait()
        #expect(database.close() && database.open())
        #expect(database.beginExclusiveTransaction() && database.rollback())
    }

    @Test func droppedOnAnotherThreadWhileAQueueWorks() throws {
        final class Box: @unchecked Sendable {
            var blobs: [Blob] = []
        }
        database.close()
        let queue = try DatabaseQueue(
            path: directory.file("db"),
            configuration: Configuration(key: isEncrypting ? try .testing(1) : nil)
        )
        let group = DispatchGroup()
        for _ in 0..<50 {
            try queue.inDatabase { db in
                let box = Box()
                box.blobs = try (0..<4).map { _ in try db.openBlob(table: "t", column: "body", rowID: 2) }
                DispatchQueue.global().async(group: group) { box.blobs = [] }
                #expect(try db.integers("SELECT count(*) FROM t") == [5])
            }
        }
        group.wait()
        queue.close()
        #expect(database.open() && database.beginExclusiveTransaction() && database.rollback())
    }
}
