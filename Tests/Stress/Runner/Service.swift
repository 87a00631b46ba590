import Foundation
import SealedDB

/// The queue or pool that the clients of a process share.
enum Service: Sendable {
    case queue(DatabaseQueue)
    case pool(DatabasePool)

    init(_ kind: ServiceKind, path: String, key: Key, setsForeignKeysBySQL: Bool) throws {
        var configuration = Configuration(key: key)
        configuration.busyTimeout = .seconds(20)
        configuration.maximumReaderCount = 3
        if !setsForeignKeysBySQL {
            configuration.prepare = { db in try db.executeUpdate("PRAGMA foreign_keys = ON", values: nil) }
        }
        switch kind {
        case .queue: self = .queue(try DatabaseQueue(path: path, configuration: configuration))
        case .pool: self = .pool(DatabasePool(path: path, configuration: configuration))
        }
        if setsForeignKeysBySQL {
            try access.writeWithoutTransaction { db in try db.executeUpdate("PRAGMA foreign_keys = ON", values: nil) }
        }
    }

    var access: any DatabaseAccess {
        switch self {
        case .queue(let queue): queue
        case .pool(let pool): pool
        }
    }

    func rotate(to key: Key) throws {
        switch self {
        case .queue(let queue): try queue.rotateKey(to: key, progress: nil)
        case .pool(let pool): try pool.rotateKey(to: key, progress: nil)
        }
    }

    func rotateAwaiting(to key: Key) async throws {
        switch self {
        case .queue(let queue): try await queue.rotateKey(to: key, progress: nil)
        case .pool(let pool): try await pool.rotateKey(to: key, progress: nil)
        }
    }
}
