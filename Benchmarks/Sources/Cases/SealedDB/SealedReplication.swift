import Foundation
import SealedDB

extension SealedMakers {
    /// Shipping, which the plain build has not.
    static var replication: [String: Maker] {
        var result: [String: Maker] = [:]
        #if SQLCipher
            result["replication.writer.alone"] = { try writer($0, repository: nil) }
            result["replication.writer.shipped"] = { try writer($0, repository: $0.newPath("repository")) }
            result["replication.snapshot"] = { fixtures in
                let (path, mebibytes) = try LargeStoreCases.store("shipped", fixtures)
                let repository = fixtures.newPath("repository")
                return Work(units: mebibytes, before: { try remove(repository) }) {
                    try ship(path, to: repository)
                    return 1
                }
            }
            result["replication.restore"] = { fixtures in
                let (path, mebibytes) = try LargeStoreCases.store("restored", fixtures)
                let (repository, target) = (fixtures.newPath("repository"), fixtures.newPath("restored"))
                try ship(path, to: repository)
                return Work(units: mebibytes, before: { try remove(target) }) {
                    try RepositoryRestore(from: repository, to: target).run()
                    return 1
                }
            }
        #endif
        return result
    }

    #if SQLCipher
        private static func remove(_ path: String) throws {
            guard FileManager.default.fileExists(atPath: path) else { return }
            try FileManager.default.removeItem(atPath: path)
        }

        /// Ships all of a store.
        private static func ship(_ path: String, to repository: String) throws {
            var configuration = try StoreOptions().configuration
            configuration.replication = Replication(to: repository)
            configuration.replication?.isRequiredForOpening = true
            try DatabaseQueue(path: path, configuration: configuration).close()
        }

        private static func writer(_ fixtures: Fixtures, repository: String?) throws -> Work {
            var configuration = try StoreOptions().configuration
            configuration.replication = repository.map { Replication(to: $0) }
            let queue = try DatabaseQueue(path: fixtures.newPath(), configuration: configuration)
            try queue.inDatabase { db in try db.executeUpdate(TransactionCases.createTable, values: nil) }
            if repository != nil { try queue.replicate() }
            let (commits, rows) = (ReplicationCases.commits, ReplicationCases.rows)
            return Work(units: commits * rows, isUniform: false) {
                for _ in 0..<commits {
                    try queue.write { db in
                        for row in 0..<rows { try insertEntry(row, into: db) }
                    }
                }
                return UInt64(commits * rows)
            }
        }
    #endif
}
