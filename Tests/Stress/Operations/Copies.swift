import Foundation
import RawStore
import SealedDB

/// Copies of the store, which must hold the client's rows as they are while it makes them.
enum Copies {
    static let all: [Operation] = [
        Operation(name: "backup to a connection", weights: [.soloist: 1, .writer: 1]) { client, step in
            try copied(client, step) { path, key in
                let target = Database(path: path, configuration: Configuration(key: key))
                try target.openVerified()
                try client.direct { db in try db.backup(to: target) }
                guard target.close() else { throw target.lastError() }
            }
        },
        Operation(name: "serialized", weights: [.soloist: 1]) { client, step in
            try copied(client, step, isUnderOwnKey: true) { path, _ in
                try client.database().serialized().write(to: URL(fileURLWithPath: path))
            }
        },
        Operation(name: "StoreBackup", weights: [.writer: 1, .custodian: 1]) { client, step in
            try copied(client, step) { path, key in
                do throws(DatabaseError) {
                    let (store, current) = (client.place.store, try client.currentKey)
                    let backup = StoreBackup(
                        path: store,
                        key: current,
                        to: path,
                        backupKey: key,
                        busyTimeout: .seconds(20)
                    )
                    _ = try backup.run()
                } catch {
                    // Somebody has changed the key since it was asked for.
                    throw error.reason == .wrongKey && client.station.plan.rotates ? CancellationError() : error
                }
            }
        },
        Operation(name: "backup and restore", weights: [.custodian: 1]) { client, step in
            let place = client.place
            try copied(client, step, isUnderOwnKey: true) { path, key in
                _ = try StoreBackup(path: place.store, key: key, to: path).run()
                let report = try StoreRestore(backupPath: path, key: key, to: place.store).run()
                if let replaced = report.replacedPath { try FileManager.default.removeItem(atPath: replaced) }
            }
        },
    ]

    /// Has a copy made, and compares it through SQLite's C interface.
    static func copied(
        _ client: Client,
        _ step: Step,
        isUnderOwnKey: Bool = false,
        _ make: (_ path: String, _ key: Key) throws -> Void
    ) throws {
        let place = client.place
        let path = "\(place.otherDirectory)/copy-\(client.id).db"
        // What is not there need not be removed. A client that was killed leaves its copy.
        let remove = { for ending in ["", "-wal", "-shm", "-journal"] { _ = unlink(path + ending) } }
        remove()
        defer { remove() }
        var random = step.random
        let number = isUnderOwnKey ? place.currentKey : random.int(0..<Place.keyCount)
        try make(path, place.key(number))
        let copy = try RawConnection(path, key: place.keyLiteral(number))
        guard try copy.rows("PRAGMA integrity_check") == [["ok"]] else { throw Violation("A copy is not sound.") }
        if let difference = try ContentCheck(connection: copy).difference(of: client.id, from: client.state) {
            throw Violation("In a copy: \(difference)")
        }
    }
}
