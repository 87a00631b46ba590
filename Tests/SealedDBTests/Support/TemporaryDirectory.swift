import Foundation
import SealedDB

/// A directory of one test's own, removed with it.
final class TemporaryDirectory {
    let path: String

    init() throws {
        path = NSTemporaryDirectory() + "sealeddb-" + UUID().uuidString
        try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: false)
    }

    deinit {
        try? FileManager.default.removeItem(atPath: path)
    }

    func file(_ name: String) -> String { path + "/" + name }

    var names: [String] { ((try? FileManager.default.contentsOfDirectory(atPath: path)) ?? []).sorted() }

    /// Without what open stores are locked by.
    var namesOfFiles: [String] { names.filter { !$0.hasSuffix("-sealdb-lock") } }

    /// A file for its owner alone, unless another mode is given; its path.
    @discardableResult
    func write(_ name: String, _ bytes: some Collection<UInt8>, mode: mode_t = 0o600) throws -> String {
        try? FileManager.default.removeItem(atPath: file(name))
        try FileHandle.closedToChildren(file(name), O_WRONLY | O_CREAT | O_TRUNC).write(contentsOf: Data(bytes))
        guard chmod(file(name), mode) == 0 else { throw CocoaError(.fileWriteUnknown) }
        return file(name)
    }

    func bytes(_ name: String) throws -> Data {
        try FileHandle.closedToChildren(file(name), O_RDONLY).readToEnd() ?? Data()
    }

    /// Leaves the files as a process does that is killed now.
    func keep(_ names: String..., of database: Database) throws {
        let files = try names.map { (name: $0, bytes: try bytes($0)) }
        database.close()
        for file in files { try write(file.name, file.bytes) }
    }
}

let isEncrypting = EngineInfo.current().isEncrypting

extension Key {
    /// A raw key of 32 equal bytes.
    static func testing(_ byte: UInt8) throws -> Key {
        try [UInt8](repeating: byte, count: 32).withUnsafeBytes { bytes in try Key.raw(bytes) }
    }
}

extension Database {
    /// An open encrypted store; a plain one in the plain build. Its SQL may do what ``Configuration`` forbids by default:
    /// so odd stores are made.
    static func testing(
        _ path: String?,
        key byte: UInt8 = 1,
        settings: CipherSettings = CipherSettings(),
        journalMode: Configuration.JournalMode? = nil
    ) throws -> Database {
        var configuration = Configuration(key: isEncrypting ? try Key.testing(byte) : nil)
        configuration.cipherSettings = settings
        configuration.journalMode = journalMode
        configuration.isDefensive = false
        configuration.trustsSchema = true
        let database = Database(path: path, configuration: configuration)
        try database.openVerified()
        return database
    }

    func integers(_ sql: String) throws -> [Int] {
        let rows = try executeQuery(sql, values: nil)
        var result: [Int] = []
        while try rows.nextWithError() { result.append(rows.long(forColumnIndex: 0)) }
        return result
    }

    /// Table `t` with these many rows of some length.
    func fill(rows: Int) throws {
        try executeUpdate("CREATE TABLE IF NOT EXISTS t (id INTEGER PRIMARY KEY, body TEXT)", values: nil)
        try executeUpdate(
            """
            WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?)
            INSERT INTO t (body) SELECT 'secret row ' || i || hex(zeroblob(100)) FROM n
            """,
            values: [rows]
        )
    }
}
