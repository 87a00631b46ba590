import Foundation
import Testing

@testable import SealedDB

/// A replicated store, and a copy that follows its repository.
final class FollowedReplica {
    let store: ReplicatedStore
    let path: String
    let storage: TestStorage
    var options = Follower.Options()
    private(set) var follower: Follower?
    /// How many commits the replica had when it was last looked at.
    private(set) var commits = 0
    private var reader: (database: Database, state: String)?

    init() throws {
        store = try ReplicatedStore()
        path = store.directory.file("replica.db")
        storage = try TestStorage(store.repository)
        options.relievedAt = 60_000
        options.batchBytes = 100_000
        options.listingInterval = .zero
        options.busyTimeout = .zero
    }

    @discardableResult
    func follow(progress: ((KeyRotation.Progress) throws -> Void)? = nil) throws -> Follower.Report {
        if follower == nil { follower = try Follower(storage: storage, to: path, options: options) }
        return try follower!.follow(progress: progress)
    }

    /// The whole copies, or parts of them, that lie beside the replica.
    var copies: [String] {
        let next = FollowerFile.pathOfNext(path)
        return TemporaryFile.leftovers(of: next) + (FileSystem.exists(next) ? [next] : [])
    }

    /// The chunks that were read since the last call.
    func chunksRead() -> [String] {
        defer { storage.namesRead = [] }
        return storage.namesRead.filter { $0.hasPrefix(ObjectName.chunks) }
    }

    /// The same after a step of the follower that is its last one, if it comes to it.
    /// - Returns: whether it came to it.
    func follow(killedAt step: Follower.Step) throws -> Bool {
        if follower == nil { follower = try Follower(storage: storage, to: path, options: options) }
        follower?.atStep = { found throws(DatabaseError) in
            if found == step { throw FollowedReplica.killed }
        }
        // Also if it ends before that step by something else.
        defer { follower?.atStep = { _ throws(DatabaseError) in } }
        do {
            try follower!.follow()
        } catch {
            guard error.message == FollowedReplica.killed.message else { throw error }
            kill()
            return true
        }
        return false
    }

    /// What a step throws that is the last one of its process.
    static let killed = DatabaseError(extendedCode: SQLITE_ABORT, message: "The follower is killed.")

    /// Ends the follower as if its process were killed.
    func kill() {
        follower?.abandon()
        follower = nil
    }

    func close() {
        follower?.close()
        follower = nil
    }

    func ship() throws {
        try store.ship()
    }

    /// Opens the replica with the key of its generation.
    func open() throws -> Database {
        try Database.testing(path, key: store.keys[generation] ?? store.key)
    }

    /// The generation that the replica was last known to be of.
    private(set) var generation: Int64 = 1

    func note(_ generation: Int64) { if generation > 0 { self.generation = generation } }

    /// Looks at the replica with the key, over a new connection.
    /// - Returns: the number of commits that it holds, after which the store was just so.
    @discardableResult
    func check(
        atLeast least: Int = 0,
        verifies: Bool = false,
        sourceLocation: SourceLocation = #_sourceLocation
    ) throws -> Int {
        let database = try open()
        defer { database.close() }
        let state = try ReplicatedStore.state(database)
        let found = try database.integers("SELECT count(*) FROM step")[0]
        try #require(found > 0 && found <= store.states.count, sourceLocation: sourceLocation)
        #expect(store.states[found - 1] == state, "\(found)", sourceLocation: sourceLocation)
        #expect(found >= max(commits, least), "\(found)", sourceLocation: sourceLocation)
        if verifies {
            #expect(try database.value("PRAGMA integrity_check") == .text("ok"), sourceLocation: sourceLocation)
            #expect(try database.rows("PRAGMA cipher_integrity_check").isEmpty, sourceLocation: sourceLocation)
        }
        commits = max(commits, found)
        return found
    }

    // MARK: A reader in a transaction

    var isRead: Bool { reader != nil }

    func beginReading() throws {
        guard reader == nil else { return }
        let database = try open()
        #expect(database.executeStatements("BEGIN"))
        reader = (database, try ReplicatedStore.state(database))
    }

    /// It sees what it saw when it began.
    func checkReader() throws {
        guard let (database, state) = reader else { return }
        #expect(try ReplicatedStore.state(database) == state)
    }

    func endReading() throws {
        try checkReader()
        reader?.database.executeStatements("COMMIT")
        reader?.database.close()
        reader = nil
    }
}
