import Foundation
import Testing

@testable import SealedDB

/// The check of the structure, of pages that are decrypted outside SQLCipher while others authenticate them.
@Suite(.hangLimit, .enabled(if: isEncrypting, "needs a codec"))
struct AuthenticPagesTests {
    private let directory: TemporaryDirectory

    init() throws {
        directory = try TemporaryDirectory()
    }

    private func make(
        _ settings: CipherSettings = .init(),
        mode: Configuration.JournalMode = .delete,
        autoVacuum: Int = 0
    ) throws -> Database {
        var configuration = Configuration(key: try .testing(1))
        configuration.cipherSettings = settings
        configuration.journalMode = mode
        configuration.isDefensive = false
        configuration.trustsSchema = true
        let store = Database(path: directory.file("db"), configuration: configuration)
        try store.openVerified()
        try RichDatabase.fill(store, autoVacuum: autoVacuum)
        try store.fill(rows: 300)
        return store
    }

    private func look<T>(
        _ settings: CipherSettings = .init(),
        _ body: (Connection, PageCipher) throws -> T
    ) throws -> T {
        let opening = try StoreOpening.existing(directory.file("db"), key: .testing(1), settings: settings).forLooking
        let connection = try opening.open()
        defer { connection.close() }
        let scan = PageScan(connection: connection, key: try .testing(1), settings: settings)
        return try body(connection, scan.pageCipher())
    }

    /// A part of a page as SQLite gets it.
    private func read(
        _ pages: AuthenticPages,
        _ number: Int64,
        from start: Int = 0,
        count: Int = 4096,
        of file: Data
    ) -> (code: Int32, bytes: [UInt8]) {
        var bytes = [UInt8](repeating: 1, count: count)
        let code = bytes.withUnsafeMutableBytes { target in
            pages.read(number, from: start, into: target) { buffer in
                let offset = (Int(number) - 1) * 4096
                guard offset + 4096 <= file.count else { return SQLITE_IOERR_SHORT_READ }
                buffer.copyBytes(from: file[offset..<offset + 4096])
                return SQLITE_OK
            }
        }
        return (code, bytes)
    }

    @Test func whatSQLiteGets() throws {
        #expect(try make().close())
        let sound = try directory.bytes("db")
        try look { _, cipher in
            let pages = try AuthenticPages(cipher.copy())
            let first = read(pages, 1, of: sound)
            #expect(first.code == SQLITE_OK && StoreHeader.hasMagic(first.bytes))
            #expect(first.bytes.suffix(80).allSatisfy { $0 == 0 })
            let header = read(pages, 1, count: 100, of: sound)
            #expect(header.code == SQLITE_OK && header.bytes == Array(first.bytes[..<100]))
            let part = read(pages, 1, from: 24, count: 16, of: sound)
            #expect(part.code == SQLITE_OK && part.bytes == Array(first.bytes[24..<40]))
            let second = read(pages, 2, of: sound)
            let wanted = try #require(cipher.contents([UInt8](sound[4096..<8192])[...], number: 2))
            #expect(second.bytes == wanted + [UInt8](repeating: 0, count: 80))
            #expect(pages.readCount == 4)
        }
    }

    /// A page is authenticated before SQLite gets it, unless others have done that.
    @Test func noPageThatIsNotAuthentic() throws {
        #expect(try make().close())
        var file = try directory.bytes("db")
        file[2 * 4096 + 50] ^= 1
        try look { _, cipher in
            let pages = try AuthenticPages(cipher.copy())
            #expect(read(pages, 2, of: file).code == SQLITE_OK)
            #expect(read(pages, 3, of: file).code == SQLITE_CORRUPT)
            #expect(read(pages, 3, count: 100, of: file).bytes.allSatisfy { $0 == 1 })
            pages.noteAuthentic(upTo: 2)
            #expect(read(pages, 3, of: file).code == SQLITE_CORRUPT)
            pages.noteAuthentic(upTo: 3)
            #expect(read(pages, 3, of: file).code == SQLITE_OK)
            #expect(read(pages, Int64(file.count / 4096) + 1, of: file).code == SQLITE_IOERR_SHORT_READ)
            pages.stop()
            #expect(read(pages, 2, of: file).code == SQLITE_INTERRUPT)
        }
    }

    struct Form: Sendable, CustomTestStringConvertible {
        let settings: CipherSettings
        let mode: Configuration.JournalMode
        let autoVacuum: Int
        var testDescription: String { "\(settings), \(mode), auto_vacuum: \(autoVacuum)" }

        static let random = (0..<8).map { number in
            Form(
                settings: CipherSettings(
                    pageSize: [1024, 4096, 8192, 65536][number % 4],
                    hmacAlgorithm: .allCases.randomElement()!,
                    plaintextHeaderSize: number % 3 == 0 ? 32 : 0,
                    salt: number % 3 == 0 ? Array(1...16) : nil
                ),
                mode: number % 2 == 0 ? .delete : .wal,
                autoVacuum: number % 3
            )
        }
    }

    /// What SQLite says of the pages, and what they hold, is what it says through SQLCipher, also of pages that only the log
    /// has.
    @Test(arguments: Form.random) func theSameAsThroughSQLCipher(form: Form) throws {
        let store = try make(form.settings, mode: form.mode, autoVacuum: form.autoVacuum)
        defer { store.close() }
        try look(form.settings) { connection, cipher in
            let view = try #require(connection.view as? StoreView)
            let pages = try AuthenticPages(cipher.copy())
            let decrypted = try view.connection(decryptedBy: pages)
            defer { decrypted.close() }
            for sql in ["PRAGMA page_count", "PRAGMA freelist_count", "PRAGMA user_version", "SELECT count(*) FROM t"] {
                #expect(try decrypted.integer(sql) == connection.integer(sql), "\(sql)")
            }
            #expect(try ContentDigest.of(decrypted) == ContentDigest.of(connection))
            #expect(pages.readCount > 0)
            #expect(throws: DatabaseError.self) { try decrypted.run("DELETE FROM t") }
        }
        for isDeep in [false, true] {
            let report = try IntegrityReport.verify(
                path: directory.file("db"),
                key: .testing(1),
                cipherSettings: form.settings,
                isDeep: isDeep
            )
            #expect(report.isSound && report.isAuthenticated, "\(report)")
        }
        #expect(Set(directory.namesOfFiles).isSubset(of: ["db", "db-wal", "db-shm"]))
    }

    /// One that is still at work when its caller gives up.
    @Test func aCheckThatIsStopped() throws {
        let store = try make(mode: .wal)
        defer { store.close() }
        try look { connection, cipher in
            let structure = try #require(try StructureThread(connection, cipher: cipher, pragma: "quick_check"))
            structure.end()
            structure.end()
            let whole = try #require(try StructureThread(connection, cipher: cipher, pragma: "quick_check"))
            var counts: [Int64] = []
            #expect(try whole.problems { counts.append($0) } == [])
            #expect(!counts.isEmpty && whole.pages.readCount > 50)
        }
        let opening = try StoreOpening.existing(directory.file("db"), key: .testing(1), settings: .init())
        let connection = try opening.open()
        defer { connection.close() }
        let cipher = try PageScan(connection: connection, key: .testing(1), settings: .init()).pageCipher()
        #expect(try StructureThread(connection, cipher: cipher, pragma: "quick_check") == nil)
    }
}
