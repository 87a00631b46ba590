import CSealedDBSystem
import Foundation
import Testing

@testable import SealedDB

/// What queues and pools do while the copy of a rotation is being made.
///
/// The progress closure runs between two turns of the rotation, on its thread: what a block does there, it does in the
/// middle of the copy, and it could not even begin if the rotation kept others waiting.
@Suite(.hangLimit, .enabled(if: isEncrypting, "needs a codec"))
struct LiveRotationTests {
    private let directory: TemporaryDirectory

    init() throws {
        directory = try TemporaryDirectory()
    }

    private func configuration(key: UInt8, _ mode: Configuration.JournalMode = .wal) throws -> Configuration {
        var configuration = Configuration(key: try .testing(key))
        configuration.journalMode = mode
        configuration.cacheSize = 200
        return configuration
    }

    private func pool(key: UInt8 = 1, _ mode: Configuration.JournalMode = .wal) throws -> DatabasePool {
        DatabasePool(path: directory.file("db"), configuration: try configuration(key: key, mode))
    }

    private func queue(key: UInt8 = 1, _ mode: Configuration.JournalMode = .wal) throws -> DatabaseQueue {
        try DatabaseQueue(path: directory.file("db"), configuration: configuration(key: key, mode))
    }

    /// What the store has, as the stock shell sees it, which knows nothing of this library.
    private func bodies(key: UInt8) throws -> [String] {
        try StockShell.run(
            directory.file("db"),
            "PRAGMA key = \"x'\(String(repeating: Hexadecimal.string([key]), count: 32))'\";\nSELECT id, body FROM t ORDER BY id;"
        )
    }

    private func dump(_ db: Database) throws -> [String] {
        try db.executeQuery("SELECT id, body FROM t ORDER BY id").all((Int, String).self).map { "\($0.0)|\($0.1)" }
    }

    private func requireOnlyTheStore() {
        #expect(directory.names.filter { !$0.hasPrefix("db") } == [])
    }

    /// As one does at whose end a failure is found that nobody had noticed.
    @Test func aTurnThatFailsAtItsEndLeavesNoCopy() throws {
        struct Late: Error {}
        let queue = try queue()
        try queue.write { db in try db.fill(rows: 100) }
        var turns = 0
        let rotation = ServiceRotation(newKey: try .testing(2), progress: nil) { body in
            turns += 1
            try queue.writeWithoutTransaction(body)
            // The first one asks for the path.
            if turns == 2 { throw Late() }
        } alone: { _ in
            throw Late()
        }
        #expect(throws: Late.self) { try rotation.run() }
        #expect(turns == 2)
        requireOnlyTheStore()
        try queue.rotateKey(to: .testing(2))
    }

    /// The system takes long to free a large file, so callers must not wait for it, and others only for a piece.
    @Test(arguments: [Configuration.JournalMode.wal, .delete])
    func theOldFileIsFreedWhenNobodyWaits(mode: Configuration.JournalMode) throws {
        let queue = try queue(mode)
        try queue.write { db in
            try db.fill(rows: 5000)
            try db.execute(script: "CREATE TABLE large AS SELECT zeroblob(\(ReplacedFile.bytesOfPiece)) AS body")
        }
        try queue.checkpoint(.truncate)
        let old = try FileSystem.status(directory.file("db"))
        var reference: Int32 = -1
        defer { close(reference) }
        let rotation = ServiceRotation(newKey: try .testing(2), progress: nil) { body in
            try queue.writeWithoutTransaction(body)
        } alone: { body in
            try queue.writeWithoutTransaction { db in
                // The queue's connection is closed and opened within the turn, as in a rotation of a queue.
                let report = try body(db)
                let kept = try descriptors(of: old)
                #expect(kept.count == 1)
                reference = sealeddb_keep_file(try #require(kept.first))
                return report
            }
        }
        _ = try rotation.run()
        #expect(try !FileSystem.status(directory.file("db")).isSameFile(as: old))
        #expect(try descriptors(of: old) == [reference])
        var status = stat()
        try #require(fstat(reference, &status) == 0)
        #expect(old.st_size > ReplacedFile.bytesOfPiece)
        #expect(status.st_size == (try isTold() ? off_t(ReplacedFile.bytesOfPiece) : old.st_size))
        queue.close()
        #expect(try bodies(key: 2).count == 5000)
        requireOnlyTheStore()
    }

    private func descriptors(of file: stat) throws -> [Int32] {
        try FileSystem.ownDescriptors(of: file, directory.file("db"))
    }

    /// Whether the file system tells who has a file open.
    private func isTold() throws -> Bool {
        let path = directory.file("question")
        let descriptor = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
        try #require(descriptor >= 0)
        defer {
            close(descriptor)
            unlink(path)
        }
        return sealeddb_is_only_descriptor(descriptor) >= 0
    }

    // MARK: Writes of the connection that is copied

    @Test(arguments: [Configuration.JournalMode.wal, .delete])
    func aPoolReadsAndWritesMeanwhile(mode: Configuration.JournalMode) throws {
        let pool = try pool(mode)
        try pool.write { db in try db.fill(rows: 20_000) }
        var completed: [Int64] = []
        try pool.rotateKey(to: .testing(2)) { state in
            guard state.phase == .copy else { return }
            completed.append(state.completedPages)
            let step = completed.count
            try pool.write { db in
                try db.executeUpdate("UPDATE t SET body = 'changed in step ' || \(step) WHERE id = \(step)")
                try db.executeUpdate("UPDATE t SET body = 'changed late' WHERE id = \(20_000 - step)")
                try db.executeUpdate("INSERT INTO t (body) VALUES ('new in step ' || \(step))")
                try db.executeUpdate("DELETE FROM t WHERE id = \(5_000 - step)")
            }
            #expect(try pool.read { db in try db.executeQuery("SELECT count(*) FROM t").scalar(Int.self) } == 20_000)
        }
        #expect(completed.count > 10)
        #expect(completed == completed.sorted(), "Its own writes do not make the copy begin anew.")
        let expected = try pool.read(dump)
        #expect(expected.contains("1|changed in step 1") && expected.count == 20_000)
        pool.releaseAllDatabases()
        #expect(try bodies(key: 2) == expected)
        requireOnlyTheStore()
    }

    @Test func aQueueReadsAndWritesMeanwhile() throws {
        let queue = try queue()
        try queue.write { db in try db.fill(rows: 20_000) }
        var steps = 0
        try queue.rotateKey(to: .testing(2)) { state in
            guard state.phase == .copy else { return }
            steps += 1
            try queue.inTransaction { db in try db.executeUpdate("UPDATE t SET body = 'x' WHERE id = \(steps)") }
        }
        #expect(steps > 10)
        let expected = try queue.read(dump)
        queue.close()
        #expect(try bodies(key: 2) == expected)
    }

    /// Pages of a transaction that does not fit into the cache are written, and copied, before its end is known.
    @Test(arguments: [Configuration.JournalMode.wal, .delete])
    func whatIsRolledBackIsNotInTheCopy(mode: Configuration.JournalMode) throws {
        struct Undo: Error {}
        let pool = try pool(mode)
        try pool.write { db in try db.fill(rows: 20_000) }
        var steps = 0
        try pool.rotateKey(to: .testing(2)) { state in
            guard state.phase == .copy else { return }
            steps += 1
            if steps == 4 {
                #expect(throws: Undo.self) {
                    try pool.write { db in
                        try db.executeUpdate("UPDATE t SET body = 'undone'")
                        throw Undo()
                    }
                }
            } else if steps == 8 {
                try pool.write { db in
                    try db.startSavePoint(withName: "s")
                    try db.executeUpdate("UPDATE t SET body = 'undone'")
                    try db.rollbackToSavePoint(withName: "s")
                    try db.executeUpdate("UPDATE t SET body = 'kept' WHERE id % 2 = 0")
                }
            }
        }
        #expect(steps > 8)
        let expected = try pool.read(dump)
        #expect(expected.count { $0.hasSuffix("|kept") } == 10_000 && !expected.contains { $0.hasSuffix("undone") })
        pool.releaseAllDatabases()
        #expect(try bodies(key: 2) == expected)
    }

    @Test func aStoreThatShrinksIsCopied() throws {
        let queue = try queue()
        try queue.write { db in try db.fill(rows: 20_000) }
        var steps = 0
        try queue.rotateKey(to: .testing(2)) { state in
            guard state.phase == .copy else { return }
            steps += 1
            guard steps == 5 else { return }
            try queue.write { db in try db.executeUpdate("DELETE FROM t WHERE id > 100") }
            try queue.inDatabase { db in try db.executeUpdate("VACUUM") }
        }
        queue.close()
        #expect(try bodies(key: 2).count == 100)
        #expect(try FileSystem.status(directory.file("db")).st_size < 100_000)
    }

    // MARK: Writes of others

    /// FMDB's calls have connections of their own.
    @Test(arguments: [Configuration.JournalMode.wal, .delete])
    func writesOfOtherConnectionsReachTheCopy(mode: Configuration.JournalMode) throws {
        let pool = try pool(mode)
        try pool.write { db in try db.fill(rows: 20_000) }
        var completed: [Int64] = []
        try pool.rotateKey(to: .testing(2)) { state in
            guard state.phase == .copy else { return }
            completed.append(state.completedPages)
            guard completed.count % 3 == 0 else { return }
            pool.inTransaction { db, _ in
                #expect(throws: Never.self) { try db.executeUpdate("INSERT INTO t (body) VALUES ('of another')") }
            }
        }
        #expect((completed == completed.sorted()) == (mode == .wal), "Without a log the copy begins anew.")
        let expected = try pool.read(dump)
        #expect(expected.count { $0.hasSuffix("of another") } == completed.count / 3)
        pool.releaseAllDatabases()
        #expect(try bodies(key: 2) == expected)
    }

    /// Whoever writes more than is copied between two steps cannot keep the rotation from its end.
    @Test func aFastWriterDoesNotKeepItFromEnding() throws {
        let queue = try queue()
        try queue.write { db in try db.fill(rows: 2_000) }
        var steps = 0
        try queue.rotateKey(to: .testing(2)) { state in
            guard state.phase == .copy else { return }
            steps += 1
            try queue.write { db in try db.fill(rows: 1_000) }
        }
        #expect(
            try queue.read { db in try db.executeQuery("SELECT count(*) FROM t").scalar(Int.self) } == 2_000 + 1_000
                * steps
        )
        queue.close()
        #expect(try bodies(key: 2).count == 2_000 + 1_000 * steps)
    }

    /// A program without this library's lock may write between the end of the copy and the lock for the swap.
    @Test(arguments: [Configuration.JournalMode.wal, .delete], [true, false])
    func whatAnOutsiderWritesAfterwardsIsNotLost(mode: Configuration.JournalMode, writes: Bool) throws {
        let path = directory.file("db")
        let db = Database(path: path, configuration: try configuration(key: 1, mode))
        try db.openVerified()
        try db.fill(rows: 3_000)
        let copy = try db.liveCopy(for: .testing(2))
        while !copy.isNearlyComplete { try copy.advance() }
        try copy.complete(#require(db.connection))
        let inode = try FileSystem.status(copy.file.path).st_ino
        #expect(db.close())
        if writes {
            let key = "PRAGMA key = \"x'\(String(repeating: "01", count: 32))'\";\n"
            try StockShell.run(path, key + "INSERT INTO t (body) VALUES ('of an outsider');")
        }
        var phases: [KeyRotation.Progress.Phase] = []
        let rotation = KeyRotation(path: path, from: try .testing(1), to: try .testing(2))
        _ = try rotation.run(with: copy) { phases.append($0.phase) }
        #expect(try bodies(key: 2).last?.hasSuffix("|of an outsider") == writes)
        #expect(phases.contains(.copy) == writes, "Without a write the copy is used as it is.")
        #expect(try (FileSystem.status(path).st_ino == inode) != writes)
        requireOnlyTheStore()
    }

    @Test func anotherProcessIsNamedBeforeAnythingIsCopied() throws {
        let queue = try queue()
        try queue.write { db in try db.fill(rows: 3_000) }
        let shell = Process()
        let (input, output) = (Pipe(), Pipe())
        shell.executableURL = URL(fileURLWithPath: "/usr/bin/env")
        shell.arguments = ["sqlcipher", "-batch", directory.file("db")]
        (shell.standardInput, shell.standardOutput) = (input, output)
        try shell.run()
        let limit = ChildLimit(of: shell.processIdentifier, named: "sqlcipher")
        defer { limit.end() }
        let sql = "PRAGMA key = \"x'\(String(repeating: "01", count: 32))'\";\nSELECT count(*) FROM t;\n"
        try input.fileHandleForWriting.write(contentsOf: Data(sql.utf8))
        var answer = ""
        while !answer.contains("3000") {
            let some = output.fileHandleForReading.availableData
            try #require(!some.isEmpty, "The shell has ended: \(answer)")
            answer += String(decoding: some, as: UTF8.self)
        }
        var phases: [KeyRotation.Progress.Phase] = []
        let error = #expect(throws: DatabaseError.self) {
            try queue.rotateKey(to: .testing(2)) { phases.append($0.phase) }
        }
        #expect(
            error?.reason == .busy && error?.message.contains("process \(shell.processIdentifier) (sqlcipher)") == true
        )
        #expect(phases == [])
        try input.fileHandleForWriting.close()
        shell.waitUntilExit()
        try queue.write { db in try db.fill(rows: 1) }
        try queue.rotateKey(to: .testing(2))
        queue.close()
        #expect(try bodies(key: 2).count == 3_001)
    }

    // MARK: Interruptions

    /// Without a log, closing ends the copy: it is begun anew, and if that never succeeds, made with callers waiting.
    @Test(arguments: [Configuration.JournalMode.wal, .delete], [1, 2, 100])
    func aConnectionThatIsClosedMeanwhileIsNoObstacle(mode: Configuration.JournalMode, times: Int) throws {
        let queue = try queue(mode)
        try queue.write { db in try db.fill(rows: 5_000) }
        var closed = 0
        try queue.rotateKey(to: .testing(2)) { state in
            guard state.phase == .copy, state.completedPages > 0, closed < times, !queue.isInsideBlock else { return }
            closed += 1
            queue.close()
            try queue.write { db in try db.executeUpdate("INSERT INTO t (body) VALUES ('afterwards')") }
        }
        #expect(mode == .wal ? closed > 0 && closed <= times : closed == min(times, 3))
        queue.close()
        #expect(try bodies(key: 2).count == 5_000 + closed)
        requireOnlyTheStore()
    }

    @Test func aTransactionThatIsLeftOpenIsRolledBack() throws {
        let queue = try queue()
        try queue.write { db in try db.fill(rows: 5_000) }
        var told = 0
        try queue.rotateKey(to: .testing(2)) { _ in
            guard !queue.isInsideBlock else { return }
            let error = queue.inDatabase { db in
                #expect(db.beginTransaction())
                #expect(db.executeUpdate("INSERT INTO t (body) VALUES ('open')", withArgumentsIn: []))
            }
            if error != nil { told += 1 }
        }
        #expect(told > 0)
        queue.close()
        #expect(try bodies(key: 2).count == 5_000)
        requireOnlyTheStore()
    }

    @Test func aSecondRotationMeanwhileIsRefused() throws {
        let pool = try pool()
        try pool.write { db in try db.fill(rows: 10) }
        var refusal: DatabaseError?
        try pool.rotateKey(to: .testing(2)) { _ in
            refusal = #expect(throws: DatabaseError.self) { try pool.rotateKey(to: .testing(3)) }
        }
        #expect(refusal?.reason == .busy && refusal?.message.contains("already") == true)
        pool.releaseAllDatabases()
        #expect(try bodies(key: 2).count == 10)
    }
}
