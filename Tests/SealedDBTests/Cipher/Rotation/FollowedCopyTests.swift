import Foundation
import Testing

@testable import SealedDB

/// Copies that follow the write-ahead log of a store while others write to it.
@Suite(.hangLimit, .enabled(if: isEncrypting, "needs a codec"))
struct FollowedCopyTests {
    private let directory: TemporaryDirectory

    init() throws {
        directory = try TemporaryDirectory()
    }

    private func store() throws -> Database {
        let db = try Database.testing(directory.file("db"), journalMode: .wal)
        try db.executeUpdate("CREATE TABLE IF NOT EXISTS t (id INTEGER PRIMARY KEY, body TEXT)", values: nil)
        // Checkpoints are made where the test has them.
        #expect(db.executeStatements("PRAGMA wal_autocheckpoint = 0"))
        return db
    }

    private func followedCopy(of db: Database) throws -> FollowedCopy {
        let copy = try #require(try db.liveCopy(for: .testing(2)) as? FollowedCopy)
        copy.pagesInRound = 16
        return copy
    }

    /// Whether each row and each page of the copy is that of the store, by new connections of SQLCipher.
    private func requireEqual(_ copy: any ServiceCopy, _ db: Database, _ what: String) throws {
        let opening = StoreOpening(path: copy.file.path, key: try .testing(2), createsFirstPage: false)
        let found = try opening.open()
        defer { found.close() }
        let connection = try #require(db.connection)
        #expect(try ContentDigest.of(found) == ContentDigest.of(connection), "\(what)")
        #expect(try found.texts("PRAGMA integrity_check") == ["ok"], "\(what)")
        #expect(
            try found.integer("PRAGMA page_count") == connection.integer("PRAGMA page_count"),
            "\(what)"
        )
        let scan = PageScan(connection: found, key: try .testing(2), settings: .init())
        #expect(try scan.damagedPages(ofFirst: .max) == [], "\(what)")
    }

    /// Random writes, checkpoints, and logs that begin anew, between the rounds.
    @Test(arguments: 1...12)
    func whatIsWrittenBetweenRoundsIsInTheCopy(seed: UInt64) throws {
        var random = SeededGenerator(seed: seed)
        let db = try store()
        #expect(db.executeStatements("PRAGMA auto_vacuum = \(raw: Int(seed % 3)); VACUUM"))
        try db.fill(rows: Int.random(in: 1...2000, using: &random))
        let other = try store()
        let copy = try followedCopy(of: db)
        defer { copy.discard() }
        for _ in 1...Int.random(in: 1...40, using: &random) {
            for _ in 0..<Int.random(in: 0...3, using: &random) {
                try write(Bool.random(using: &random) ? db : other, &random)
            }
            try copy.advance()
        }
        try write(other, &random)
        try copy.complete(#require(db.connection))
        #expect(try copy.isCurrent(), "seed \(seed)")
        try requireEqual(copy, db, "seed \(seed)")
    }

    private func write(_ db: Database, _ random: inout SeededGenerator) throws {
        switch Int.random(in: 0..<12, using: &random) {
        case 0...2: try db.fill(rows: Int.random(in: 1...300, using: &random))
        case 3, 4:
            try db.executeUpdate(
                "UPDATE t SET body = 'changed' || id WHERE id % 7 = \(Int.random(in: 0..<7, using: &random))"
            )
        case 5: try db.executeUpdate("DELETE FROM t WHERE id % 3 = \(Int.random(in: 0..<3, using: &random))")
        case 6: try db.executeUpdate("DELETE FROM t WHERE id > (SELECT max(id) / 4 FROM t)")
        case 7: try db.executeUpdate("VACUUM")
        case 8: try db.executeUpdate("INSERT INTO t (body) VALUES (hex(zeroblob(30000)))")
        case 9: checkpoint(db, .passive)
        case 10: checkpoint(db, .restart)
        default: checkpoint(db, .truncate)
        }
    }

    /// Does what it can without waiting for those who read.
    private func checkpoint(_ db: Database, _ mode: CheckpointMode) {
        db.connection?.setBusyTimeout(seconds: 0)
        _ = try? db.connection?.checkpoint(mode, schema: "main")
        db.connection?.setBusyTimeout(seconds: 2)
    }

    /// Writers and checkpoints on threads of their own. What is called current is equal.
    ///
    /// They get so much to do with each round of the copy, and no more: otherwise the log grows faster than a busy machine
    /// copies, and each round takes longer than the one before.
    @Test func noRaceIsLost() throws {
        let db = try store()
        try db.fill(rows: 1500)
        let stop = StopFlag()
        let failures = Guarded([String]())
        let group = DispatchGroup()
        let others = try (0..<3).map { _ in try store() }
        let permits = others.map { _ in DispatchSemaphore(value: 0) }
        func letThemWork() {
            for permit in permits { for _ in 0..<10 { permit.signal() } }
        }
        func copyNearly(_ copy: FollowedCopy) throws {
            while !copy.isNearlyComplete {
                letThemWork()
                try copy.advance()
            }
            letThemWork()
        }
        // Who makes checkpoints waits for nobody.
        others[2].connection?.setBusyTimeout(seconds: 0)
        for (index, other) in others.enumerated() {
            // Only its thread uses it, and it is closed when that has ended.
            nonisolated(unsafe) let other = other
            group.enter()
            Thread.detachNewThread {
                defer { group.leave() }
                var number = 0
                while true {
                    permits[index].wait()
                    if stop.isSet { break }
                    number += 1
                    do {
                        try FollowedCopyTests.disturb(other, index, number)
                    } catch let error as DatabaseError where error.reason == .busy {
                        // It was not done.
                    } catch {
                        failures.withLock { $0.append("\(error)") }
                    }
                }
            }
        }
        for _ in 1...6 {
            let copy = try followedCopy(of: db)
            try copyNearly(copy)
            // Beside the writers it is hardly ever current, and must not be called so.
            db.connection?.setBusyTimeout(seconds: 0)
            try copy.complete(#require(db.connection))
            copy.discard()
        }
        let copy = try followedCopy(of: db)
        defer { copy.discard() }
        try copyNearly(copy)
        stop.set()
        letThemWork()
        group.wait()
        for other in others { #expect(other.close()) }
        #expect(failures.withLock { $0 } == [])
        try copy.complete(#require(db.connection))
        #expect(try copy.isCurrent())
        try requireEqual(copy, db, "complete")
    }

    private static func disturb(_ db: Database, _ index: Int, _ number: Int) throws {
        guard index < 2 else {
            _ = try db.connection?.checkpoint(
                number % 3 == 0 ? .truncate : number % 3 == 1 ? .restart : .passive,
                schema: "main"
            )
            return
        }
        try db.executeUpdate("INSERT INTO t (body) VALUES (\(index) || ' of ' || \(number))")
        try db.executeUpdate("UPDATE t SET body = body || '.' WHERE id % 50 = \(number % 50)")
        if number % 20 == 0 { try db.executeUpdate("DELETE FROM t WHERE id > 1800") }
    }

    @Test func whatSomebodyWritesToTheCopyIsNotTrusted() throws {
        let db = try store()
        try db.fill(rows: 1000)
        let copy = try followedCopy(of: db)
        defer { copy.discard() }
        try copy.advance()
        let file = try FileHandle(forWritingTo: URL(fileURLWithPath: copy.file.path))
        try file.seek(toOffset: 5000)
        try file.write(contentsOf: Data([1, 2, 3]))
        try file.close()
        let error = #expect(throws: DatabaseError.self) { try copy.complete(#require(db.connection)) }
        #expect(error?.reason == .unverified)
    }

    /// Whose index and log do not fit is not copied.
    @Test func aPageThatIsDamagedInTheLogEndsIt() throws {
        let db = try store()
        try db.fill(rows: 1000)
        let log = directory.file("db-wal")
        let copy = try followedCopy(of: db)
        defer { copy.discard() }
        let file = try FileHandle(forUpdating: URL(fileURLWithPath: log))
        try file.seek(toOffset: 32 + 24 + 100)
        try file.write(contentsOf: Data([1, 2, 3]))
        try file.close()
        let error = #expect(throws: DatabaseError.self) {
            while !copy.isNearlyComplete { try copy.advance() }
            try copy.complete(#require(db.connection))
        }
        #expect(error?.reason == .damaged, "\(String(describing: error))")
    }

    /// As by another process, after the last snapshot.
    @Test(arguments: [false, true])
    func whatIsCommittedAtTheLastMomentIsSeen(isChecked: Bool) throws {
        let db = try store()
        try db.fill(rows: 300)
        let other = try store()
        let copy = try followedCopy(of: db)
        defer { copy.discard() }
        while !copy.isNearlyComplete { try copy.advance() }
        try db.executeUpdate("UPDATE t SET body = 'x' WHERE id = 1")
        var told = 0
        try copy.complete(#require(db.connection)) { _ in
            told += 1
            try other.executeUpdate("UPDATE t SET body = 'late' WHERE id = 2")
            if isChecked { checkpoint(other, .passive) }
        }
        #expect(told == 1)
        #expect(try !copy.isCurrent())
    }

    /// The log of a long copy is not as long as all that was written meanwhile.
    @Test func theLogBeginsAnew() throws {
        let db = try store()
        try db.fill(rows: 300)
        try db.executeUpdate("UPDATE t SET body = hex(zeroblob(2000000)) WHERE id = 300")
        let copy = try followedCopy(of: db)
        defer { copy.discard() }
        // So that the end, before which the log is moved too, does not come.
        copy.pagesInRound = 1
        let connection = try #require(db.connection)
        func logSize() throws -> Int64 { Int64(try FileSystem.status(directory.file("db-wal")).st_size) }
        var longest: Int64 = 0
        for step in 1...60 {
            try db.executeUpdate("UPDATE t SET body = hex(zeroblob(500000)) WHERE id = \(step)")
            try copy.advance()
            if copy.needsRelief { try copy.relieveLog(connection) }
            longest = max(longest, try logSize())
        }
        #expect(longest < 8 << 20, "60 MB were written.")
        #expect(longest > 4 << 20)
        try copy.complete(connection)
        #expect(try copy.isCurrent())
        try requireEqual(copy, db, "complete")
    }

    /// So that the last checkpoint, for which all wait, is short, also if a key was confirmed for long before it.
    @Test func theLogIsMovedBeforeTheEnd() throws {
        let db = try store()
        try db.fill(rows: 300)
        let connection = try #require(db.connection)
        let copy = try followedCopy(of: db)
        defer { copy.discard() }
        while !copy.isNearlyComplete { try copy.advance() }
        for step in 1...2 {
            #expect(copy.needsRelief)
            try copy.relieveLog(connection)
            #expect(!copy.needsRelief)
            try db.executeUpdate("UPDATE t SET body = 'x' WHERE id = \(step)")
            try copy.advance()
        }
        try copy.complete(connection)
        #expect(try copy.isCurrent())
        try requireEqual(copy, db, "complete")
    }

    /// Others commit to the same disk: of the eight parts that it is given, each from the third on waits for one.
    @Test func theDiskIsNotGivenTooMuchAtOnce() throws {
        let db = try store()
        try db.execute(script: "INSERT INTO t (body) VALUES (zeroblob(9000000))")
        let watch = CallWatch(directory.path)
        let copy = try followedCopy(of: db)
        defer { copy.discard() }
        copy.pagesInRound = 4096
        while !copy.isNearlyComplete { try copy.advance() }
        let calls = watch.endWithAll().filter { $0.hasPrefix("sync_file_range") }
        #expect(calls.count == 1 + 8 + 6)
    }

    /// A log that is gone has no index, and none is made.
    @Test func aStoreThatLeavesWALModeIsNotFollowed() throws {
        let db = try store()
        try db.fill(rows: 300)
        let copy = try followedCopy(of: db)
        defer { copy.discard() }
        #expect(try db.connection?.text("PRAGMA journal_mode = DELETE") == "delete")
        let error = #expect(throws: DatabaseError.self) { try copy.advance() }
        #expect(error?.reason == .busy)
        #expect(!directory.names.contains("db-shm"))
    }

    @Test func aStoreThatWasReplacedIsNotCurrent() throws {
        let db = try store()
        try db.fill(rows: 100)
        let copy = try followedCopy(of: db)
        defer { copy.discard() }
        while !copy.isNearlyComplete { try copy.advance() }
        try FileManager.default.moveItem(atPath: directory.file("db"), toPath: directory.file("moved"))
        try FileManager.default.copyItem(atPath: directory.file("moved"), toPath: directory.file("db"))
        // The log of the moved store is not that of the other file.
        try copy.complete(#require(db.connection))
        #expect(try !copy.isCurrent())
    }

    /// Nothing is copied while others wait, but what was changed last.
    @Test func onlyTheLastChangesAreCopiedInTheEnd() throws {
        let pool = DatabasePool(path: directory.file("db"), configuration: Configuration(key: try .testing(1)))
        try pool.write { db in try db.fill(rows: 20_000) }
        var copied = false
        var phases: Set<KeyRotation.Progress.Phase> = []
        try pool.rotateKey(to: .testing(2)) { state in
            phases.insert(state.phase)
            if state.phase != .copy { copied = true }
            #expect(state.phase != .copy || !copied, "It was not copied anew.")
        }
        #expect(phases == [.copy, .verify, .sync, .swap])
    }

    /// A writer that is faster has to wait in the end.
    @Test func itEndsBesideAWriterThatChangesAllPages() throws {
        let db = try store()
        try db.fill(rows: 3000)
        let copy = try followedCopy(of: db)
        defer { copy.discard() }
        var rounds = 0
        while !copy.isNearlyComplete {
            try db.executeUpdate("UPDATE t SET body = body || 'x'")
            try copy.advance()
            rounds += 1
        }
        #expect(rounds < 200)
        try copy.complete(#require(db.connection))
        #expect(try copy.isCurrent())
        try requireEqual(copy, db, "complete")
    }

    /// Each round copies as many pages as it should, and tells it now and then.
    @Test func whatIsToldOfTheRounds() throws {
        let db = try store()
        try db.fill(rows: 3000)
        let total = Int64(try db.integers("PRAGMA page_count")[0])
        try #require(total > 150)
        let copy = try followedCopy(of: db)
        defer { copy.discard() }
        #expect(copy.progress.completedPages == 0 && copy.progress.totalPages == total)
        var told: [KeyRotation.Progress] = []
        for round in 1...9 as ClosedRange<Int64> {
            try copy.advance { told.append($0) }
            let state = copy.progress
            #expect(state.phase == .copy && state.pageSize == 4096)
            #expect(state.completedPages == 16 * round && state.totalPages == total)
            let share = copy.share * Double(16 * round) / Double(total)
            #expect(abs(state.fractionCompleted - share) < 1e-9, "\(state)")
            #expect(told.map(\.completedPages) == [64, 128].filter { $0 <= 16 * round })
        }
        // Some of the copied pages have to be copied again, but nobody is told less than before.
        try db.executeUpdate("UPDATE t SET body = 'x' WHERE id < 50")
        try copy.advance()
        #expect(copy.progress.completedPages >= 144)
        while !copy.isNearlyComplete { try copy.advance() }
        var last: KeyRotation.Progress?
        try copy.complete(#require(db.connection)) { last = $0 }
        #expect(try copy.isCurrent())
        #expect(last?.phase == .verify && last?.completedPages == total && last?.totalPages == total)
    }

    /// One that SQLite makes, of a store without a log.
    @Test func whatIsToldOfTheSteps() throws {
        let db = try Database.testing(directory.file("db"), journalMode: .delete)
        defer { db.close() }
        try db.fill(rows: 9000)
        let total = Int64(try db.integers("PRAGMA page_count")[0])
        try #require(total > 400)
        let copy = try #require(try db.liveCopy(for: .testing(2)) as? LiveCopy)
        defer { copy.discard() }
        for step in 0...2 as ClosedRange<Int64> {
            let state = copy.progress
            #expect(state.phase == .copy && state.pageSize == 4096)
            #expect(state.completedPages == 64 * step && state.totalPages == total)
            #expect(abs(state.fractionCompleted - copy.share * Double(64 * step) / Double(total)) < 1e-9, "\(state)")
            #expect(!copy.isNearlyComplete && !copy.isLost)
            try copy.advance()
        }
        while !copy.isNearlyComplete { try copy.advance() }
        // Four steps are left, or fewer. More had been too many to make others wait for.
        let left = copy.progress.totalPages - copy.progress.completedPages
        #expect(left <= 256 && left > 256 - 64)
        #expect(db.close())
        #expect(copy.isLost)
    }

    // MARK: The log

    /// Two connections that read in turns, and one that writes.
    private struct Watch {
        let writer: Connection
        var readers: [Connection]
        var follower: LogFollower

        init(_ path: String) throws {
            let opening = try StoreOpening.existing(path, key: .testing(1), settings: .init())
            writer = try opening.open()
            try writer.run("PRAGMA wal_autocheckpoint = 0")
            readers = try [opening.open(), opening.open()]
            follower = LogFollower(path: path, pageSize: 4096)
            _ = try look(overlapping: false)
        }

        /// - Parameter isOverlapping: whether the transaction of the last look ends after the next has begun, as it should.
        mutating func look(overlapping isOverlapping: Bool = true) throws -> Set<Int64>? {
            if !isOverlapping { for reader in readers where reader.hasTransaction { try reader.run("ROLLBACK") } }
            readers.reverse()
            try readers[0].run("BEGIN")
            _ = try readers[0].integer("SELECT count(*) FROM sqlite_schema")
            let position = try readers[0].logPosition()
            let changed = try follower.move(to: #require(position))
            if isOverlapping { try readers[1].run("ROLLBACK") }
            return changed
        }

        func close() { for connection in readers + [writer] { connection.close() } }
    }

    @Test func changesAreTold() throws {
        let db = try store()
        try db.fill(rows: 200)
        db.close()
        var watch = try Watch(directory.file("db"))
        defer { watch.close() }
        #expect(try watch.look() == [])
        try watch.writer.run("UPDATE t SET body = 'x' WHERE id = 1")
        let first = try #require(try watch.look())
        #expect(first.count == 1)
        // The log begins anew once.
        _ = try watch.writer.checkpoint(.passive, schema: "main")
        #expect(try watch.look() == [])
        try watch.writer.run("UPDATE t SET body = 'y' WHERE id = 1")
        #expect(try watch.look() == first)
        #expect(try watch.look() == [])
    }

    /// Whoever has not looked in time is told so, and not that nothing has changed.
    @Test func changesThatWereMissedAreTold() throws {
        let db = try store()
        try db.fill(rows: 200)
        db.close()
        var watch = try Watch(directory.file("db"))
        defer { watch.close() }
        _ = try watch.writer.checkpoint(.passive, schema: "main")
        #expect(try watch.look() == [])
        for reader in watch.readers where reader.hasTransaction { try reader.run("ROLLBACK") }
        for text in ["a", "b", "c"] {
            try watch.writer.run("UPDATE t SET body = '\(text)' WHERE id % 5 = 0")
            _ = try watch.writer.checkpoint(.truncate, schema: "main")
        }
        try watch.writer.run("UPDATE t SET body = 'd' WHERE id = 1")
        #expect(try watch.look(overlapping: false) == nil)
        #expect(try watch.look() == [])
    }
}
