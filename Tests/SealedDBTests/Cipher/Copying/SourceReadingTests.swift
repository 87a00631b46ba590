import Foundation
import Testing

@testable import SealedDB

/// How the pages of a source are read, and what is said of one that cannot be read.
@Suite(.hangLimit, .enabled(if: isEncrypting, "needs a codec"))
struct SourceReadingTests {
    private let directory: TemporaryDirectory
    private static let size = 4096

    init() throws {
        directory = try TemporaryDirectory()
        let store = try Database.testing(directory.file("db"), journalMode: .delete)
        try store.fill(rows: 300)
        try #require(store.close())
    }

    private func open() throws -> Connection {
        try StoreOpening(path: directory.file("db"), key: .testing(1), takesLock: false).open()
    }

    /// The disk does not give some pages at once. It is tried with each of them, and the one that it does not give is named.
    @Test func aPageThatTheDiskDoesNotGive() throws {
        let connection = try open()
        defer { connection.close() }
        let source = try PageSource(still: connection, key: .testing(1), settings: .init())
        let buffer = PageBuffer(pageSize: Self.size, pageCount: 4)
        let numbers = 2...5 as ClosedRange<Int64>
        let stored = try directory.bytes("db")[Self.size..<5 * Self.size]
        let count = CallWatch(directory.path)
        try source.read(numbers, into: buffer.pages(4))
        let calls = count.endWithAll()
        #expect(Data(buffer.pages(4)) == stored)
        let read = try #require(calls.firstIndex { $0.hasPrefix("pread") })
        try #require(calls.filter { $0.hasPrefix("pread") }.count == 1)
        // Each page needs as many calls as all.
        for index in 0..<4 {
            buffer.pages(4).initializeMemory(as: UInt8.self, repeating: 0)
            let first = CallWatch(directory.path, failing: read...read)
            let second = CallWatch(
                directory.path,
                failing: read + (index + 1) * calls.count...read + (index + 1) * calls.count
            )
            let error = #expect(throws: DatabaseError.self) { try source.read(numbers, into: buffer.pages(4)) }
            second.end()
            first.end()
            #expect(error?.code == SQLITE_IOERR)
            let start = "Page \(index + 2) of the store cannot be read: "
            #expect(error?.message.hasPrefix(start) == true, "\(String(describing: error))")
        }
        buffer.pages(4).initializeMemory(as: UInt8.self, repeating: 0)
        let once = CallWatch(directory.path, failing: read...read)
        try source.read(numbers, into: buffer.pages(4))
        once.end()
        #expect(Data(buffer.pages(4)) == stored)
        // Of one page alone, the first error counts.
        let alone = CallWatch(directory.path, failing: read...read)
        #expect(throws: DatabaseError.self) { try source.read(3...3, into: buffer.pages(1)) }
        #expect(alone.endWithAll().count == read + 1)
    }

    /// What SQLCipher shows of the copy is compared with what was copied, in number and size.
    @Test func aSampleOfAnotherSize() throws {
        let connection = try open()
        defer { connection.close() }
        let count = try PageTotals(of: connection).count
        func problem(_ count: Int64, _ size: Int) throws -> String? {
            try SampleCheck(totals: PageTotals(count: count, size: size)).problem(connection)
        }
        #expect(try problem(count, Self.size) == nil)
        for (other, size) in [(count + 1, Self.size), (count - 1, Self.size), (count, 8192)] {
            let wanted = "it has \(count) pages of 4096 bytes instead of \(other) of \(size)"
            #expect(try problem(other, size) == wanted)
        }
        try StoreDecryption(path: directory.file("db"), key: .testing(1), plaintextPath: directory.file("plain")).run()
        let plain = try StoreOpening(path: directory.file("plain"), takesLock: false).open()
        defer { plain.close() }
        #expect(try SampleCheck(totals: PageTotals(of: plain)).problem(plain) == "it is plaintext")
    }

    /// A journal in memory is no help if what it holds could not be written back either.
    @Test func whatAFailureLeavesOfADestination() throws {
        let source = try open()
        defer { source.close() }
        let flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE
        let target = try StoreOpening(path: directory.file("new"), key: .testing(1), flags: flags).open()
        defer { target.close() }
        func state(of target: Connection, after code: Int32) -> String {
            let error = DatabaseError(extendedCode: code, message: "of the test")
            return PageCopy(source: source, target: target).state(after: error)
        }
        let isBefore = "the destination is as it was before"
        for code in [SQLITE_FULL, SQLITE_IOERR_READ, SQLITE_CORRUPT] {
            #expect(state(of: target, after: code) == isBefore, "\(code)")
        }
        #expect(try target.text("PRAGMA journal_mode = MEMORY") == "memory")
        for code in [SQLITE_FULL, SQLITE_IOERR_READ] {
            #expect(state(of: target, after: code).contains("whose journal is in memory"), "\(code)")
        }
        #expect(state(of: target, after: SQLITE_CORRUPT) == isBefore)
        // Without a file nothing is written.
        let memory = try StoreOpening().open()
        defer { memory.close() }
        #expect(state(of: memory, after: SQLITE_FULL) == isBefore)
    }

    /// The pages of a store whose settings say another size than it has would be cut in the wrong places.
    @Test func pagesOfAnotherSizeThanTheSettingsSay() throws {
        let connection = try open()
        defer { connection.close() }
        let error = #expect(throws: DatabaseError.self) {
            try PageSource(still: connection, key: .testing(1), settings: CipherSettings(pageSize: 8192))
        }
        #expect(error?.reason == .damaged && error?.message.contains("pages of 4096 bytes") == true)
    }

    /// A program that has both a log and a journal to put in order has to do that by itself: nobody can say which is newer.
    @Test func aLogAndAJournal() throws {
        let service = try Database.testing(directory.file("service"), journalMode: .wal)
        defer { service.close() }
        try service.fill(rows: 30)
        for suffix in ["", "-wal"] { try directory.write("both" + suffix, directory.bytes("service" + suffix)) }
        func word(_ value: UInt32) -> [UInt8] { withUnsafeBytes(of: value.bigEndian) { Array($0) } }
        var journal: [UInt8] = [0xd9, 0xd5, 0x05, 0xf9, 0x20, 0xa1, 0x63, 0xd7]
        journal += [0, 0x1234, 1, 512, 4096].flatMap(word)
        journal += [UInt8](repeating: 0, count: 512 - journal.count)
        func look() throws -> Connection {
            var opening = StoreOpening(path: directory.file("both"), key: try .testing(1))
            opening.looks = true
            return try StoreView.connection(for: opening)
        }
        try look().close()
        try directory.write("both-journal", journal)
        let error = #expect(throws: DatabaseError.self) { try look().close() }
        #expect(error?.reason == .busy, "\(String(describing: error))")
        #expect(error?.message.contains("both a log and a journal") == true, "\(String(describing: error))")
        unlink(directory.file("both-wal"))
        try look().close()
        #expect(directory.names.filter { $0.hasPrefix("both") } == ["both", "both-journal"])
    }

    /// A store that somebody has written to since it was looked at is not the one that was read.
    @Test func aStoreThatIsWrittenToWhileItIsLookedAt() throws {
        let service = try Database.testing(directory.file("service"), journalMode: .wal)
        defer { service.close() }
        try service.fill(rows: 30)
        for suffix in ["", "-wal"] {
            for name in ["", "-wal"] { try directory.write("left" + name, directory.bytes("service" + name)) }
            var opening = StoreOpening(path: directory.file("left"), key: try .testing(1))
            opening.looks = true
            let connection = try opening.open()
            defer { connection.close() }
            #expect(try connection.integer("SELECT count(*) FROM t") == 30)
            try connection.requireStill()
            let file = try FileHandle(forWritingTo: URL(fileURLWithPath: directory.file("left" + suffix)))
            try file.seekToEnd()
            try file.write(contentsOf: Data([0]))
            try file.close()
            let error = #expect(throws: DatabaseError.self) { try connection.requireStill() }
            #expect(error?.reason == .busy, "\(suffix): \(String(describing: error))")
        }
    }
}
