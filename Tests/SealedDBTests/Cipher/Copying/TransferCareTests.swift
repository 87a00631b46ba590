import Foundation
import Testing

@testable import SealedDB

/// When a copy that is made page by page is not used, and when no page is copied as it is.
@Suite(.hangLimit, .enabled(if: isEncrypting, "needs a codec"))
struct TransferCareTests {
    private let directory: TemporaryDirectory
    private let connection: Connection

    init() throws {
        directory = try TemporaryDirectory()
        let store = try Database.testing(directory.file("db"), journalMode: .delete)
        try store.fill(rows: 300)
        try #require(store.close())
        connection = try StoreOpening(path: directory.file("db"), key: .testing(1), takesLock: false).open()
    }

    private func transfer(to settings: CipherSettings = .init()) throws -> PageTransfer {
        let source = try PageSource(still: connection, key: .testing(1), settings: .init())
        return try PageTransfer(source, to: Sealing(key: .testing(1), settings: settings), .kept)
    }

    private func newFile() throws -> NewFile {
        let path = directory.file("new")
        let file = try NewFile(FileIdentity(creating: path), path: path)
        return try #require(file)
    }

    /// The first page is encrypted from another place on then.
    @Test func anotherPlaintextHeader() throws {
        #expect(try transfer().keepsCiphertext(ofPage: 1))
        let settings = CipherSettings(plaintextHeaderSize: 32, salt: [UInt8](repeating: 7, count: 16))
        let transfer = try transfer(to: settings)
        #expect(!transfer.keepsCiphertext(ofPage: 1))
        try transfer.run(into: newFile()) { _ in }
        let copy = try StoreOpening(path: directory.file("new"), key: .testing(1), settings: settings).open()
        defer { copy.close() }
        #expect(try copy.integer("SELECT count(*) FROM t") == 300)
        #expect(connection.close())
    }

    /// Somebody writes behind the last page, which is none of those that are read back.
    @Test func aFileThatGetsLonger() throws {
        let file = try newFile()
        let error = #expect(throws: DatabaseError.self) {
            try transfer().run(into: file) { _ in
                let descriptor = open(directory.file("new"), O_WRONLY | O_APPEND | O_CLOEXEC)
                #expect(write(descriptor, "more", 4) == 4)
                close(descriptor)
            }
        }
        #expect(error?.reason == .unverified, "\(error as Any)")
        #expect(connection.close())
    }

    /// Who stops it at the last page has stopped it.
    @Test func aStopAtTheLastPage() throws {
        let transfer = try transfer()
        #expect(throws: DatabaseError.stopped) {
            try transfer.run(into: newFile()) { last throws(DatabaseError) in
                if last == transfer.source.totals.count { throw .stopped }
            }
        }
        #expect(connection.close())
    }
}
