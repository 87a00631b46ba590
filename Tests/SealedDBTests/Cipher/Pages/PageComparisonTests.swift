import Foundation
import Testing

@testable import SealedDB

@Suite(.hangLimit, .enabled(if: isEncrypting, "needs a codec"))
struct PageComparisonTests {
    private let directory: TemporaryDirectory

    init() throws {
        directory = try TemporaryDirectory()
    }

    private func open(_ name: String, _ sealing: Sealing) throws -> Connection {
        try StoreOpening(path: directory.file(name), key: sealing.key, settings: sealing.settings, takesLock: false)
            .open()
    }

    private func problems(_ old: Sealing, _ new: Sealing) throws -> [String] {
        let (source, copy) = (try open("db.old", old), try open("db", new))
        defer { for connection in [source, copy] { connection.close() } }
        let comparison = PageComparison(
            source: PageScan(connection: source, key: old.key!, settings: old.settings),
            copy: PageScan(connection: copy, key: new.key!, settings: new.settings),
            pageCount: try copy.integer("PRAGMA page_count")!
        )
        return try comparison.problems { _ in }
    }

    /// A store under key 1, kept as `db.old`, and the same under key 2.
    private func rotate(_ settings: CipherSettings = .init(), _ sql: String = "") throws -> (old: Sealing, new: Sealing)
    {
        let (old, new) = (
            Sealing(key: try .testing(1), settings: settings), Sealing(key: try .testing(2), settings: settings)
        )
        var configuration = Configuration(key: old.key!)
        configuration.cipherSettings = settings
        let database = Database(path: directory.file("db"), configuration: configuration)
        try database.openVerified()
        try database.fill(rows: 300)
        #expect(database.executeStatements("CREATE INDEX i ON t (body); DELETE FROM t WHERE id > 200; \(raw: sql)"))
        database.close()
        try KeyRotation(
            path: directory.file("db"),
            from: old.key!,
            to: new.key!,
            cipherSettings: settings,
            oldFileSuffix: ".old"
        ).run()
        return (old, new)
    }

    private static let manyRows =
        "WITH n AS (SELECT 1 FROM t, t AS u LIMIT 8000) INSERT INTO t (body) SELECT hex(randomblob(70)) FROM n"

    private static let randomSettings: [CipherSettings] = {
        var generator = SystemRandomNumberGenerator()
        return (0..<12).map { _ in
            CipherSettings(
                compatibility: CipherSettings.Compatibility.allCases.randomElement(using: &generator)!,
                pageSize: [nil, 1024, 2048, 4096, 8192, 65536].randomElement(using: &generator)!,
                hmacAlgorithm: ([nil] + CipherSettings.Algorithm.allCases).randomElement(using: &generator)!,
                usesHMAC: [nil, true, false].randomElement(using: &generator)!
            )
        }
    }()

    @Test(arguments: randomSettings)
    func aCopyIsEqual(settings: CipherSettings) throws {
        let (old, new) = try rotate(settings)
        #expect(try problems(old, new) == [])
    }

    /// Each page as SQLCipher decrypts it.
    @Test(arguments: randomSettings)
    func contentsAreThoseOfSQLCipher(settings: CipherSettings) throws {
        let (old, _) = try rotate(settings)
        let connection = try open("db.old", old)
        defer { connection.close() }
        let cipher = try PageScan(connection: connection, key: old.key!, settings: settings).pageCipher()
        let image = [UInt8](try SerializedStore.plaintextImage(of: connection))
        let file = try [UInt8](directory.bytes("db.old"))
        let size = cipher.parameters.pageSize
        #expect(image.count == file.count)
        for number in 1...(file.count / size) {
            let range = (number - 1) * size..<number * size
            let contents = try #require(try cipher.contents(file[range], number: Int64(number)))
            let clear = cipher.clearBytes(ofPage: Int64(number))
            var expected = Array(image[range][(range.lowerBound + clear)...].prefix(contents.count))
            var found = contents
            guard number == 1 else {
                #expect(found == expected)
                continue
            }
            // What a copy has of its own.
            for index in PageComparison.differingBytes.joined() where index >= clear {
                (found[index - clear], expected[index - clear]) = (0, 0)
            }
            #expect(found == expected)
        }
    }

    @Test(arguments: ["UPDATE t SET body = 'another' WHERE id = 100", "PRAGMA user_version = 3", "VACUUM"])
    func everyChangeIsFound(sql: String) throws {
        let (old, new) = try rotate()
        let connection = try open("db.old", old)
        try connection.run(sql)
        #expect(connection.close())
        let problems = try problems(old, new)
        #expect(!problems.isEmpty)
    }

    /// A page of before, authentic under the same key and number.
    @Test func anOldPageIsFound() throws {
        let (old, new) = try rotate()
        let before = try directory.bytes("db")
        let connection = try open("db", new)
        try connection.run("UPDATE t SET body = upper(hex(randomblob(40)))")
        #expect(connection.close())
        let source = try open("db.old", old)
        #expect(source.close())
        #expect(try problems(old, new).count > 2)
        try directory.write("db", before)
        #expect(try problems(old, new) == [])
        var changed = before
        changed[5 * 4096 + 7] ^= 1
        try directory.write("db", changed)
        #expect(try problems(old, new) == ["page 6 of the copy is damaged"])
    }

    /// In a store that several threads compare.
    @Test(arguments: [true, false]) func changesInRandomPlaces(usesHMAC: Bool) throws {
        let settings = CipherSettings(usesHMAC: usesHMAC)
        let (old, new) = try rotate(settings, Self.manyRows)
        var bytes = try directory.bytes("db")
        let pages = bytes.count / 4096
        try #require(pages > 300)
        var expected: Set<Int> = []
        for _ in 0..<20 {
            let page = Int.random(in: 2...pages)
            // Not in the reserved bytes, which without a code may be anything but for the IV.
            bytes[(page - 1) * 4096 + Int.random(in: 0..<4000)] ^= 1
            expected.insert(page)
        }
        try directory.write("db", bytes)
        let end = usesHMAC ? "of the copy is damaged" : "differs from that of the store"
        #expect(try problems(old, new) == expected.sorted().map { "page \($0) \(end)" })
    }

    @Test func progressIsInOrderAndStops() throws {
        let (old, new) = try rotate(.init(), Self.manyRows)
        let (source, copy) = (try open("db.old", old), try open("db", new))
        defer { for connection in [source, copy] { connection.close() } }
        let comparison = PageComparison(
            source: PageScan(connection: source, key: old.key!, settings: old.settings),
            copy: PageScan(connection: copy, key: new.key!, settings: new.settings),
            pageCount: try copy.integer("PRAGMA page_count")!
        )
        var numbers: [Int64] = []
        #expect(try comparison.problems { numbers.append($0) } == [])
        #expect(numbers == Array(stride(from: 64, to: comparison.pageCount, by: 64)) + [comparison.pageCount])
        for step in 1...numbers.count {
            var calls = 0
            #expect(throws: CancellationError.self) {
                _ = try comparison.problems { _ in
                    calls += 1
                    if calls == step { throw CancellationError() }
                }
            }
            #expect(calls == step)
        }
        // The end of the copy is missing: no page of its last run counts as compared.
        try #require(truncate(directory.file("db"), off_t(comparison.pageCount - 1) * 4096) == 0)
        numbers = []
        let problems = try comparison.problems { numbers.append($0) }
        let first = (comparison.pageCount - 1) / 64 * 64 + 1
        #expect(problems == ["pages \(first) to \(comparison.pageCount) are not whole"])
        #expect(numbers.last == first - 1)
    }

    /// A file that the system does not read is no file that differs.
    @Test(arguments: ["db.old", "db"])
    func aReadThatFailsIsNoDifference(name: String) throws {
        let (old, new) = try rotate()
        let (source, copy) = (try open("db.old", old), try open("db", new))
        defer { for connection in [source, copy] { connection.close() } }
        let pages = try copy.integer("PRAGMA page_count")!
        // The keys have the salts, so that nothing but pages is read.
        let scans = try [(source, "db.old", 1), (copy, "db", 2)].map { connection, name, byte in
            let salt = try directory.bytes(name).prefix(16)
            let key = try [UInt8](repeating: UInt8(byte), count: 32).withUnsafeBytes { bytes in
                try salt.withUnsafeBytes { salt in try Key.raw(bytes, salt: salt) }
            }
            return PageScan(connection: connection, key: key, settings: old.settings)
        }
        let path = try #require(FileSystem.resolve(directory.file(name)))
        let descriptors = try FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd").compactMap { Int32($0) }
        let its = try #require(
            descriptors.first {
                (try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/fd/\($0)")) == path
            }
        )
        // A directory in its place: every read fails.
        let kept = dup(its)
        let other = try #require(opendir(directory.file(".")))
        #expect(dup2(dirfd(other), its) == its)
        let comparison = PageComparison(source: scans[0], copy: scans[1], pageCount: pages)
        let error = #expect(throws: DatabaseError.self) { try comparison.problems { _ in } }
        #expect(error?.code == SQLITE_IOERR && error?.reason != .unverified)
        let file = name == "db" ? "the copy" : "the store"
        #expect(error?.message.hasPrefix("Pages 1 to ") == true && error?.message.contains(file) == true)
        #expect(dup2(kept, its) == its)
        #expect(close(kept) == 0)
        #expect(closedir(other) == 0)
        #expect(try comparison.problems { _ in } == [])
    }
}
