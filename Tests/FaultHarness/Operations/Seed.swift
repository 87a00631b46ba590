import Foundation
import RawStore

/// Databases for operations to begin with, made by SQLite's C interface.
struct Seed {
    /// By name: `db`, and its journal or log.
    let files: [String: Files.Bytes]
    let digest: UInt64

    /// The state in which the database lies there.
    enum Shape: String, CaseIterable {
        case delete
        case wal
        /// Its last transaction was cut short: the journal holds what it must be rolled back to.
        case deleteHot = "delete-hot"
        /// Its writer was killed: half of the rows are in the log alone.
        case walHot = "wal-hot"

        var isWAL: Bool { self == .wal || self == .walHot }
        var isHot: Bool { self == .deleteHot || self == .walHot }
    }

    /// What must not appear in any file that is encrypted.
    static let marker = "known plaintext"

    init(
        _ shape: Shape,
        key: TestKey?,
        pragmas: [String] = [],
        name: String = "db",
        rows: Int = 50,
        in directory: String
    ) throws {
        try Files.fill(directory, with: [:])
        let path = directory + "/" + name
        let connection = try RawConnection(path, key: key?.specification, pragmas: pragmas, creates: true)
        try connection.run("PRAGMA journal_mode = \(shape.isWAL ? "wal" : "delete")")
        try connection.run(
            """
            CREATE TABLE people (id INTEGER PRIMARY KEY, name TEXT, bio TEXT);
            CREATE TABLE log (batch INTEGER, part INTEGER, body TEXT);
            CREATE INDEX by_name ON people (name);
            PRAGMA user_version = 7;
            PRAGMA application_id = 1234;
            """
        )
        if shape == .walHot { try connection.run("PRAGMA wal_checkpoint(TRUNCATE); PRAGMA wal_autocheckpoint = 0") }
        for half in 0..<2 {
            try connection.run(
                """
                WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < \(rows / 2))
                INSERT INTO people SELECT \(half * (rows / 2)) + i, 'Person ' || i, '\(Seed.marker) ' || hex(zeroblob(200)) FROM n
                """
            )
            if half == 0 && shape == .walHot { try connection.run("PRAGMA wal_checkpoint(PASSIVE)") }
        }
        digest = try Contents(of: connection).digest
        switch shape {
        case .delete, .wal:
            connection.close()
        case .deleteHot:
            // A cache of one page writes the others into the file before the commit.
            try connection.run("PRAGMA cache_size = 1; BEGIN; UPDATE people SET bio = upper(bio) || id")
        case .walHot:
            break
        }
        files = try Files.contents(of: directory).filter { !$0.key.hasSuffix("-shm") }
        let hotFile: String? =
            switch shape {
            case .deleteHot: name + "-journal"
            case .walHot: name + "-wal"
            case .delete, .wal: nil
            }
        if let hotFile, files[hotFile]?.isEmpty ?? true { throw HarnessError("The seed \(shape.rawValue) is not hot.") }
        connection.close()
    }

    /// What a database of this seed holds once the SQL has run on it.
    func digest(after sql: String, key: TestKey?, in directory: String) throws -> UInt64 {
        try Files.fill(directory, with: files)
        let connection = try RawConnection(directory + "/db", key: key?.specification)
        defer { connection.close() }
        try connection.run(sql)
        return try Contents(of: connection).digest
    }
}
