import Testing

@testable import SealedDB

extension Database {
    /// Has a transaction that is larger than the cache written before it is committed, as it is by other programs.
    func spillChanges() throws {
        let connection = try #require(connection)
        try connection.unguarded { () throws(DatabaseError) in
            try connection.run("PRAGMA cache_size = 1")
            try connection.run("PRAGMA cache_spill = 1")
        }
    }
}
