import Foundation
import Testing

@testable import SealedDB

/// What is told of a page that the disk does not give.
@Suite(.hangLimit)
struct ReadCodeTests {
    /// SQLite would call the store damaged.
    @Test func theCodeThatSQLiteGets() {
        #expect(PageWatch.note(read: SQLITE_IOERR_CORRUPTFS) == SQLITE_IOERR_READ)
        let others = [SQLITE_OK, SQLITE_IOERR_SHORT_READ, SQLITE_IOERR_READ, SQLITE_IOERR, SQLITE_FULL]
        #expect(others.map(PageWatch.note(read:)) == others)
        // Of the last read.
        #expect(PageWatch.note(read: SQLITE_OK) == SQLITE_OK)
    }

    /// Nor is the key wrong, or the store damaged.
    @Test func eachReadOfAStoreThatIsOpened() throws {
        let directory = try TemporaryDirectory()
        let path = directory.file("db")
        let store = try Database.testing(path, journalMode: .delete)
        try store.fill(rows: 300)
        #expect(store.close())
        func read() throws {
            let connection = try StoreOpening(path: path, key: isEncrypting ? .testing(1) : nil).open()
            defer { connection.close() }
            #expect(try connection.integer("SELECT count(*) FROM t") == 300)
        }
        let all = CallWatch(directory.path)
        try read()
        let calls = all.endWithAll()
        for code in [EIO, EBADMSG] {
            var failures = 0
            for index in calls.indices where calls[index] == "pread db" {
                let watch = CallWatch(directory.path, failing: index...index, code: code)
                defer { watch.end() }
                do {
                    try read()
                } catch let error as DatabaseError {
                    failures += 1
                    #expect(error.reason == .ioError, "\(index): \(error)")
                }
            }
            #expect(failures > 0, "\(calls)")
        }
    }
}
