import Testing

@testable import SealedDB

extension Database {
    /// Has a transaction that is larger than the cache written before it is committed, as it is by other programs.
    /// - Parameter pageCount: how many pages the cache has, which are written together.
    func spillChanges(pageCount: Int = 1) throws {
        let connection = try #require(connection)
        try connection.unguarded { () throws(DatabaseError) in
            try connection.run("PRAGMA cache_size = \(pageCount)")
            try connection.run("PRAGMA cache_spill = 1")
        }
    }
}
