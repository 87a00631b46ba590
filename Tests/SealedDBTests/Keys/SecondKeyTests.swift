import Foundation
import Testing

@testable import SealedDB

/// What becomes of a store that meets another error with the key that was read anew.
@Suite(.hangLimit)
struct SecondKeyTests {
    private let directory: TemporaryDirectory
    private let file: String
    private let source: SourcedKey

    /// A key is known, and its file has another one by now.
    init() throws {
        directory = try TemporaryDirectory()
        file = try directory.write("key", [UInt8](repeating: 1, count: 32))
        source = SourcedKey(.keyFile(file))
        #expect(try source.key() == .testing(1))
        try directory.write("key", [UInt8](repeating: 2, count: 32))
    }

    private static func error(_ message: String, _ reason: DatabaseError.Reason) -> DatabaseError {
        DatabaseError(extendedCode: 1, reason: reason, message: message)
    }

    /// Opens nothing: each key meets its own error.
    private func attempt(
        _ source: SourcedKey,
        second: DatabaseError
    ) throws -> SourcedKey.Attempt<Int, DatabaseError> {
        let first = try Key.testing(1)
        return try source.attempt { key throws(DatabaseError) -> Int in
            throw key == first ? Self.error("first", .wrongKey) : second
        }
    }

    /// A store that is locked or cannot be read says so, and not that the key is wrong.
    @Test(arguments: [DatabaseError.Reason.busy, .ioError, .damaged]) func anotherErrorIsTold(
        reason: DatabaseError.Reason
    ) throws {
        let error = #expect(throws: DatabaseError.self) {
            try attempt(source, second: Self.error("second", reason))
        }
        #expect(error?.reason == reason && error?.message == "second")
    }

    @Test func theErrorOfTheSecondKeyIsTold() throws {
        guard case .wrongKey(let error) = try attempt(source, second: Self.error("second", .wrongKey)) else {
            Issue.record("The key is wrong.")
            return
        }
        #expect(error.message == "second")
    }

    /// The key of then is wrong, and whether the store has another one is not known.
    @Test func aFileThatIsGone() throws {
        unlink(file)
        guard case .unreadable(let error) = try attempt(source, second: Self.error("second", .wrongKey)) else {
            Issue.record("The file is not there.")
            return
        }
        #expect(error.reason == .noSuchFile)
    }

    /// In a ring, too: the keys behind it are not tried.
    @Test func aRingEndsAtAnotherError() throws {
        var ring = try KeyRing(activeID: "a", source: .keyFile(file))
        try ring.add(.testing(3), id: "b")
        try directory.write("key", [UInt8](repeating: 1, count: 32))
        #expect(try ring.key("a") == .testing(1))
        try directory.write("key", [UInt8](repeating: 2, count: 32))
        let first = try Key.testing(1)
        var tried: [String] = []
        let error = #expect(throws: DatabaseError.self) {
            try ring.withKey(toOpen: directory.file("db")) { key, id in
                tried.append(id)
                throw key == first ? Self.error("first", .wrongKey) : Self.error("second", .busy)
            }
        }
        #expect(error?.reason == .busy)
        #expect(tried == ["a", "a"])
    }
}
