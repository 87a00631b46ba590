import Foundation
import Testing

@testable import SealedDB

/// A store with slots in a directory of its own.
final class SlotStore {
    let directory: TemporaryDirectory
    let path: String

    /// With slots `ops` of the key 1 and `safe` of the key 2, which is for recovery, and 20 rows.
    init(_ name: String = "app.db", slots: [KeySlots.NewSlot]? = nil) throws {
        directory = try TemporaryDirectory()
        path = directory.file(name)
        let slots =
            try slots ?? [
                .init(.key(.testing(1)), label: "ops"), .init(.key(.testing(2)), label: "safe", isRecovery: true),
            ]
        _ = try KeySlots.create(path: path, slots)
        let database = try open(.testing(1))
        try database.fill(rows: 20)
        database.close()
    }

    var files: [String] { [path + ".slots", path + ".slots.2"] }

    func slots(_ byte: UInt8 = 1, acceptsOlder: Bool = false) throws -> KeySlots {
        KeySlots(path: path, key: try .testing(byte), acceptsOlderSlots: acceptsOlder)
    }

    func open(_ key: Key) throws -> Database {
        var configuration = Configuration(key: key)
        configuration.createsFile = false
        let database = Database(path: path, configuration: configuration)
        try database.openVerified()
        return database
    }

    /// Executes SQL that is refused for what the store remembers of its slots.
    func tamper(_ statements: String..., by byte: UInt8 = 1) throws {
        let connection = try StoreOpening(path: path, key: .testing(byte)).open()
        defer { connection.close() }
        try connection.unguarded { () throws(DatabaseError) in for sql in statements { try connection.run(sql) } }
    }

    func count(_ key: Key) throws -> Int {
        let database = try open(key)
        defer { database.close() }
        return try database.integers("SELECT count(*) FROM t")[0]
    }

    func count(_ byte: UInt8 = 1) throws -> Int { try count(.testing(byte)) }

    /// The reason why the store does not open.
    func refusal(_ key: Key) throws -> DatabaseError {
        try #require(throws: DatabaseError.self) { try self.count(key) }
    }

    func bytes(_ file: Int = 0) throws -> [UInt8] { Array(try Data(contentsOf: URL(fileURLWithPath: files[file]))) }

    func write(_ bytes: [UInt8], to numbers: [Int] = [0, 1]) throws {
        for number in numbers { try Data(bytes).write(to: URL(fileURLWithPath: files[number])) }
    }

    func write(_ text: String) throws { try write(Array(text.utf8)) }

    var text: String { get throws { String(decoding: try bytes(), as: UTF8.self) } }

    /// The data key in hex digits.
    func dataKey() throws -> String {
        let connection = try Connection(path: path, flags: SQLITE_OPEN_READONLY)
        defer { connection.close() }
        let opened = try SlotFiles(store: path).open(with: .testing(1), salt: connection.mainFileHeader())
        return try opened.secret.withBytes { bytes throws(DatabaseError) in Hexadecimal.string(bytes) }
    }
}

extension KeySlots.NewSlot {
    /// A passphrase that is derived as fast as a slot may have it.
    static func quick(_ passphrase: String, label: String) throws -> KeySlots.NewSlot {
        var slot = KeySlots.NewSlot(.key(try .passphrase(passphrase)), label: label)
        slot.scrypt = .least
        return slot
    }
}
