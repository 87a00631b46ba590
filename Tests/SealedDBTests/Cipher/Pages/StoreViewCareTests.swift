import Foundation
import Testing

@testable import SealedDB

/// By what it is noticed that somebody has written to a store since it was looked at.
@Suite(.hangLimit, .enabled(if: isEncrypting, "needs a codec"))
struct StoreViewCareTests {
    private let directory: TemporaryDirectory
    private var path: String { directory.file("db") }
    private let second = 1_700_000_000

    init() throws {
        directory = try TemporaryDirectory()
        let store = try Database.testing(path, journalMode: .delete)
        try store.fill(rows: 30)
        try #require(store.close())
        try setTime(of: "db", nanoseconds: 1)
    }

    /// The time of its last change.
    private func setTime(of name: String, nanoseconds: Int) throws {
        let time = timespec(tv_sec: second, tv_nsec: nanoseconds)
        try #require(utimensat(AT_FDCWD, directory.file(name), [time, time], 0) == 0)
    }

    private func error(after change: () throws -> Void) throws -> DatabaseError? {
        var opening = StoreOpening(path: path, key: try .testing(1))
        opening.looks = true
        let connection = try opening.open()
        defer { connection.close() }
        #expect(try connection.integer("SELECT count(*) FROM t") == 30)
        try connection.requireStill()
        try change()
        return #expect(throws: DatabaseError.self) { try connection.requireStill() }
    }

    /// In the same second.
    @Test func aPageThatIsWritten() throws {
        let error = try error {
            let descriptor = open(path, O_RDWR | O_CLOEXEC)
            defer { close(descriptor) }
            #expect(pwrite(descriptor, "x", 1, 5000) == 1)
            try setTime(of: "db", nanoseconds: 2)
        }
        #expect(error?.reason == .busy, "\(error as Any)")
    }

    /// Of the same size and time.
    @Test func anotherFileInItsPlace() throws {
        let error = try error {
            try directory.write("copy", directory.bytes("db"))
            try setTime(of: "copy", nanoseconds: 1)
            #expect(rename(directory.file("copy"), path) == 0)
        }
        #expect(error?.reason == .busy, "\(error as Any)")
    }
}
