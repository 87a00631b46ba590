import Foundation
import Testing

@testable import SealedDB

/// What SQLite sees of bytes of this process.
@Suite(.hangLimit)
struct ServedFileTests {
    /// A database in memory that fails from some read on.
    private final class Image: FileContents {
        let bytes: [UInt8]
        var failure: (afterReads: Int, code: Int32)?
        private(set) var readCount = 0

        init(_ bytes: [UInt8]) { self.bytes = bytes }

        var size: Int64 { Int64(bytes.count) }

        func read(into buffer: UnsafeMutableRawBufferPointer, at offset: Int64) -> Int32 {
            readCount += 1
            if let failure, readCount > failure.afterReads { return failure.code }
            let place = Int(offset)..<Int(offset) + buffer.count
            guard bytes.indices.contains(place.lowerBound), place.upperBound <= bytes.count else {
                Issue.record("\(place) is not within the \(bytes.count) bytes")
                return SQLITE_IOERR
            }
            bytes.withUnsafeBytes { buffer.copyMemory(from: UnsafeRawBufferPointer(rebasing: $0[place])) }
            return SQLITE_OK
        }
    }

    private func image(rows: Int) throws -> Image {
        let database = Database(path: nil)
        try database.openVerified()
        try database.fill(rows: rows)
        return Image(Array(try database.plaintextSerialized()))
    }

    private let count = "SELECT count(*) FROM t WHERE body LIKE 'secret%'"

    @Test func allOfItIsRead() throws {
        let image = try image(rows: 2000)
        let file = try ServedFile(image)
        let connection = try file.open()
        defer { connection.close() }
        #expect(try connection.integer(count) == 2000)
        #expect(throws: DatabaseError.self) { try connection.run("DELETE FROM t") }
        #expect(connection.view === file)
    }

    /// Who does not want to go on does not wait for the whole file.
    @Test func readingIsStoppedSoon() throws {
        let image = try image(rows: 4000)
        try #require(image.bytes.count > 100 * 4096)
        let file = try ServedFile(image)
        let connection = try file.open()
        defer { connection.close() }
        var questions = 0
        file.goesOn = {
            questions += 1
            return questions < 2
        }
        #expect(throws: DatabaseError.self) { try connection.integer(count) }
        #expect(questions == 2 && image.readCount < 100)
        file.goesOn = { true }
        #expect(try connection.integer(count) == 4000)
    }

    /// A failure is no end of the file, where SQLite would see zeros.
    @Test func readsThatFailAreTold() throws {
        let image = try image(rows: 2000)
        let connection = try ServedFile(image).open()
        defer { connection.close() }
        _ = try connection.integer("SELECT count(*) FROM sqlite_schema")
        image.failure = (image.readCount + 3, SQLITE_IOERR)
        let error = #expect(throws: DatabaseError.self) { try connection.integer(count) }
        #expect(error?.code == SQLITE_IOERR)
        image.failure = nil
        #expect(try connection.integer(count) == 2000)
    }

    /// What is missing at the end is not read from beyond it.
    @Test func aFileThatIsCutOff() throws {
        let whole = try image(rows: 2000)
        func ask(_ size: Int) throws {
            let connection = try ServedFile(Image(Array(whole.bytes.prefix(size)))).open()
            defer { connection.close() }
            _ = try connection.integer(count)
        }
        for size in [whole.bytes.count - 4096, 4096, 50, 0] {
            #expect(throws: DatabaseError.self, "\(size)") { try ask(size) }
        }
        // SQLite takes the rest of the last page for zeros, and may find rows or not.
        try? ask(whole.bytes.count - 1000)
    }
}
