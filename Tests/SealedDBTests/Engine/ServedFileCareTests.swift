import Foundation
import Testing

@testable import SealedDB

/// What is kept of bytes that SQLite was shown as a file, and where it sorts them.
@Suite(.hangLimit)
struct ServedFileCareTests {
    private final class Image: FileContents {
        private let bytes: Data

        init() throws {
            let database = Database(path: nil)
            try database.openVerified()
            try database.fill(rows: 20)
            bytes = try database.plaintextSerialized()
        }

        var size: Int64 { Int64(bytes.count) }

        func read(into buffer: UnsafeMutableRawBufferPointer, at offset: Int64) -> Int32 {
            buffer.copyBytes(from: bytes[Int(offset)..<Int(offset) + buffer.count])
            return SQLITE_OK
        }
    }

    /// It is plaintext, and no file of its VFS can be written.
    @Test func whatIsSortedStaysInMemory() throws {
        let connection = try ServedFile(Image()).open()
        defer { connection.close() }
        #expect(try connection.integer("PRAGMA temp_store") == 2)
    }

    /// Otherwise it would stay in memory as long as the process, in plaintext.
    @Test func whatWasAttachedIsLetGo() throws {
        let connection = try Connection(path: ":memory:", flags: SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE)
        weak var shown: ServedFile?
        do {
            let file = try ServedFile(Image())
            shown = file
            try file.attach(to: connection, as: "x", hasKey: false)
        }
        #expect(try connection.integer("SELECT count(*) FROM x.t") == 20)
        #expect(shown != nil)
        #expect(connection.close())
        #expect(shown == nil)
    }

    /// A program's own files in plaintext are none that SQL has attached beside a store.
    @Test(.enabled(if: isEncrypting, "needs a codec")) func whatIsShownNeedsNoKey() throws {
        let directory = try TemporaryDirectory()
        let store = try Database.testing(directory.file("db"))
        defer { store.close() }
        let connection = try #require(store.connection)
        try ServedFile(Image()).attach(to: connection, as: "x", hasKey: true)
        #expect(try connection.integer("SELECT count(*) FROM x.t") == 20)
        try connection.requireSealedAttachments()
    }
}
