import Foundation
import Testing

@testable import SealedDB

/// Pages that are looked at by several threads, against SQLCipher's own opinion and against the pages one by one.
@Suite(.hangLimit, .enabled(if: isEncrypting, "needs a codec"))
struct PageScanTests {
    private let directory: TemporaryDirectory

    init() throws {
        directory = try TemporaryDirectory()
    }

    /// Makes the store `db` under key 1, with at least so many bytes.
    private func make(_ settings: CipherSettings, bytes: Int) throws {
        var configuration = Configuration(key: try .testing(1))
        configuration.cipherSettings = settings
        let database = Database(path: directory.file("db"), configuration: configuration)
        try database.openVerified()
        try database.fill(rows: bytes / 230)
        #expect(database.executeStatements("CREATE INDEX i ON t (id, body)"))
        try #require(database.close())
    }

    private func withScan<T>(_ settings: CipherSettings, _ body: (PageScan) throws -> T) throws -> T {
        let opening = StoreOpening(
            path: directory.file("db"),
            key: try .testing(1),
            settings: settings,
            takesLock: false
        )
        let connection = try opening.open()
        defer { connection.close() }
        return try body(PageScan(connection: connection, key: .testing(1), settings: settings))
    }

    /// The damaged pages by these many workers.
    private func damagedPages(_ scan: PageScan, workers: Int) throws -> [Int64] {
        let cipher = try scan.pageCipher()
        let size = cipher.parameters.pageSize
        var pipeline = PagePipeline(pageSize: size, pageCount: try scan.connection.mainFileSize() / Int64(size))
        pipeline.workerCount = workers
        var result: [Int64] = []
        try pipeline.forEachRun { () throws(DatabaseError) in
            try CodeWorker(scan: scan, cipher: cipher.copy(), pageCount: pipeline.pagesInRun)
        } deliver: { _, damaged in
            result += damaged
            return true
        }
        return result
    }

    private static let randomSettings: [CipherSettings] = {
        var generator = SystemRandomNumberGenerator()
        return (0..<10).map { index in
            CipherSettings(
                pageSize: [1024, 2048, 4096, 8192, 65536].randomElement(using: &generator)!,
                hmacAlgorithm: CipherSettings.Algorithm.allCases[index % 3],
                plaintextHeaderSize: index % 2 == 0 ? 0 : 32,
                salt: index % 2 == 0 ? nil : FixtureFormat.salt
            )
        }
    }()

    /// What SQLCipher's shell says of the pages.
    private func stockOpinion(_ settings: CipherSettings) throws -> [Int64] {
        let key = String(repeating: "01", count: 32)
        var sql = "PRAGMA key = \"x'\(key)'\";"
        for (name, value) in settings.parameters.pragmas { sql += "PRAGMA \(name) = \(value);" }
        if let salt = settings.salt { sql += "PRAGMA cipher_salt = \"x'\(Hexadecimal.string(salt))'\";" }
        let lines = try StockShell.run(directory.file("db"), sql + "PRAGMA cipher_integrity_check;")
        return lines.compactMap { line in line.contains("for page ") ? line.split(separator: " ").last : nil }
            .compactMap { Int64($0) }
    }

    @Test(arguments: randomSettings)
    func damageInRandomPlaces(settings: CipherSettings) throws {
        try make(settings, bytes: 700_000)
        let size = settings.parameters.pageSize
        var bytes = [UInt8](try directory.bytes("db"))
        try withScan(settings) { scan in
            for workers in [1, 3] { #expect(try damagedPages(scan, workers: workers) == []) }
            let cipher = try scan.pageCipher()
            for round in 0..<3 {
                for _ in 0..<(1 << (2 * round)) {
                    // Beyond the first page, whose beginning is not covered by its code.
                    bytes[Int.random(in: size..<bytes.count)] ^= UInt8.random(in: 1...255)
                }
                // In place: the scan has the file open.
                let file = try #require(FileHandle(forUpdatingAtPath: directory.file("db")))
                try file.write(contentsOf: bytes)
                let expected = try (1...Int64(bytes.count / size)).filter { number in
                    try !cipher.isAuthentic(bytes[(Int(number) - 1) * size..<Int(number) * size], number: number)
                }
                for workers in [1, 2, 5] { #expect(try damagedPages(scan, workers: workers) == expected) }
                #expect(try scan.damagedPages(ofFirst: .max) == expected)
                #expect(try stockOpinion(settings) == expected)
                // No other descriptor of the file is closed before SQLite's own.
                withExtendedLifetime(file) {}
            }
        }
    }

    /// A page of another place, a page of zeros, and a page that lacks its code.
    @Test func pagesThatWereExchanged() throws {
        try make(.init(), bytes: 1 << 20)
        var bytes = try directory.bytes("db")
        func page(_ number: Int) -> Range<Int> { (number - 1) * 4096..<number * 4096 }
        // The numbers differ by 256 pages: in the second byte alone.
        try #require(bytes.count >= 270 * 4096)
        let (first, second) = (bytes[page(10)], bytes[page(266)])
        bytes.replaceSubrange(page(10), with: second)
        bytes.replaceSubrange(page(266), with: first)
        bytes.replaceSubrange(page(70), with: Data(count: 4096))
        bytes.resetBytes(in: page(71).upperBound - 64..<page(71).upperBound)
        try directory.write("db", bytes)
        try withScan(.init()) { scan in
            let damaged = try scan.damagedPages(ofFirst: .max)
            #expect(damaged == [10, 70, 71, 266])
        }
    }

    @Test func progressIsInOrderAndComplete() throws {
        try make(.init(), bytes: 1_500_000)
        let thread = pthread_self()
        try withScan(.init()) { scan in
            let pages = try scan.connection.mainFileSize() / 4096
            var numbers: [Int64] = []
            let damaged = try scan.damagedPages(ofFirst: .max) { completed in
                #expect(pthread_equal(pthread_self(), thread) != 0)
                numbers.append(completed)
            }
            #expect(damaged == [])
            #expect(numbers == Array(stride(from: 64, to: pages, by: 64)) + [pages])
            // It is stopped at each of its steps, and no page is looked at afterwards.
            for step in 0..<numbers.count {
                var calls = 0
                let error = #expect(throws: DatabaseError.self) {
                    _ = try scan.damagedPages(ofFirst: .max) { _ throws(DatabaseError) in
                        calls += 1
                        if calls > step { throw .stopped }
                    }
                }
                #expect(error == .stopped && calls == step + 1)
            }
        }
    }

    @Test(arguments: [0, 1, 4095, 4096, 100_000]) func aFileThatWasCut(rest: Int) throws {
        try make(.init(), bytes: 1_500_000)
        let bytes = try directory.bytes("db")
        try withScan(.init()) { scan in
            let size = 300 * 4096 + rest
            try #require(bytes.count > size && truncate(directory.file("db"), off_t(size)) == 0)
            // Only whole pages are looked at. That the file is too short is said by others.
            var last: Int64 = 0
            #expect(try scan.damagedPages(ofFirst: .max) { last = $0 } == [])
            #expect(last == Int64(size / 4096))
        }
    }

    /// Whether each of many damaged pages is a free one is looked up when all pages are read. The caller can stop that, too.
    @Test func whoWaitsForALongListIsAsked() throws {
        let settings = CipherSettings(pageSize: 1024)
        try make(settings, bytes: 20_000)
        try withScan(settings) { scan in
            let pages = try scan.connection.mainFileSize() / 1024 + 2100
            try #require(truncate(directory.file("db"), off_t(pages * 1024)) == 0)
            var told: [Int64] = []
            let damaged = try scan.damagedPages(ofFirst: .max) { told.append($0) }
            #expect(damaged == Array(pages - 2099...pages))
            // At the last run, and then once for each thousand.
            #expect(told.filter { $0 == pages }.count == 3 && told == told.sorted())
            var asked = 0
            let error = #expect(throws: DatabaseError.self) {
                _ = try scan.damagedPages(ofFirst: .max) { completed throws(DatabaseError) in
                    if completed == pages { asked += 1 }
                    if asked == 2 { throw .stopped }
                }
            }
            #expect(error == .stopped && asked == 2)
        }
    }

    // MARK: Calls that fail

    /// The calls on the file while it is scanned by these many workers.
    private func calls(_ scan: PageScan, workers: Int) throws -> [String] {
        let watch = CallWatch(directory.path)
        let result = Result { try damagedPages(scan, workers: workers) }
        let calls = watch.endWithAll()
        #expect(try result.get() == [])
        return calls
    }

    /// What a scan finds while these calls fail.
    private func damagedPages(_ scan: PageScan, workers: Int, failing calls: Int...) -> Result<[Int64], any Error> {
        let watches = calls.map { CallWatch(directory.path, failing: $0...$0) }
        defer { for watch in watches { watch.end() } }
        return Result { try damagedPages(scan, workers: workers) }
    }

    @Test(arguments: [1, 3]) func aPageThatTheDiskDoesNotRead(workers: Int) throws {
        try make(.init(), bytes: 1 << 20)
        try withScan(.init()) { scan in
            let calls = try calls(scan, workers: workers)
            let reads = calls.indices.filter { calls[$0].hasPrefix("pread") }
            // The cipher reads the salt, and then come the runs.
            try #require(reads.count > 4)
            for (run, read) in reads.dropFirst().enumerated() {
                // The run, and then its first page alone.
                let damaged = damagedPages(scan, workers: workers, failing: read, read + 2)
                #expect(try damaged.get() == [Int64(run) * 64 + 1])
                // The run alone: each page can be read.
                #expect(try damagedPages(scan, workers: workers, failing: read).get() == [])
            }
        }
    }

    /// If the size cannot be asked for, no page is called damaged, and the error says where it was.
    @Test(arguments: [1, 3]) func aSizeThatIsNotKnown(workers: Int) throws {
        try make(.init(), bytes: 1 << 20)
        try withScan(.init()) { scan in
            let calls = try calls(scan, workers: workers)
            let sizes = calls.indices.filter { calls[$0].hasPrefix("fstat") }
            let runs = Int((try scan.connection.mainFileSize() / 4096 + 63) / 64)
            for (run, size) in sizes.suffix(runs).enumerated() {
                let result = damagedPages(scan, workers: workers, failing: size)
                guard case .failure(let error as DatabaseError) = result else {
                    Issue.record("run \(run) was read")
                    continue
                }
                #expect(error.extendedCode == SQLITE_IOERR_FSTAT)
                // The page, or the first of the pages.
                #expect(error.message.split(separator: " ")[1] == "\(run * 64 + 1)", "\(error.message)")
            }
        }
    }

    // MARK: Pages of an odd kind

    /// SQLite never writes the page that holds its locks.
    @Test(arguments: [4096, 65536]) func thePageOfTheLocks(pageSize: Int) throws {
        let settings = CipherSettings(pageSize: pageSize)
        try make(settings, bytes: 10000)
        try withScan(settings) { scan in
            let lockPage = PageScan.lockPage(pageSize: pageSize)
            // A sparse file takes no room.
            try #require(truncate(directory.file("db"), off_t(lockPage + 3) * off_t(pageSize)) == 0)
            let worker = try CodeWorker(scan: scan, cipher: scan.pageCipher(), pageCount: 5)
            let numbers = lockPage - 2...lockPage + 2
            try worker.read(numbers)
            #expect(try worker.outcome(of: numbers) == numbers.filter { $0 != lockPage })
            try worker.read(lockPage...lockPage)
            #expect(try worker.outcome(of: lockPage...lockPage) == [])
            // Behind the end of the file nothing can be read.
            let behind = lockPage + 2...lockPage + 6
            try worker.read(behind)
            #expect(try worker.outcome(of: behind) == Array(behind))
        }
    }

    /// What one thread does with its copy of the keys leaves the others' as they are.
    @Test func copiesOfACipher() throws {
        try make(.init(), bytes: 100_000)
        try withScan(.init()) { scan in
            let bytes = [UInt8](try directory.bytes("db"))
            let pages = (0..<(bytes.count / 4096)).map { bytes[$0 * 4096..<($0 + 1) * 4096] }
            var cipher: PageCipher? = try scan.pageCipher()
            let contents = try pages.enumerated().map { try cipher!.contents($1, number: Int64($0 + 1)) }
            let copies = try (0..<3).map { _ in try cipher!.copy() }
            cipher = nil
            for (index, page) in pages.enumerated() {
                let copy = copies[index % 3]
                #expect(try copy.isAuthentic(page, number: Int64(index + 1)))
                #expect(try !copy.isAuthentic(page, number: Int64(index + 2)))
                #expect(try copy.contents(page, number: Int64(index + 1)) == contents[index])
            }
        }
    }
}
