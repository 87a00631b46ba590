import FailingCalls
import Foundation
import Testing

@testable import SealedDB

/// A new file that somebody, or the disk, changes while it is made: it is not taken.
@Suite(.hangLimit, .enabled(if: isEncrypting, "needs a codec"))
struct ChangedCopyTests {
    private let directory: TemporaryDirectory

    init() throws {
        directory = try TemporaryDirectory()
        let database = try Database.testing(directory.file("db"), journalMode: .delete)
        try database.fill(rows: 300)
        try #require(database.close())
    }

    /// The key of copies. All have the same salt, so that a connection reads one in the place of another.
    private func newKey() throws -> Key {
        try [UInt8](repeating: 2, count: 32).withUnsafeBytes { key in
            try [UInt8](repeating: 9, count: 16).withUnsafeBytes { try Key.raw(key, salt: $0) }
        }
    }

    private func withSource(_ body: (Connection, Sealing) throws -> Void) throws {
        let sealing = Sealing(key: try .testing(1))
        let source = try StoreOpening(path: directory.file("db"), key: sealing.key).open()
        defer { source.close() }
        try body(source, sealing)
    }

    private func append(_ count: Int, to path: String) throws {
        let file = try FileHandle(forUpdating: URL(fileURLWithPath: path))
        try file.seekToEnd()
        try file.write(contentsOf: Data(count: count))
        try file.close()
    }

    /// Writes these bytes into the file, which stays the same one.
    private func replace(_ path: String, by bytes: Data) throws {
        let file = try FileHandle(forUpdating: URL(fileURLWithPath: path))
        try file.truncate(atOffset: 0)
        try file.write(contentsOf: bytes)
        try file.close()
    }

    /// A store like the source, but for what the SQL changes.
    private func other(_ sql: String) throws -> Data {
        try StoreBackup(
            path: directory.file("db"),
            key: .testing(1),
            to: directory.file("other"),
            backupKey: newKey()
        ).run()
        let database = Database(path: directory.file("other"), configuration: Configuration(key: try newKey()))
        try database.openVerified()
        try database.execute(script: "\(raw: sql)")
        try #require(database.close())
        return try directory.bytes("other")
    }

    /// - Parameters:
    ///   - phase: the phase in which `change` is called with the path of the copy.   - atEnd: whether it is called
    /// whenever all pages are said to be done, the last time when they are; or once, at the beginning.
    /// - Returns: the failure, which leaves the source as it is.
    private func failure(
        _ method: (Connection) throws -> StoreCopy.Method,
        plain: Bool = false,
        in phase: KeyRotation.Progress.Phase,
        atEnd: Bool = false,
        _ change: (String) throws -> Void
    ) throws -> DatabaseError? {
        var result: DatabaseError?
        try withSource { source, _ in
            try source.run("BEGIN")
            _ = try source.integer("SELECT count(*) FROM sqlite_schema")
            let copy = try StoreCopy(beside: directory.file("db"), takesAttributes: false)
            defer { copy.discard() }
            let sealing = Sealing(key: plain ? nil : try newKey())
            var isChanged = false
            let method = try method(source)
            do throws(DatabaseError) {
                _ = try withoutActuallyEscaping(change) { change in
                    Result { () throws(DatabaseError) in
                        try copy.fill(from: source, sealing: sealing, method: method, setsWAL: false) { progress in
                            guard atEnd || !isChanged, progress.phase == phase,
                                !atEnd || progress.completedPages == progress.totalPages
                            else { return }
                            isChanged = true
                            try change(copy.path)
                        }
                    }
                }.get()
            } catch {
                result = error
            }
            #expect(isChanged)
        }
        return result
    }

    private func transfer(_ source: Connection) throws -> StoreCopy.Method {
        .transfer(try PageSource(reading: source, key: .testing(1), settings: .init()))
    }

    private func rows(_ source: Connection) throws -> StoreCopy.Method { .rows(of: Sealing(key: try .testing(1))) }

    private func expectUnverified(
        _ error: DatabaseError?,
        _ text: String,
        _ location: SourceLocation = #_sourceLocation
    ) {
        #expect(error?.reason == .unverified, "\(String(describing: error))", sourceLocation: location)
        #expect(
            error?.message.contains(text) == true,
            "\(String(describing: error))",
            sourceLocation: location
        )
    }

    // MARK: Copies of pages

    @Test func aFileThatGrowsWhileItIsWritten() throws {
        let error = try failure(transfer, in: .copy, atEnd: true) { try append(4096, to: $0) }
        expectUnverified(error, "is not what was written")
    }

    /// SQLCipher reads another store, which is sound.
    @Test func anotherStoreInTheFile() throws {
        let other = try other("DELETE FROM t; VACUUM")
        let error = try failure(transfer, in: .verify) { try replace($0, by: other) }
        #expect(error?.reason == .unverified, "\(String(describing: error))")
        #expect(error?.message.contains("SQLCipher does not read it") == false, "\(String(describing: error))")
    }

    @Test func pagesThatAreNotAll() throws {
        let error = try failure({ _ in .pages }, in: .verify) { try append(10, to: $0) }
        expectUnverified(error, "the file has")
    }

    /// As many pages, all of them authentic, that hold something else.
    @Test func otherContents() throws {
        let other = try other("UPDATE t SET body = replace(body, 'secret', 'public') WHERE id = 7")
        let size = try directory.bytes("db").count
        try #require(other.count == size)
        let error = try failure({ _ in .pages }, in: .verify) { try replace($0, by: other) }
        expectUnverified(error, "its contents are not those of the source")
    }

    // MARK: Copies of rows

    @Test func ciphertextInPlaceOfPlaintext() throws {
        let other = try other("")
        let error = try failure(rows, plain: true, in: .copy, atEnd: true) { try replace($0, by: other) }
        expectUnverified(error, "it is no plaintext database")
    }

    @Test func bytesBehindTheLastPage() throws {
        let error = try failure(rows, in: .verify) { try append(10, to: $0) }
        expectUnverified(error, "the file ends with 10 bytes")
    }

    /// The same rows, and a free page that is not as it was written.
    @Test func aFreePageThatIsDamaged() throws {
        var other = try other("CREATE TABLE u (a); INSERT INTO u VALUES (zeroblob(20000)); DROP TABLE u")
        let last = other.count - 4096
        other[last + 1000] ^= 1
        let page = other.count / 4096
        let error = try failure(rows, in: .verify) { try replace($0, by: other) }
        expectUnverified(error, "page \(page)")
    }

    // MARK: Later changes

    @Test func anotherFileWhileItIsAmended() throws {
        try withSource { source, _ in
            let copy = try StoreCopy(beside: directory.file("db"), takesAttributes: false)
            defer { copy.discard() }
            let sealing = Sealing(key: try .testing(2))
            _ = try copy.fill(from: source, sealing: sealing, method: .pages, setsWAL: false, progress: nil)
            try directory.write("another", directory.bytes("db"))
            let error = #expect(throws: DatabaseError.self) {
                try copy.amend(sealing) { connection throws(DatabaseError) in
                    try connection.run("PRAGMA user_version = 5")
                    #expect(rename(directory.file("another"), copy.path) == 0)
                }
            }
            #expect(error?.reason == .unverified, "\(String(describing: error))")
        }
    }

    @Test func pagesThatAreDamagedAfterwards() throws {
        try withSource { source, _ in
            let copy = try StoreCopy(beside: directory.file("db"), takesAttributes: false)
            defer { copy.discard() }
            let sealing = Sealing(key: try .testing(2))
            _ = try copy.fill(from: source, sealing: sealing, method: .pages, setsWAL: false, progress: nil)
            #expect(try copy.structureProblems(sealing) == [])
            let file = try FileHandle(forUpdating: URL(fileURLWithPath: copy.path))
            try file.seek(toOffset: 3 * 4096 + 100)
            try file.write(contentsOf: Data([1, 2, 3, 4]))
            try file.close()
            let error = #expect(throws: DatabaseError.self) { try copy.structureProblems(sealing) }
            expectUnverified(error, "page 4")
        }
    }

    @Test func pagesOfAnotherSize() throws {
        let copy = try StoreCopy(beside: directory.file("db"), takesAttributes: false)
        defer { copy.discard() }
        let sealing = Sealing(key: try .testing(2), settings: CipherSettings(pageSize: 8192))
        #expect(throws: Never.self) { try copy.openTarget(sealing, pageSize: 8192).close() }
        let error = #expect(throws: DatabaseError.self) { try copy.openTarget(sealing, pageSize: 4096).close() }
        expectUnverified(error, "differ in size")
    }

    /// A name that somebody else has taken stays theirs.
    @Test func theNameOfTheOldFileIsTaken() throws {
        let before = try directory.bytes("db")
        let copy = try StoreCopy(beside: directory.file("db"), takesAttributes: false)
        let kept = try directory.write("kept", "somebody else's".utf8)
        let error = #expect(throws: DatabaseError.self) { try copy.swapIn(keepingOldUnder: kept) }
        #expect(error?.reason == .cannotCreate, "\(String(describing: error))")
        #expect(try directory.bytes("kept").elementsEqual("somebody else's".utf8))
        #expect(try directory.bytes("db") == before && directory.namesOfFiles == ["db", "kept"])
    }

    /// - Parameter calls: the numbers of the calls that fail.
    /// - Returns: all calls, and what the failure says.
    private func swap(failing calls: [Int]) throws -> (calls: [String], message: String?) {
        for name in directory.names where name != "db" { unlink(directory.file(name)) }
        try directory.write("db-wal", [1, 2, 3])
        let copy = try StoreCopy(beside: directory.file("db"), takesAttributes: false)
        let watches = (calls.isEmpty ? [-1] : calls).map { call in
            CallWatch(directory.path, failing: call < 0 ? nil : call...call)
        }
        let result = Result { try copy.swapIn(keepingOldUnder: directory.file("kept")) }
        let all = watches.map { $0.endWithAll() }
        guard case .failure(let error) = result else { return (all[0], nil) }
        return (all[0], (error as? DatabaseError)?.message)
    }

    /// Where the old file gets its name back, that must also be durable. Otherwise it keeps the other one, too.
    @Test func theOldNameThatIsNotSynced() throws {
        let before = try directory.bytes("db")
        let rename = try #require(try swap(failing: []).calls.lastIndex { $0.hasPrefix("rename") })
        try directory.write("db", before)
        let failed = try swap(failing: [rename])
        #expect(failed.message?.contains("is unchanged") == true, "\(failed)")
        #expect(directory.namesOfFiles == ["db", "db-wal"])
        let sync = try #require(failed.calls.lastIndex { $0.hasPrefix("fsync") || $0.hasPrefix("fdatasync") })
        try #require(sync > rename)
        let both = try swap(failing: [rename, sync])
        #expect(both.message?.contains("the store is whole as") == true, "\(both)")
        #expect(directory.namesOfFiles == ["db", "db-wal", "kept", "kept-wal"])
        #expect(try directory.bytes("db") == before && directory.bytes("kept") == before)
    }

    // MARK: The check alone

    private func problems(_ opened: Key?, _ sealing: Sealing) throws -> [String] {
        let opening = StoreOpening(
            path: directory.file("db"),
            key: opened,
            settings: sealing.settings,
            takesLock: false
        )
        let check = CopyCheck(opening: opening, sealing: sealing) { _ in }
        return try check.problems(pageCount: Int64(directory.bytes("db").count / 4096))
    }

    @Test func whetherItIsPlaintext() throws {
        #expect(try problems(nil, Sealing()) == ["it is no plaintext database"])
        let plain = Database(path: directory.file("db-plain"))
        #expect(plain.open())
        try plain.fill(rows: 10)
        plain.close()
        try directory.write("db", directory.bytes("db-plain"))
        #expect(try problems(nil, Sealing()) == [])
        #expect(try problems(nil, Sealing(key: .testing(2))).contains("it is plaintext"))
    }

    /// What the disk does not read is no property of the file.
    @Test func aPlaceThatCannotBeRead() throws {
        let plain = Database(path: directory.file("db-plain"))
        #expect(plain.open())
        try plain.fill(rows: 300)
        plain.close()
        try directory.write("db", directory.bytes("db-plain"))
        let place = failing_calls_spoil(directory.file("db"), 3 * 4096)
        try #require(place >= 0)
        defer { failing_calls_mend(place) }
        let error = #expect(throws: DatabaseError.self) { try problems(nil, Sealing()) }
        #expect(error?.code == SQLITE_IOERR, "\(String(describing: error))")
    }

    /// Without codes, pages are compared with those of a source, if there is one.
    @Test func pagesWithoutCodes() throws {
        let settings = CipherSettings(usesHMAC: false)
        var configuration = Configuration(key: try .testing(1))
        configuration.cipherSettings = settings
        for name in ["one", "two"] {
            let database = Database(path: directory.file(name), configuration: configuration)
            try database.openVerified()
            try database.execute(script: "CREATE TABLE t (a); INSERT INTO t VALUES ('\(raw: name)')")
            database.close()
        }
        let sealing = Sealing(key: try .testing(1), settings: settings)
        func problems(_ first: String, _ second: String?) throws -> [String] {
            func opening(_ name: String) -> StoreOpening {
                StoreOpening(path: directory.file(name), key: sealing.key, settings: settings, takesLock: false)
            }
            let source = try second.map { try opening($0).open() }
            defer { source?.close() }
            let scan = source.map { PageScan(connection: $0, key: sealing.key!, settings: settings) }
            let check = CopyCheck(opening: opening(first), sealing: sealing, source: scan) { _ in }
            return try check.problems(pageCount: 2)
        }
        #expect(try problems("one", nil) == [] && problems("one", "one") == [])
        #expect(try problems("one", "two") == ["page 2 differs from that of the store"])
    }

    /// A file system may give zeros for a page that SQLite never wrote.
    @Test func aFreePageOfZeros() throws {
        let database = try Database.testing(directory.file("db"))
        try database.execute(script: "CREATE TABLE u (a); INSERT INTO u VALUES (zeroblob(20000)); DROP TABLE u")
        database.close()
        let size = try directory.bytes("db").count
        try directory.overwrite("db", at: size - 4096, with: [UInt8](repeating: 0, count: 4096))
        #expect(try problems(.testing(1), Sealing(key: .testing(1))) == [])
    }
}
