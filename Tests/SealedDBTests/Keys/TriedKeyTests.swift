import Foundation
import Testing

@testable import SealedDB

/// Keys that are tried one after the other: only a wrong one leads to the next.
@Suite(.hangLimit, .enabled(if: isEncrypting, "the plain build has no keys"))
struct TriedKeyTests {
    private let directory: TemporaryDirectory
    private static let wrong = DatabaseError(extendedCode: SQLITE_NOTADB, reason: .wrongKey, message: "wrong")
    private static let busy = DatabaseError(extendedCode: SQLITE_BUSY, reason: .busy, message: "busy")

    init() throws {
        directory = try TemporaryDirectory()
    }

    /// A source whose key has changed since it was read.
    private func source() throws -> SourcedKey {
        let path = try directory.write("key", String(repeating: "01", count: 32).utf8)
        let key = SourcedKey(.keyFile(path))
        #expect(try key.key() == .testing(1))
        try directory.write("key", String(repeating: "02", count: 32).utf8)
        return key
    }

    @Test func theKeyThatIsReadAgain() throws {
        let first = try Key.testing(1)
        let error = #expect(throws: DatabaseError.self) {
            _ = try source().attempt { (key: Key) throws(DatabaseError) -> Int in
                throw key == first ? Self.wrong : Self.busy
            }
        }
        #expect(error?.reason == .busy, "\(error as Any)")
        let refused = try source().attempt { (_: Key) throws(DatabaseError) -> Int in throw Self.wrong }
        guard case .wrongKey(let error) = refused else {
            Issue.record("\(refused)")
            return
        }
        #expect(error.reason == .wrongKey)
        let opened = try source().attempt { (key: Key) throws(DatabaseError) -> Int in
            guard key != first else { throw Self.wrong }
            return 2
        }
        guard case .opened(2, let key) = opened else {
            Issue.record("\(opened)")
            return
        }
        #expect(try key == .testing(2))
    }

    /// That a ring cannot be read is told only if no key of it is right.
    @Test func aRingThatCannotBeReadAgain() throws {
        let path = directory.file("ring")
        try KeyRing(activeID: "one", key: .testing(1)).write(toNewFile: path)
        let origin = KeyOrigin.ring(.init(try KeyRing(contentsOfFile: path)))
        unlink(path)
        func failure(_ error: DatabaseError) -> DatabaseError? {
            #expect(throws: DatabaseError.self) {
                _ = try origin.open("The store", adopted: nil) { (_: Key) throws(DatabaseError) -> Int in throw error }
            }
        }
        #expect(failure(Self.busy)?.reason == .busy)
        #expect(failure(Self.wrong)?.message.contains("does not open with the keys that were read before") == true)
        #expect(try origin.open("The store", adopted: nil) { (_: Key) throws(DatabaseError) in 1 }.0 == 1)
    }
}
