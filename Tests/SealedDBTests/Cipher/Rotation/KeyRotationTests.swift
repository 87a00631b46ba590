import Foundation
import Testing

@testable import SealedDB

@Suite(.hangLimit, .enabled(if: isEncrypting, "needs a codec"))
struct KeyRotationTests {
    private let directory: TemporaryDirectory

    init() throws {
        directory = try TemporaryDirectory()
    }

    private func makeStore(_ mode: Configuration.JournalMode) throws {
        let database = try Database.testing(directory.file("db"), journalMode: mode)
        try database.fill(rows: 300)
        try database.executeUpdate("PRAGMA user_version = 77", values: nil)
        #expect(database.close())
    }

    private func rotation(to byte: UInt8 = 2) throws -> KeyRotation {
        KeyRotation(path: directory.file("db"), from: try .testing(1), to: try .testing(byte))
    }

    private func count(key byte: UInt8) throws -> [Int] {
        try Database.testing(directory.file("db"), key: byte).integers("SELECT count(*) FROM t")
    }

    @Test(arguments: [Configuration.JournalMode.delete, .wal, .truncate, .persist])
    func everyRowUnderTheNewKeyAlone(mode: Configuration.JournalMode) throws {
        try makeStore(mode)
        let plan = try rotation().plan()
        let report = try rotation().run()
        #expect(report.pageCount == plan.pageCount)
        #expect(throws: DatabaseError.self) { try count(key: 1) }
        #expect(try count(key: 2) == [300])
        let database = try Database.testing(directory.file("db"), key: 2)
        #expect(try database.integers("PRAGMA user_version") == [77])
        let rows = try database.executeQuery("PRAGMA journal_mode", values: nil)
        #expect(rows.next())
        // TRUNCATE and PERSIST belong to the connection; only WAL is in the file.
        #expect(rows.string(forColumnIndex: 0) == (mode == .wal ? "wal" : "delete"))
        rows.close()
        database.close()
        #expect(directory.names == ["db"])
        #expect(try IntegrityReport.verify(path: directory.file("db"), key: .testing(2)).isSound)
    }

    @Test func planWritesNothing() throws {
        try makeStore(.delete)
        let before = try directory.bytes("db")
        let plan = try rotation().plan()
        #expect(plan.fileSize == Int64(before.count))
        #expect(plan.neededSpace >= plan.fileSize)
        #expect(try directory.bytes("db") == before)
        #expect(directory.names == ["db"])
    }

    @Test func modeAndAttributesSurvive() throws {
        try makeStore(.delete)
        chmod(directory.file("db"), 0o640)
        try ExtendedAttribute.set("user.sealeddb", to: "kept", of: directory.file("db"))
        try rotation().run()
        var status = stat()
        stat(directory.file("db"), &status)
        #expect(status.st_mode & 0o7777 == 0o640)
        #expect(try ExtendedAttribute.value("user.sealeddb", of: directory.file("db")) == "kept")
    }

    @Test(.enabled(if: geteuid() == 0, "only root can give a file away"))
    func ownerSurvives() throws {
        try makeStore(.delete)
        #expect(chown(directory.file("db"), 65534, 65534) == 0)
        try rotation().run()
        var status = stat()
        stat(directory.file("db"), &status)
        #expect(status.st_uid == 65534)
        #expect(status.st_gid == 65534)
    }

    @Test func symbolicLinkIsFollowedAndKept() throws {
        try makeStore(.delete)
        symlink(directory.file("db"), directory.file("link"))
        let rotation = KeyRotation(path: directory.file("link"), from: try .testing(1), to: try .testing(2))
        try rotation.run()
        #expect(
            try FileManager.default.destinationOfSymbolicLink(atPath: directory.file("link")) == directory.file("db")
        )
        #expect(try count(key: 2) == [300])
    }

    @Test func refusalsLeaveTheStoreAlone() throws {
        try makeStore(.delete)
        let before = try directory.bytes("db")
        func reason(_ rotation: KeyRotation) -> DatabaseError.Reason? {
            do throws(DatabaseError) {
                try rotation.run()
                return nil
            } catch {
                return error.reason
            }
        }
        #expect(try reason(rotation(to: 1)) == .malformedKey)
        let path = directory.file("db")
        #expect(try reason(KeyRotation(path: path, from: .testing(9), to: .testing(2))) == .wrongKey)
        #expect(try reason(KeyRotation(path: path + "x", from: .testing(1), to: .testing(2))) == .noSuchFile)
        #expect(try reason(KeyRotation(path: directory.path, from: .testing(1), to: .testing(2))) == .notRegularFile)
        link(path, directory.file("second"))
        #expect(try reason(rotation()) == .hardLinked)
        unlink(directory.file("second"))
        // A backup by links, while it is copied.
        let error = #expect(throws: DatabaseError.self) {
            try rotation().run { if $0.phase == .swap { link(path, directory.file("second")) } }
        }
        #expect(error?.reason == .hardLinked)
        unlink(directory.file("second"))

        for mode in [Configuration.JournalMode.delete, .wal] {
            let other = try Database.testing(path, journalMode: mode)
            if mode == .delete { other.beginImmediateTransaction() }
            _ = try other.integers("SELECT count(*) FROM t")
            #expect(try reason(rotation()) == .busy)
            #expect(mode == .wal || other.rollback())
            // The one who was in the way goes on.
            try other.executeUpdate("UPDATE t SET body = body WHERE id = 1", values: nil)
            other.close()
        }
        #expect(try count(key: 1) == [300])
        #expect(directory.names == ["db"])
        #expect(before.count == (try directory.bytes("db").count))
    }

    @Test func leftoversOfKilledRotationsAreRemoved() throws {
        try makeStore(.delete)
        try Data([1]).write(to: URL(fileURLWithPath: try TemporaryFile.path(beside: directory.file("db"))))
        try rotation().run()
        #expect(directory.names == ["db"])
    }

    @Test func keyWithSaltIsFineForACopyAndRefusedInPlace() throws {
        try makeStore(.delete)
        let salted = try [UInt8](repeating: 5, count: 32).withUnsafeBytes { key in
            try [UInt8](repeating: 6, count: 16).withUnsafeBytes { salt in try Key.raw(key, salt: salt) }
        }
        let database = try Database.testing(directory.file("db"))
        #expect(!database.rekey("x'" + String(repeating: "05", count: 32) + String(repeating: "06", count: 16) + "'"))
        #expect(try database.integers("SELECT count(*) FROM t") == [300])
        try database.rotateKey(to: salted)
        #expect(try database.integers("SELECT count(*) FROM t") == [300])
        #expect(try directory.bytes("db").prefix(16) == Data(repeating: 6, count: 16))
    }

    @Test func openDatabaseRotatesAndGoesOn() throws {
        try makeStore(.wal)
        let database = try Database.testing(directory.file("db"))
        database.makeFunctionNamed("one", arguments: 0) { [unowned database] context, _, _ in
            database.resultInt(1, context: context)
        }
        database.beginImmediateTransaction()
        #expect(throws: DatabaseError.self) { try database.rotateKey(to: .testing(2)) }
        #expect(database.rollback())
        let rows = try database.executeQuery("SELECT * FROM t", values: nil)
        #expect(rows.next())
        try database.rotateKey(to: .testing(2))
        #expect(!rows.next())
        #expect(try database.integers("SELECT one() FROM t LIMIT 1") == [1])
        database.close()
        #expect(try count(key: 2) == [300])
        #expect(throws: DatabaseError.self) { try Database(path: nil).rotateKey(to: .testing(2)) }
    }

    @Test(arguments: [Configuration.JournalMode.delete, .wal])
    func rekeyInPlaceIsConfirmed(mode: Configuration.JournalMode) throws {
        try makeStore(mode)
        let database = try Database.testing(directory.file("db"))
        #expect(database.rekey("x'" + String(repeating: "03", count: 32) + "'"))
        #expect(try database.integers("SELECT count(*) FROM t") == [300])
        try database.executeUpdate("DELETE FROM t WHERE id = 1", values: nil)
        database.close()
        #expect(try count(key: 3) == [299])
        #expect(throws: DatabaseError.self) { try count(key: 1) }
    }

    @Test func rekeyNeverClaimsWhatDidNotHappen() throws {
        try makeStore(.delete)
        let database = try Database.testing(directory.file("db"))
        database.maxBusyRetryTimeInterval = 0
        let other = try Database.testing(directory.file("db"))
        #expect(other.beginImmediateTransaction())
        // sqlite3_rekey itself says OK here, and the next write would lose the file.
        #expect(!database.rekey("x'" + String(repeating: "03", count: 32) + "'"))
        #expect((database.lastError() as? DatabaseError)?.reason == .busy)
        #expect(other.rollback())
        other.close()
        try database.executeUpdate("DELETE FROM t WHERE id = 1", values: nil)
        database.close()
        #expect(try count(key: 1) == [299])
        let plain = Database(path: directory.file("plain"))
        plain.open()
        #expect(!plain.rekey("p"))
    }
}
