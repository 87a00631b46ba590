import Foundation
import Testing

@testable import SealedDB

/// SQLite's check of the structure, of pages that are authenticated and decrypted without SQLCipher.
@Suite(.hangLimit, .enabled(if: isEncrypting, "needs a codec"))
struct AuthenticPagesTests {
    private let directory: TemporaryDirectory

    init() throws {
        directory = try TemporaryDirectory()
    }

    private func make(
        _ settings: CipherSettings = .init(),
        mode: Configuration.JournalMode = .delete,
        autoVacuum: Int = 0,
        rows: Int = 300
    ) throws -> Database {
        var configuration = Configuration(key: try .testing(1))
        configuration.cipherSettings = settings
        configuration.journalMode = mode
        configuration.isDefensive = false
        configuration.trustsSchema = true
        let store = Database(path: directory.file("db"), configuration: configuration)
        try store.openVerified()
        try RichDatabase.fill(store, autoVacuum: autoVacuum)
        try store.fill(rows: rows)
        try store.executeUpdate("INSERT INTO t (body) VALUES (hex(zeroblob(100000)))", values: nil)
        try store.executeUpdate("DELETE FROM t WHERE id % 5 = 0", values: nil)
        return store
    }

    private func look<T>(
        _ settings: CipherSettings = .init(),
        _ body: (Connection, PageScan) throws -> T
    ) throws -> T {
        let opening = try StoreOpening.existing(directory.file("db"), key: .testing(1), settings: settings).forLooking
        let connection = try opening.open()
        defer { connection.close() }
        return try body(connection, PageScan(connection: connection, key: .testing(1), settings: settings))
    }

    private func pages(_ scan: PageScan, isMarked: Bool = false) throws -> AuthenticPages {
        let count = try PageTotals(of: scan.connection).count
        let marks = isMarked ? try PageMarks(pageCount: count) : nil
        let cipher = try scan.pageCipher()
        #expect(try scan.damagedPages(ofFirst: count, cipher, marks: marks) { _ in } == [])
        return try AuthenticPages(scan, cipher, marks: marks, pageCount: count)
    }

    private func findings(
        _ pages: AuthenticPages,
        _ connection: Connection,
        progress: ((KeyRotation.Progress) throws -> Void)? = nil
    ) throws -> StructureCheck.Findings? {
        let report = ProgressReport(totals: try PageTotals(of: connection), progress: progress)
        return try StructureCheck.findings(.quick, in: pages, instead: connection, report)
    }

    /// A part of the file as SQLite gets it.
    private func read(_ pages: AuthenticPages, at offset: Int64, count: Int) -> (code: Int32, bytes: [UInt8]) {
        var bytes = [UInt8](repeating: 1, count: count)
        let code = bytes.withUnsafeMutableBytes { pages.read(into: $0, at: offset) }
        return (code, bytes)
    }

    // MARK: What SQLite gets

    @Test(arguments: [false, true]) func whatSQLiteGets(isMarked: Bool) throws {
        #expect(try make().close())
        let file = try directory.bytes("db")
        try look { _, scan in
            let pages = try pages(scan, isMarked: isMarked)
            #expect(pages.size == Int64(file.count))
            let first = read(pages, at: 0, count: 4096)
            #expect(first.code == SQLITE_OK && StoreHeader.hasMagic(first.bytes) && first.bytes[20] == 80)
            #expect(first.bytes.suffix(80) == [UInt8](file[4016..<4096])[...])
            #expect(read(pages, at: 0, count: 100).bytes == Array(first.bytes[..<100]))
            #expect(read(pages, at: 24, count: 16).bytes == Array(first.bytes[24..<40]))
            let cipher = try scan.pageCipher()
            // In the order of the pages, and in another one.
            let last = Int64(file.count / 4096)
            for number in Array(2...last) + (0..<100).map({ _ in Int64.random(in: 2...last) }) {
                let stored = [UInt8](file[Int(number - 1) * 4096..<Int(number) * 4096])
                let wanted = try #require(try cipher.contents(stored[...], number: number))
                let found = read(pages, at: (number - 1) * 4096, count: 4096)
                #expect(found.code == SQLITE_OK && found.bytes == wanted + stored[4016...])
            }
            let both = read(pages, at: 4096 - 100, count: 200)
            #expect(both.code == SQLITE_OK && both.bytes[..<20] == first.bytes[3996..<4016])
            #expect(pages.failure == nil && !pages.isRefused && pages.damagedPage == nil)
        }
    }

    @Test func marksAreOfOnePage() throws {
        let marks = try #require(try PageMarks(pageCount: 3))
        let (maker, reader) = (try marks.newMarker(), try marks.newMarker())
        var page = (0..<4096).map { UInt8(truncatingIfNeeded: $0 &* 7) }
        func hold(_ number: Int64) throws -> Bool {
            try page.withUnsafeBytes { try marks.hold($0, number: number, by: reader) }
        }
        #expect(try !hold(2))
        for number: Int64 in [2, 3, 4] {
            try page.withUnsafeBytes { try marks.insert($0, number: number, by: maker) }
        }
        #expect(try hold(2) && hold(3) && !hold(1) && !hold(4))
        for index in 0..<page.count {
            page[index] ^= 1 << UInt8(index % 8)
            #expect(try !hold(2), "\(index)")
            page[index] ^= 1 << UInt8(index % 8)
        }
        #expect(try hold(2))
        let other = try #require(try PageMarks(pageCount: 3)).newMarker()
        #expect(
            try page.withUnsafeBytes { page in
                try maker.mark(page, number: 2) == reader.mark(page, number: 2)
                    && maker.mark(page, number: 2) != maker.mark(page, number: 3)
                    && maker.mark(page, number: 2) != other.mark(page, number: 2)
            }
        )
    }

    /// What SQLite reads has no other file beside it, and cannot be written to.
    @Test func nothingIsWritten() throws {
        #expect(try make().close())
        let before = try directory.bytes("db")
        try look { _, scan in
            let reader = try ServedFile(pages(scan)).open()
            defer { reader.close() }
            #expect(try reader.integer("SELECT count(*) FROM t") == 241)
            let sorted = try reader.texts("SELECT body FROM t, (SELECT 1 UNION ALL SELECT 2) ORDER BY 1")
            #expect(sorted.count == 482)
            #expect(throws: DatabaseError.self) { try reader.run("DELETE FROM t") }
            #expect(throws: DatabaseError.self) { try reader.run("CREATE TABLE u (a)") }
        }
        #expect(try directory.bytes("db") == before)
        #expect(directory.namesOfFiles == ["db"])
    }

    // MARK: Held against SQLCipher's reading

    struct Form: Sendable, CustomTestStringConvertible {
        let settings: CipherSettings
        let mode: Configuration.JournalMode
        let autoVacuum: Int
        var testDescription: String { "\(settings), \(mode), auto_vacuum: \(autoVacuum)" }

        static let random = (0..<9).map { number in
            Form(
                settings: CipherSettings(
                    pageSize: [1024, 4096, 8192, 65536].randomElement()!,
                    hmacAlgorithm: CipherSettings.Algorithm.allCases[number % 3],
                    plaintextHeaderSize: number % 4 == 1 ? 32 : 0,
                    salt: number % 4 == 1 ? FixtureFormat.salt : nil
                ),
                mode: number % 2 == 0 ? .delete : .wal,
                autoVacuum: number % 3
            )
        }
    }

    private func report(_ form: Form, _ depth: StructureCheck.Depth, bySQLCipher: Bool) -> Result<String, DatabaseError>
    {
        do {
            return try look(form.settings) { connection, _ in
                let report = try IntegrityReport.check(
                    connection,
                    path: "db",
                    sealing: Sealing(key: .testing(1), settings: form.settings),
                    structure: depth,
                    leavesPagesToSQLCipher: bySQLCipher
                )
                // SQLite reads a cell that lies at the end of its page or behind it from what memory holds there. What it then
                // says of rows is another thing each time.
                let determined = report.structureProblems.filter { $0.contains(" out of range ") }
                guard !determined.isEmpty else { return .success("\(report)") }
                return .success(
                    "\(report)".replacingOccurrences(of: "\(report.structureProblems)", with: "\(determined), and more")
                )
            }
        } catch {
            return .failure(error as! DatabaseError)
        }
    }

    private func requireSame(_ form: Form, _ what: String) {
        for depth in [StructureCheck.Depth.quick, .deep] {
            let (wanted, found) = (
                report(form, depth, bySQLCipher: true), report(form, depth, bySQLCipher: false)
            )
            #expect(wanted == found, "\(what), \(depth)")
        }
    }

    /// Stores that are sound, damaged, forged with the key, and cut off.
    @Test(arguments: Form.random) func theSameAsThroughSQLCipher(form: Form) throws {
        let store = try make(form.settings, mode: form.mode, autoVacuum: form.autoVacuum, rows: 200)
        if form.mode == .wal {
            try store.checkpoint(.passive)
            try store.executeUpdate("UPDATE t SET body = 'later' WHERE id % 4 = 1", values: nil)
        } else {
            #expect(store.close())
        }
        defer { store.close() }
        requireSame(form, "sound")
        if case .success(let text) = report(form, .deep, bySQLCipher: false) {
            #expect(text.contains("isSound: true"), "\(text)")
        } else {
            Issue.record("it was not looked at")
        }
        let size = form.settings.parameters.pageSize
        let sound = [UInt8](try directory.bytes("db"))
        let pageCount = sound.count / size
        let cipher = try look(form.settings) { try $1.pageCipher() }
        // In place, and never closed meanwhile: SQLite has the file open.
        let file = try #require(FileHandle(forUpdatingAtPath: directory.file("db")))
        defer { withExtendedLifetime(file) {} }
        func write(_ bytes: [UInt8]) throws {
            try file.seek(toOffset: 0)
            try file.write(contentsOf: bytes)
        }
        for round in 0..<3 {
            var bytes = sound
            for _ in 0...round { bytes[Int.random(in: size..<bytes.count)] ^= UInt8.random(in: 1...255) }
            try write(bytes)
            requireSame(form, "damaged")
            // With SHA-1, nobody says what stands in the last of the reserved bytes.
            guard form.settings.parameters.hmacAlgorithm != .sha1 else { continue }
            bytes = sound
            for _ in 0...round {
                // Half of them where SQLite has what it needs to find the rest.
                let number = Int.random(in: 1...pageCount)
                let page = Array(bytes[(number - 1) * size..<number * size])
                guard number > 1 || form.settings.plaintextHeaderSize == 0 else { continue }
                let clear = cipher.clearBytes(ofPage: Int64(number))
                var contents = Array(page[..<clear]) + (try cipher.contents(page[...], number: Int64(number)) ?? [])
                let first = number == 1 ? 100 : 0
                let range = Bool.random() ? first..<(first + 40) : first..<contents.count
                contents[range.randomElement()!] ^= UInt8.random(in: 1...255)
                var sealed = [UInt8](repeating: 0, count: size)
                try contents.withUnsafeBytes { contents in
                    try sealed.withUnsafeMutableBytes { try cipher.seal(contents, number: Int64(number), into: $0) }
                }
                bytes.replaceSubrange((number - 1) * size..<number * size, with: sealed)
            }
            try write(bytes)
            requireSame(form, "forged")
        }
        try write(sound)
        requireSame(form, "sound again")
        guard form.mode == .delete else { return }
        for count in [Int.random(in: size...sound.count), (pageCount - 1) * size, size] {
            try file.truncate(atOffset: UInt64(count))
            requireSame(form, "cut off")
        }
    }

    // MARK: What comes between

    /// After the codes of all pages were found right, another one stands there when SQLite reads it.
    @Test(arguments: ["flipped", "zeros", "of another place", "cut off"]) func aPageThatIsExchanged(how: String) throws
    {
        #expect(try make(rows: 2000).close())
        let bytes = try directory.bytes("db")
        let count = bytes.count / 4096
        try look { connection, scan in
            let number = try #require(try connection.integer("SELECT rootpage FROM sqlite_schema WHERE name = 't'"))
            let start = Int(number - 1) * 4096
            let file = try #require(FileHandle(forUpdatingAtPath: directory.file("db")))
            defer { withExtendedLifetime(file) {} }
            var isExchanged = false
            let result = Result {
                try IntegrityReport.check(
                    connection,
                    path: "db",
                    sealing: Sealing(key: .testing(1)),
                    report: ProgressReport(totals: PageTotals(of: connection)) { progress in
                        guard progress.phase == .structure, !isExchanged else { return }
                        isExchanged = true
                        var page = bytes[start..<start + 4096]
                        switch how {
                        case "flipped": page[start + 2000] ^= 4
                        case "zeros": page = Data(count: 4096)
                        case "of another place": page = bytes[start - 4096..<start]
                        default: return try file.truncate(atOffset: UInt64((count - 1) * 4096))
                        }
                        try file.seek(toOffset: UInt64(start))
                        try file.write(contentsOf: page)
                    }
                )
            }
            #expect(isExchanged)
            guard how != "cut off" else {
                #expect((try? result.get().isSound) != true, "\(result)")
                return
            }
            let report = try result.get()
            #expect(report.damagedPages == [number] && !report.isSound, "\(report)")
            #expect(!report.structureProblems.isEmpty)
        }
    }

    /// A page that is authentic, and another one than was looked at: there is nothing in it that tells.
    @Test func anOlderPage() throws {
        let store = try make()
        let older = try directory.bytes("db")
        try store.executeUpdate("UPDATE t SET body = 'changed'", values: nil)
        #expect(store.close())
        try look { connection, scan in
            let pages = try pages(scan, isMarked: true)
            let file = try #require(FileHandle(forUpdatingAtPath: directory.file("db")))
            defer { withExtendedLifetime(file) {} }
            try file.seek(toOffset: 4096)
            try file.write(contentsOf: older[4096..<8192])
            #expect(read(pages, at: 4096, count: 4096).code == SQLITE_OK)
        }
    }

    /// No read that fails is told as damage.
    @Test(arguments: [false, true]) func readsThatFail(lastsToTheEnd: Bool) throws {
        #expect(try make(rows: 1000).close())
        try look { connection, scan in
            let watch = CallWatch(directory.path)
            #expect(try findings(pages(scan, isMarked: true), connection) == .init(problems: []))
            let total = watch.endWithAll().count
            try #require(total > 20)
            // The scan, whose reads are of another kind, comes first.
            let first = CallWatch(directory.path)
            _ = try pages(scan, isMarked: true)
            let scanned = first.endWithAll().count
            var failures = 0
            for index in stride(from: scanned, to: total, by: max(1, (total - scanned) / 20)) {
                for code in [EIO, ENOMEM] {
                    let pages = try pages(scan, isMarked: true)
                    let calls = index - scanned...(lastsToTheEnd ? Int.max - 1 : index - scanned)
                    let watch = CallWatch(directory.path, failing: calls, code: code)
                    let result = Result { try findings(pages, connection) }
                    watch.end()
                    switch result {
                    case .success(let found):
                        // Read ahead, and not in vain the second time; or a call of another test.
                        #expect(found == .init(problems: []) && pages.failure == nil)
                    case .failure(let error as DatabaseError):
                        failures += 1
                        #expect(error.code == SQLITE_IOERR && error.reason != .damaged, "\(error)")
                        #expect(pages.failure == error && !pages.isRefused && pages.damagedPage == nil)
                    case .failure(let error): throw error
                    }
                }
            }
            #expect(failures > 5)
        }
    }

    /// At each of the moments in which its caller is told how far it is.
    @Test func aCheckThatIsStopped() throws {
        #expect(try make(rows: 1000).close())
        try look { connection, scan in
            var count = 0
            #expect(try findings(pages(scan), connection) { _ in count += 1 } == .init(problems: []))
            try #require(count > 5)
            for step in stride(from: 0, to: count, by: max(1, count / 20)) {
                var calls = 0
                let pages = try pages(scan)
                let error = #expect(throws: DatabaseError.self) {
                    _ = try findings(pages, connection) { _ in
                        calls += 1
                        if calls > step { throw CancellationError() }
                    }
                }
                #expect(error?.reason == .interrupted && calls == step + 1)
                #expect(pages.failure == nil)
            }
        }
    }

    /// Also while SQLite asks nobody whether to go on.
    @Test func readsAreStopped() throws {
        #expect(try make(rows: 3000).close())
        try look { _, scan in
            let file = try ServedFile(pages(scan))
            let reader = try file.open()
            defer { reader.close() }
            var questions = 0
            file.goesOn = {
                questions += 1
                return questions < 3
            }
            #expect(throws: DatabaseError.self) { _ = try reader.texts("SELECT sum(length(body)) FROM t") }
            #expect(questions == 3)
            file.goesOn = nil
            #expect(try reader.integer("SELECT count(*) FROM t WHERE body IS NULL") == 0)
        }
    }
}
