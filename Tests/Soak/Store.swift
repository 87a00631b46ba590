import Foundation
import SealedDB

struct Violation: Error {
    let text: String
}

/// What both sides know of the store.
enum Store {
    static let schema = [
        "CREATE TABLE IF NOT EXISTS row (writer INTEGER, number INTEGER, body TEXT, PRIMARY KEY (writer, number))",
        "CREATE TABLE IF NOT EXISTS counter (writer INTEGER PRIMARY KEY, number INTEGER)",
    ]

    static func path(in directory: String) -> String { directory + "/store.db" }

    /// Two, between which the store is rotated; none in the plain build.
    static func keys(in directory: String) throws -> [Key] {
        guard EngineInfo.current().isEncrypting else { return [] }
        return try ["first.key", "second.key"].map { name in
            let file = directory + "/" + name
            if !FileManager.default.fileExists(atPath: file) { try KeyFile.create(atPath: file) }
            return try KeySource.keyFile(file).key()
        }
    }

    /// With whichever key fits: a kill may have come before or after a rotation's swap.
    static func openPool(in directory: String, keys: [Key]) throws -> DatabasePool {
        var failure: (any Error)?
        for key in keys.isEmpty ? [nil] : keys.map(Optional.some) {
            var configuration = Configuration(key: key)
            configuration.busyTimeout = .seconds(30)
            configuration.maximumReaderCount = 3
            let pool = DatabasePool(path: path(in: directory), configuration: configuration)
            do {
                try pool.writeWithoutTransaction { _ in }
                return pool
            } catch let error as DatabaseError where error.reason == .wrongKey {
                failure = error
            }
        }
        throw failure ?? Violation(text: "There is no key.")
    }

    static func integer(_ db: Database, _ sql: String) throws -> Int {
        let rows = try db.executeQuery(sql, values: nil)
        defer { rows.close() }
        return try rows.nextWithError() ? rows.long(forColumnIndex: 0) : 0
    }

    /// Each writer's rows are numbered without gaps, and as many as its counter says, in every state that can be seen.
    static func check(_ db: Database) throws {
        let wrong = try integer(
            db,
            """
            SELECT count(*) FROM counter WHERE number <> (SELECT count(*) FROM row WHERE row.writer = counter.writer)
                OR number <> (SELECT max(row.number) FROM row WHERE row.writer = counter.writer)
            """
        )
        let counted = try integer(db, "SELECT sum(number) FROM counter")
        let present = try integer(db, "SELECT count(*) FROM row")
        guard wrong == 0, counted == present else {
            throw Violation(
                text: "A reader saw \(wrong) wrong counters, \(counted) counted and \(present) present rows."
            )
        }
    }
}
