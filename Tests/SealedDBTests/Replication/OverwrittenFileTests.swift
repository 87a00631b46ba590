import Foundation
import Testing

@testable import SealedDB

/// Somebody writes to a store, or removes a part of it, as if nobody had it open.
@Suite(.enabled(if: isEncrypting, "needs a codec"), .hangLimit)
struct OverwrittenFileTests {
    private let replica: FollowedReplica
    private var store: ReplicatedStore { replica.store }

    init() throws {
        replica = try FollowedReplica()
        try replica.ship()
    }

    /// Writes bytes over those of a file, which stays the same file, as `cp` does.
    private func overwrite(_ name: String, _ bytes: Data) throws {
        let file = try FileHandle.closedToChildren(store.directory.file(name), O_WRONLY)
        try file.write(contentsOf: bytes)
        try file.truncate(atOffset: UInt64(bytes.count))
        try file.close()
    }

    /// Moves the log of the store into its file, and lets the shipper see that.
    private func moveLog() throws {
        #expect(store.database.executeStatements("PRAGMA wal_checkpoint(PASSIVE)"))
        #expect(try store.ship().begunBecause == nil)
    }

    /// What the store's file was one commit ago. Both have all of their logs.
    private func outdatedCopy(rows: Int) throws -> Data {
        try store.commit(ReplicatedStore.rows(rows, bytes: 3000))
        try moveLog()
        let old = try store.directory.bytes("app.db")
        try store.commit("UPDATE data SET sum = sum + 1")
        try moveLog()
        return old
    }

    // MARK: The shipper's store

    /// What is committed on top of an older copy is not shipped as if it followed what was there before.
    @Test func anOlderCopyOverTheStore() throws {
        let old = try outdatedCopy(rows: 20)
        try overwrite("app.db", old)
        let report = try store.ship()
        #expect(report.generation == 2 && report.begunBecause == "overwritten")
        let remark = Replicator.lostSight(report, of: store.path)
        #expect(remark?.message.contains("restore --replace") == true)
        #expect(try store.restore().commits == 2)
        #expect(try store.restore(.generation(1)).commits == 3)
        #expect(try store.ship().begunBecause == nil)
    }

    /// Nor while the log has frames that are not in the file: none of them, or those that a reader keeps there.
    @Test(arguments: [false, true]) func anOlderCopyUnderALog(hasPart: Bool) throws {
        let old = try outdatedCopy(rows: 20)
        try store.commit("UPDATE data SET sum = sum + 1 WHERE rowid = 1")
        let reader = try Database.testing(store.path)
        defer { reader.close() }
        if hasPart {
            try reader.execute(script: "BEGIN; SELECT count(*) FROM data")
            try store.commit("UPDATE data SET sum = sum + 1 WHERE rowid = 2")
            #expect(store.database.executeStatements("PRAGMA wal_checkpoint(PASSIVE)"))
        }
        // A look at which the log has them.
        #expect(try store.ship().begunBecause == nil)
        try store.commit("UPDATE data SET sum = sum + 1 WHERE rowid = 3")
        #expect(try store.ship().begunBecause == nil)
        try overwrite("app.db", old)
        #expect(try store.ship().begunBecause == "overwritten")
        #expect(try store.ship().begunBecause == nil)
        #expect(try store.restore(.generation(1)).commits == (hasPart ? 6 : 5))
    }

    /// The shipper itself moves no log into what somebody has put there, however long it is.
    @Test func aLongLogOverAnOlderCopy() throws {
        let old = try outdatedCopy(rows: 20)
        let replicator = try #require(store.replicator)
        replicator.options.relievedAt = 1 << 30
        try store.commit("UPDATE data SET sum = sum + 1")
        #expect(try store.ship().begunBecause == nil)
        replicator.options.relievedAt = 1
        try overwrite("app.db", old)
        try replicator.relieveLog()
        #expect(try store.directory.bytes("app.db") == old)
        #expect(try store.ship().begunBecause == "overwritten")
        #expect(try store.restore(.generation(1)).commits == 4)
    }

    /// Checkpoints of every kind, also those that a reader ends early, write to the file as SQLite does.
    @Test(arguments: 0..<8) func whatSQLiteWrites(seed: UInt64) throws {
        var random = SeededGenerator(seed: seed)
        let other = try Database.testing(store.path)
        defer { other.close() }
        var isReading = false
        for _ in 0..<40 {
            let database = Bool.random(using: &random) && !isReading ? other : store.database
            switch Int.random(in: 0..<6, using: &random) {
            case 0: try store.commit(ReplicatedStore.rows(Int.random(in: 1...60, using: &random), bytes: 3000))
            case 1: try store.commit("DELETE FROM data WHERE rowid % 3 = 0")
            case 2:
                let mode = try #require(["PASSIVE", "FULL", "RESTART", "TRUNCATE"].randomElement(using: &random))
                // Busy where a reader or the shipper needs the log.
                database.executeStatements("PRAGMA busy_timeout = 0; PRAGMA wal_checkpoint(\(mode))")
            case 3:
                try other.execute(script: isReading ? "COMMIT" : "BEGIN; SELECT count(*) FROM data")
                isReading.toggle()
            case 4: #expect(store.database.executeStatements("VACUUM"))
            default: break
            }
            if Bool.random(using: &random) { #expect(try store.ship().begunBecause == nil) }
        }
        if isReading { try other.execute(script: "COMMIT") }
        #expect(try store.ship().generation == 1)
        _ = try store.restore()
    }

    /// While it is read for a snapshot, it is no state of the store, whether the log has frames or not.
    @Test(arguments: [false, true]) func anOlderCopyAmidASnapshot(hasLog: Bool) throws {
        let old = try outdatedCopy(rows: 200)
        if hasLog { try store.commit("UPDATE data SET sum = sum + 1 WHERE rowid = 1") }
        store.killShipper()
        try FileManager.default.removeItem(atPath: store.repository)
        let replicator = try Replicator(path: store.path, key: .testing(1), directory: store.repository)
        defer { replicator.close() }
        var isDone = false
        let error = #expect(throws: DatabaseError.self) {
            try replicator.ship { _ in
                if !isDone { try overwrite("app.db", old) }
                isDone = true
            }
        }
        #expect(error?.reason == .busy, "\(String(describing: error))")
        #expect(error?.message.contains("No snapshot was made") == true)
        #expect(try RepositoryStatus.of(directory: store.repository, verifies: false).generations.isEmpty)
        #expect(try replicator.ship().generation == 1)
        // With frames of the newer store it is no state that there was.
        if !hasLog { #expect(try store.restore().commits == 2) }
    }

    /// A backup that makes hard links, or somebody who changes the mode, writes nothing.
    @Test func aStoreThatIsOnlyLinked() throws {
        try moveLog()
        let other = store.directory.file("link")
        #expect(link(store.path, other) == 0 && unlink(other) == 0 && chmod(store.path, 0o640) == 0)
        #expect(try store.ship().begunBecause == nil)
    }

    /// What was committed to a log that was removed is shipped before what others see now.
    @Test func aLogThatWasRemoved() throws {
        try moveLog()
        try store.commit()
        store.database.close()
        for suffix in ["-wal", "-shm"] { #expect(unlink(store.path + suffix) == 0) }
        let report = try store.ship()
        #expect(report.generation == 2 && report.begunBecause == "log-replaced" && report.commitCount == 1)
        #expect(Replicator.lostSight(report, of: store.path)?.message.contains("close it everywhere") == true)
        #expect(try store.restore(.generation(1)).commits == 2)
        #expect(try store.restore().commits == 1)
        #expect(try store.ship().begunBecause == nil)
    }

    /// The index alone is enough: what others commit then, nobody tells the shipper.
    @Test func anIndexThatWasRemoved() throws {
        store.database.close()
        #expect(unlink(store.path + "-shm") == 0)
        try StockShell.run(
            store.path,
            "PRAGMA key = \"x'\(String(repeating: "01", count: 32))'\"; INSERT INTO step (number) VALUES (7);"
        )
        #expect(try store.ship().generation == 1)
        let target = store.directory.file("restored.db")
        try RepositoryRestore(from: store.repository, to: target).run()
        let copy = try Database.testing(target)
        #expect(try copy.integers("SELECT number FROM step ORDER BY number") == [0, 7])
        copy.close()
    }

    /// Others of this process have the removed index, too, and SQLite gives it to whoever opens the store.
    @Test func anIndexThatWasRemovedUnderThisProcess() throws {
        try store.commit()
        #expect(unlink(store.path + "-shm") == 0)
        for _ in 0..<2 {
            let error = #expect(throws: DatabaseError.self) { try store.ship() }
            #expect(error?.reason == .unverified, "\(String(describing: error))")
            #expect(error?.message.contains("(-shm) was removed") == true)
        }
        store.database.close()
        #expect(try store.ship().generation == 2)
        #expect(try store.restore().commits == 2)
    }

    // MARK: The copy that follows

    private func expectUnverified(_ part: String, sourceLocation: SourceLocation = #_sourceLocation) throws {
        let error = #expect(throws: DatabaseError.self, sourceLocation: sourceLocation) { try replica.follow() }
        #expect(error?.reason == .unverified, "\(String(describing: error))", sourceLocation: sourceLocation)
        #expect(error?.message.contains(part) == true, "\(String(describing: error))", sourceLocation: sourceLocation)
    }

    private func commitAndFollow(_ sql: String = "") throws {
        try store.commit(sql)
        try replica.ship()
        try replica.follow()
    }

    /// Nothing is added to what somebody has put there, and the follower that has it open notices it.
    @Test func anOlderCopyOverTheReplica() throws {
        try replica.follow()
        try commitAndFollow(ReplicatedStore.rows(20, bytes: 3000))
        replica.close()
        let old = try store.directory.bytes("replica.db")
        try commitAndFollow("UPDATE data SET sum = sum + 1")
        replica.close()
        try replica.follow()
        try overwrite("replica.db", old)
        try store.commit()
        try replica.ship()
        for _ in 0..<2 { try expectUnverified("Somebody else has written") }
        replica.kill()
        try expectUnverified("Somebody else has written")
        #expect(try store.directory.bytes("replica.db") == old)
    }

    /// If the log has frames, that is found at the latest when they are moved into the file.
    @Test(arguments: [0, 2, 20], [false, true])
    func writtenToWhileTheLogHasFrames(lostPages: Int, isKilled: Bool) throws {
        try replica.follow()
        try commitAndFollow(ReplicatedStore.rows(20, bytes: 3000))
        replica.close()
        let old = try store.directory.bytes("replica.db")
        try commitAndFollow("UPDATE data SET sum = sum + 1")
        replica.close()
        try commitAndFollow()
        try overwrite("replica.db", old.dropLast(lostPages * 4096))
        if isKilled { replica.kill() }
        try commitAndFollow()
        for _ in 0..<2 {
            let failure = replica.follower?.close()
            #expect(failure?.reason == .unverified, "\(String(describing: failure))")
            replica.kill()
            // SQLite does not move a log into a file that lacks more than 64 KiB. Then the log keeps its frames.
            guard lostPages == 20 else { return try expectUnverified("Somebody else has written") }
            try replica.follow()
        }
    }

    /// Another mode, or a second name for a moment, makes the copy be compared, and nothing else.
    @Test func aReplicaThatIsOnlyTouched() throws {
        try replica.follow()
        replica.close()
        try replica.follow()
        #expect(chmod(replica.path, 0o640) == 0)
        try commitAndFollow()
        #expect(try replica.check(verifies: true) == 2)
        #expect(chmod(replica.path, 0o600) == 0)
        try commitAndFollow()
        #expect(replica.follower?.close() == nil)
        replica.kill()
        #expect(try replica.check(verifies: true) == 3)
    }

    /// The file is not only touched: its store has begun a generation, with which it is compared.
    @Test func aReplicaThatIsTouchedBeforeAGeneration() throws {
        try replica.follow()
        replica.close()
        try replica.follow()
        #expect(chmod(replica.path, 0o640) == 0)
        store.killShipper()
        #expect(store.database.executeStatements("PRAGMA wal_checkpoint(TRUNCATE)"))
        try store.commit()
        #expect(try store.ship().generation == 2)
        #expect(try replica.follow().renewedBecause == "log-unseen")
        #expect(try replica.check(verifies: true) == 2)
    }

    /// What the follower itself has moved there, as far as a reader allows, makes nobody read the repository again.
    @Test func aReaderThatKeepsALog() throws {
        try replica.follow()
        try commitAndFollow()
        try replica.beginReading()
        for _ in 0..<3 { try commitAndFollow(ReplicatedStore.rows(30, bytes: 3000)) }
        try replica.endReading()
        _ = replica.chunksRead()
        #expect(replica.follower?.close() == nil)
        #expect(replica.chunksRead().isEmpty)
        replica.kill()
        #expect(try replica.check(verifies: true) == 5)
    }

    @Test(arguments: ["-wal", "-shm"])
    func aPartOfTheReplicaThatWasRemoved(_ suffix: String) throws {
        try replica.follow()
        try commitAndFollow()
        #expect(unlink(replica.path + suffix) == 0)
        try store.commit()
        try replica.ship()
        for _ in 0..<2 { try expectUnverified("or the log's index, was removed") }
        #expect(replica.follower?.close()?.reason == .unverified)
        replica.kill()
        // The index is made anew from the log. What was in a log is applied again, to what the file holds.
        try replica.follow()
        #expect(try replica.check(verifies: true) == 3)
    }

    /// What is written in place would be in both.
    @Test(arguments: [false, true]) func secondNames(isOwnFile: Bool) throws {
        try replica.follow()
        replica.close()
        let path = isOwnFile ? FollowerFile.path(of: replica.path) : replica.path
        let other = store.directory.file("other")
        #expect(link(path, other) == 0)
        let bytes = try store.directory.bytes("other")
        let error = #expect(throws: DatabaseError.self) { try replica.follow() }
        #expect(error?.reason == .hardLinked && error?.message.contains("2 hard links") == true, "\(error as Any)")
        replica.kill()
        #expect(try store.directory.bytes("other") == bytes)
        #expect(unlink(other) == 0)
        try commitAndFollow()
        #expect(try replica.check() == 2)
    }
}
