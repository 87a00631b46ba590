import Foundation
import Testing

@testable import SealedDB

/// What a program may ask of a restore that has not read how.
@Suite(.enabled(if: isEncrypting, "needs a codec"), .hangLimit)
struct RestoreMisuseTests {
    private let store: ReplicatedStore
    private let whole: Data

    init() throws {
        store = try ReplicatedStore()
        try store.commit(ReplicatedStore.rows(20, bytes: 3000))
        try store.ship()
        whole = try store.restoredBytes()
    }

    private func error(_ restore: RepositoryRestore) -> DatabaseError? {
        do throws(DatabaseError) {
            try restore.run()
            return nil
        } catch {
            return error
        }
    }

    /// Each is told, and leaves nothing.
    @Test func placesThatCannotBe() throws {
        let link = store.directory.file("link")
        #expect(symlink(store.repository, link) == 0)
        let names = store.directory.names.sorted()
        let objects = try store.objects("")
        let places: [(path: String, reasons: [DatabaseError.Reason])] = [
            ("", [.cannotCreate]),
            (store.directory.path, [.alreadyExists]),
            (store.directory.path + "/", [.alreadyExists]),
            (store.directory.file("a.db") + "/", [.cannotCreate]),
            (store.directory.file("a.db\0b"), [.misuse]),
            (store.directory.file("none/a.db"), [.cannotCreate]),
            (store.path, [.alreadyExists]),
            (store.path + "-wal", [.alreadyExists]),
            (store.repository, [.alreadyExists]),
            (store.repository + "/a.db", [.alreadyExists]),
            (store.repository + "/chunks/a.db", [.alreadyExists]),
            (link + "/a.db", [.alreadyExists]),
            (link, [.alreadyExists]),
        ]
        for (path, reasons) in places {
            for replaces in [false, true] where !replaces || !reasons.contains(.alreadyExists) {
                let error = error(RepositoryRestore(from: store.repository, to: path, replaces: replaces))
                #expect(error.map { reasons.contains($0.reason) } == true, "\(path): \(String(describing: error))")
            }
        }
        // Those that are there, with the wish to replace them.
        for path in [store.directory.path, store.repository, store.repository + "/a.db", link + "/lease", link] {
            #expect(error(RepositoryRestore(from: store.repository, to: path, replaces: true)) != nil, "\(path)")
        }
        for name in objects {
            let error = error(RepositoryRestore(from: store.repository, to: store.object(name), replaces: true))
            #expect(error?.reason == .alreadyExists, "\(name): \(String(describing: error))")
        }
        let now = store.directory.names.sorted().filter { !$0.hasSuffix("-sealdb-lock") }
        #expect(now == names.filter { !$0.hasSuffix("-sealdb-lock") })
        #expect(try store.objects("") == objects)
        #expect(try store.restore().commits == store.states.count)
    }

    /// Its rows and its locks are there as before.
    @Test func aStoreInUseInThisProcess() throws {
        store.killShipper()
        let count = try store.database.integers("SELECT count(*) FROM step")
        #expect(store.database.beginTransaction())
        try store.database.executeUpdate("INSERT INTO step (number) VALUES (99)")
        for replaces in [false, true] {
            let error = error(RepositoryRestore(from: store.repository, to: store.path, replaces: replaces))
            #expect(error?.reason == (replaces ? .busy : .alreadyExists), "\(String(describing: error))")
        }
        let other = try Database.testing(store.path)
        #expect(!other.executeStatements("BEGIN IMMEDIATE"))
        other.close()
        #expect(store.database.commit())
        #expect(try store.database.integers("SELECT count(*) FROM step") == [count[0] + 1])
        #expect(TemporaryFile.leftovers(of: store.path) == [])
    }

    @Test func repositoriesThatCannotBe() throws {
        let target = store.directory.file("target.db")
        for repository in [
            "", "/", ".", store.path, store.directory.path, store.directory.file("none"), "/dev/null", "s3://",
            "a\0b", store.repository + "\0",
        ] {
            let error = error(RepositoryRestore(from: repository, to: target))
            #expect(error != nil && !FileSystem.exists(target), "\(repository): \(String(describing: error))")
            #expect(error?.message.contains("Nothing was restored") == true, "\(String(describing: error))")
        }
        #expect(store.directory.names.filter { $0.contains("target") } == [])
    }

    @Test func anyDate() throws {
        let target = store.directory.file("target.db")
        for seconds in [-Double.infinity, -1e300, -1e9, -1, -0.0, 0, 1, .nan, .signalingNaN] {
            let restore = RepositoryRestore(
                from: store.repository,
                at: .time(Date(timeIntervalSince1970: seconds)),
                to: target
            )
            let error = error(restore)
            #expect(error?.reason == .noSuchFile, "\(seconds): \(String(describing: error))")
        }
        for seconds in [Double.infinity, 1e300, .greatestFiniteMagnitude, 1e15, 1e12, 4e9] {
            let restore = RepositoryRestore(
                from: store.repository,
                at: .time(Date(timeIntervalSince1970: seconds)),
                to: target
            )
            let report = try restore.run()
            #expect(try Data(contentsOf: URL(fileURLWithPath: target)) == whole)
            #expect(unlink(target) == 0)
            // What it was restored to brings the same again.
            let again = RepositoryRestore(from: store.repository, at: .time(report.restoredTo), to: target)
            #expect(try again.run().restoredTo == report.restoredTo)
            #expect(unlink(target) == 0)
        }
        for number in [Int64.min, -1, 0, 2, .max] {
            let restore = RepositoryRestore(from: store.repository, at: .generation(number), to: target)
            #expect(error(restore)?.reason == .noSuchFile)
        }
    }

    @Test func anyBandwidth() throws {
        let target = store.directory.file("target.db")
        for limit in [Int64.max, 1 << 40, 1 << 24] {
            try RepositoryRestore(from: store.repository, to: target, maximumBytesPerSecond: limit).run()
            #expect(try Data(contentsOf: URL(fileURLWithPath: target)) == whole)
            #expect(unlink(target) == 0)
        }
        for limit in [Int64.min, -1, 0] {
            let restore = RepositoryRestore(from: store.repository, to: target, maximumBytesPerSecond: limit)
            #expect(error(restore)?.reason == .misuse && !FileManager.default.fileExists(atPath: target))
        }
    }
}
