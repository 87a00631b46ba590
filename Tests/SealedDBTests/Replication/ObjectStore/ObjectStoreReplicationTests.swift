#if ObjectStores
    import Foundation
    import Testing

    @testable import SealedDB

    enum ObjectStoreReplication {
        /// Ships a store that is written to, with failures that are as they are, and restores it after each success.
        /// - Parameter endFailures: called before what must succeed.
        static func shipAndRestore(
            rounds: Int = 4,
            endFailures: () -> Void = {},
            _ open: () throws -> ObjectStoreStorage
        ) throws {
            let directory = try TemporaryDirectory()
            let path = directory.file("app.db")
            let database = try Database.testing(path, journalMode: .wal)
            defer { database.close() }
            try database.executeUpdate("CREATE TABLE step (number INTEGER PRIMARY KEY, data)", values: nil)
            var replicator = try Replicator(path: path, key: .testing(1), storage: open())
            defer { replicator.close() }
            var shipped = -1
            for round in 0..<rounds {
                try database.executeUpdate("INSERT INTO step VALUES (?, randomblob(30000))", values: [round])
                do {
                    _ = try replicator.ship()
                    shipped = round
                } catch {
                    #expect([.ioError, .noSpace].contains(error.reason), "\(error)")
                }
                // The next one is another process, every other time.
                guard round % 2 == 1 else { continue }
                replicator.close()
                replicator = try Replicator(path: path, key: .testing(1), storage: open())
            }
            // At the latest without failures.
            endFailures()
            _ = try replicator.ship()
            shipped = max(shipped, rounds - 1)
            let target = directory.file("restored.db")
            try RepositoryRestore(storage: try open(), to: target).run()
            let copy = try Database.testing(target)
            defer { copy.close() }
            #expect(try copy.integers("SELECT count(*) FROM step") == [shipped + 1])
            #expect(try IntegrityReport.verify(path: target, key: .testing(1)).isSound)
            #expect(try RepositoryStatus(try open(), verifies: true).problems.isEmpty)
        }
    }

    /// A store is shipped to an object store that fails in all ways.
    @Suite(.hangLimit)
    struct ObjectStoreReplicationTests {
        @Test(arguments: ObjectStoreTests.passing, ObjectStoreDouble.Conditions.allCases)
        func failing(_ fault: ObjectStoreDouble.Fault, _ conditions: ObjectStoreDouble.Conditions) throws {
            let store = try ObjectStoreDouble(conditions)
            defer { store.stop() }
            // Every seventh request, and 20 in a row that no attempts outlast.
            store.fail { _, number in number % 7 == 3 || (40..<60).contains(number) ? fault : nil }
            try ObjectStoreReplication.shipAndRestore(rounds: 8) {
                store.fail { _, _ in nil }
            } _: {
                try store.storage()
            }
        }

        /// What was shipped is there after any number of requests, whatever becomes of the rest.
        @Test(arguments: [ObjectStoreDouble.Fault.answer(507, ""), .cutBefore, .cutRequest])
        func cutOff(_ fault: ObjectStoreDouble.Fault) throws {
            for last in stride(from: 0, to: 40, by: 3) {
                let store = try ObjectStoreDouble()
                defer { store.stop() }
                let directory = try TemporaryDirectory()
                let path = directory.file("app.db")
                let database = try Database.testing(path, journalMode: .wal)
                defer { database.close() }
                try database.executeUpdate("CREATE TABLE step (number INTEGER PRIMARY KEY)", values: nil)
                let replicator = try Replicator(path: path, key: .testing(1), storage: store.storage())
                defer { replicator.close() }
                store.fail { _, number in number < last ? nil : fault }
                var shipped: Int?
                for round in 1...5 {
                    try database.executeUpdate("INSERT INTO step VALUES (?)", values: [round])
                    do {
                        _ = try replicator.ship()
                        shipped = round
                    } catch { break }
                }
                store.fail { _, _ in nil }
                guard let shipped else { continue }
                let target = directory.file("restored.db")
                try RepositoryRestore(storage: try store.storage(), to: target).run()
                let copy = try Database.testing(target)
                defer { copy.close() }
                #expect(try copy.integers("SELECT count(*) FROM step")[0] >= shipped)
            }
        }
    }
#endif
