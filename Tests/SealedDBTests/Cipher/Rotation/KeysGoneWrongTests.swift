import Foundation
import SealedDB
import Testing

/// Each row of the table in KeysGoneWrong.md happens here, and has the reason that the table says.
@Suite(.hangLimit, .enabled(if: isEncrypting, "needs a codec"))
struct KeysGoneWrongTests {
    private let directory: TemporaryDirectory

    init() throws {
        directory = try TemporaryDirectory()
    }

    private struct Row: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let body: @Sendable (KeysGoneWrongTests) throws -> Void

        init(_ name: String, _ body: @escaping @Sendable (KeysGoneWrongTests) throws -> Void) {
            testDescription = name
            self.body = body
        }
    }

    // MARK: Rows

    private static let rows: [Row] = [
        Row("another key") { try $0.makeStore().open(.testing(2)) },
        Row("another passphrase") { test in
            try test.open(.passphrase("right"))
            try test.open(.passphrase("wrong"))
        },
        Row("passphrase instead of raw key") {
            try $0.makeStore().open(.passphrase(String(repeating: "01", count: 32)))
        },
        Row("a newline in the passphrase") { test in
            try test.open(.passphrase("right"))
            try test.write("pass", Data("right\n\n".utf8))
            try test.open(KeySource.passphraseFile(test.directory.file("pass")).key())
        },
        Row("empty passphrase") { try $0.open(.passphrase("")) },
        Row("passphrase that looks like a raw key") {
            try $0.open(.passphrase("x'\(String(repeating: "01", count: 32))'"))
        },
        Row("raw key of the wrong length") { test in
            try [UInt8](repeating: 1, count: 31).withUnsafeBytes { try test.open(.raw($0)) }
        },
        Row("no key") { test in
            try test.makeStore()
            let database = Database(path: test.directory.file("db"))
            database.open()
            _ = try database.integers("SELECT count(*) FROM sqlite_schema")
        },
        Row("key for a plaintext database") { test in
            let plain = Database(path: test.directory.file("db"))
            plain.open()
            try plain.fill(rows: 5)
            plain.close()
            try test.open(.testing(1))
        },
        Row("store of SQLCipher 1") { try $0.openStock(FixtureFormat.olderFormats[0], .passphrase) },
        Row("store of SQLCipher 2") { try $0.openStock(FixtureFormat.olderFormats[1], .passphrase) },
        Row("store of SQLCipher 3") { try $0.openStock(FixtureFormat.olderFormats[2], .passphrase) },
        Row("store of a pre-release of SQLCipher 2") { try $0.openStock(FixtureFormat.prereleases[0], .passphrase) },
        Row("other page size") { try $0.openStock(FixtureFormat.oddSettings[1], .raw) },
        Row("other hash of pages") { try $0.openStock(FixtureFormat.oddSettings[3], .raw) },
        Row("pages without authentication") { try $0.openStock(FixtureFormat.oddSettings[4], .raw) },
        Row("other number of rounds") { try $0.openStock(FixtureFormat.oddSettings[2], .passphrase) },
        Row("cut off") { test in
            try test.makeStore().change { $0.removeLast(4096) }
            try test.open(.testing(1))
        },
        Row("damaged first page") { test in
            try test.makeStore().change { $0[500] ^= 1 }
            try test.open(.testing(1))
        },
        Row("damaged other page") { test in
            try test.makeStore().change { bytes in
                for page in 1..<bytes.count / 4096 { bytes[page * 4096 + 500] ^= 1 }
            }
            let database = Database(path: test.directory.file("db"), configuration: Configuration(key: try .testing(1)))
            try database.openVerified()
            _ = try database.integers("SELECT sum(length(body)) FROM t")
        },
        Row("damaged salt") { test in
            try test.makeStore().change { $0[5] ^= 1 }
            try test.open(.testing(1))
        },
        Row("wrong key and a log beside") { test in
            let owner = try Database.testing(test.directory.file("db"), journalMode: .wal)
            try owner.fill(rows: 5)
            defer { owner.close() }
            try test.open(.testing(2))
        },
        Row("wrong key and a hot journal beside") { test in
            let owner = try Database.testing(test.directory.file("owned"))
            try owner.fill(rows: 2000)
            try owner.spillChanges()
            #expect(owner.executeStatements("BEGIN; UPDATE t SET body = body || 'x'"))
            for suffix in ["", "-journal"] { try test.write("db\(suffix)", test.directory.bytes("owned\(suffix)")) }
            #expect(owner.rollback())
            try test.open(.testing(2))
        },
        Row("text file") { test in
            try test.write("db", Data(String(repeating: "just some text\n", count: 1000).utf8))
            try test.open(.testing(1))
        },
        Row("random bytes") { test in
            try test.write("db", Data((0..<8192).map { _ in UInt8.random(in: 0...255) }))
            try test.open(.testing(1))
        },
        Row("directory") { test in
            mkdir(test.directory.file("db"), 0o700)
            try test.open(.testing(1))
        },
        Row("no such file") { test in
            var configuration = Configuration(key: try .testing(1))
            configuration.createsFile = false
            try Database(path: test.directory.file("db"), configuration: configuration).openVerified()
        },
        Row("invalid settings") { try $0.open(.testing(1), CipherSettings(pageSize: 1000)) },
        Row("key by SQL on a keyed connection") { test in
            let database = try Database.testing(test.directory.file("db"))
            try database.executeUpdate("PRAGMA rekey = 'new'", values: nil)
        },
        Row("attach without a key") { test in
            let database = try Database.testing(test.directory.file("db"))
            try database.attach(test.directory.file("other"), as: "o")
        },
    ]

    @Test(arguments: rows.indices)
    func row(index: Int) throws {
        let row = Self.rows[index]
        let error = #expect(throws: DatabaseError.self, "\(row.testDescription)") { try row.body(self) }
        let table = try Self.table()
        #expect(error?.reason.description == table[row.testDescription], "\(row.testDescription): \(error as Any)")
    }

    @Test func everyRowIsATest() throws {
        #expect(try Set(Self.table().keys) == Set(Self.rows.map(\.testDescription)))
    }

    // MARK: Steps

    @discardableResult
    private func makeStore() throws -> Self {
        let database = try Database.testing(directory.file("db"))
        try database.fill(rows: 300)
        database.close()
        return self
    }

    private func open(_ key: Key, _ settings: CipherSettings = .init()) throws {
        var configuration = Configuration(key: key)
        configuration.cipherSettings = settings
        let database = Database(path: directory.file("db"), configuration: configuration)
        defer { database.close() }
        try database.openVerified()
    }

    private func openStock(_ format: FixtureFormat, _ key: FixtureKey) throws {
        try format.make(directory.file("db"), key: key)
        try open(key.key())
    }

    private func write(_ name: String, _ bytes: Data) throws {
        try bytes.write(to: URL(fileURLWithPath: directory.file(name)))
        chmod(directory.file(name), 0o600)
    }

    private func change(_ body: (inout [UInt8]) -> Void) throws {
        var bytes = Array(try directory.bytes("db"))
        body(&bytes)
        try write("db", Data(bytes))
    }

    /// What happened, and the reason that the documentation gives.
    private static func table() throws -> [String: String] {
        let text = try Documentation.text("KeysGoneWrong.md")
        var result: [String: String] = [:]
        for line in text.split(separator: "\n") where line.hasPrefix("| ") && !line.hasPrefix("| what happened") {
            let cells = line.split(separator: "|").map { $0.trimmingCharacters(in: .whitespaces) }
            result[cells[0]] = cells[1]
        }
        return result
    }
}
