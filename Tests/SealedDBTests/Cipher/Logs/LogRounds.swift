import Foundation
import Testing

@testable import SealedDB

/// A store of eight rows, each with a page of its own, and a log that begins anew where all of it is in the file.
final class LogRounds {
    static let frameSize = 24 + 4096
    let directory: TemporaryDirectory
    private let settings: CipherSettings
    private let database: Database

    init(_ settings: CipherSettings = CipherSettings()) throws {
        self.settings = settings
        directory = try TemporaryDirectory()
        database = try Database.testing(directory.file("service"), settings: settings, journalMode: .wal)
        try database.execute(
            script: """
                PRAGMA wal_autocheckpoint = 0; CREATE TABLE t (id INTEGER PRIMARY KEY, v, body);
                WITH n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 8)
                INSERT INTO t SELECT i, 0, randomblob(2500) FROM n;
                PRAGMA wal_checkpoint(TRUNCATE);
                """
        )
    }

    deinit { database.close() }

    /// Commits a transaction of a frame for each of the rows.
    func update(_ rows: ClosedRange<Int>, to value: Int) throws {
        try database.executeUpdate(
            "UPDATE t SET v = \(value) WHERE id BETWEEN \(rows.lowerBound) AND \(rows.upperBound)"
        )
    }

    /// Begins a transaction that changes rows one after the other, and does not end it. Most of its frames are in the log.
    func begin(_ rows: [Int], value: Int) throws {
        try database.spillChanges(pageCount: 2)
        try database.execute(script: "BEGIN")
        for row in rows {
            try database.executeUpdate("UPDATE t SET v = \(value), body = randomblob(2400) WHERE id = \(row)")
        }
    }

    func end(_ statement: String) throws {
        try database.execute(script: "\(raw: statement); PRAGMA cache_size = 2000")
    }

    /// Writes the log to the file. The next transaction begins it anew.
    func checkpoint() throws { _ = try database.checkpoint(.passive) }

    /// Writes the page of one frame of a log into a file.
    func checkpoint(ofFrame index: Int, _ log: [UInt8], to file: inout [UInt8]) throws {
        let frame = log.dropFirst(32 + index * LogRounds.frameSize).prefix(LogRounds.frameSize)
        let place = (Int(BigEndian.number(frame.prefix(4))) - 1) * 4096
        file.replaceSubrange(place..<place + 4096, with: frame.dropFirst(24))
    }

    var file: [UInt8] { get throws { try [UInt8](directory.bytes("service")) } }
    var log: [UInt8] { get throws { try [UInt8](directory.bytes("service-wal")) } }

    /// Makes a store of these, which nobody has open.
    func put(_ file: [UInt8], _ log: [UInt8]) throws {
        for name in ["db", "db-wal", "db-shm"] { unlink(directory.file(name)) }
        try directory.write("db", Data(file))
        try directory.write("db-wal", Data(log))
    }

    var path: String { directory.file("db") }

    func isSound() throws -> Bool { try IntegrityReport.verify(path: path, key: .testing(1), isDeep: true).isSound }

    func values() throws -> [Int?] {
        let database = try Database.testing(path)
        defer { database.close() }
        return try database.integers("SELECT v FROM t ORDER BY id")
    }

    func recovered(isComplete: Bool) throws -> [Int?] {
        let target = directory.file("new")
        let report = try StoreRecovery(path: path, key: .testing(1), cipherSettings: settings, to: target).run()
        #expect(report.isComplete == isComplete, "\(report.problems)")
        let saved = try Database.testing(target, settings: settings)
        defer { saved.close() }
        return try saved.integers("SELECT v FROM t ORDER BY id")
    }
}
