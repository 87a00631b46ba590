import Foundation
import RawStore
import SealedDB

/// A copy with some bytes changed: what is read of it is what was written, or an error.
enum Damage {
    static let all: [Operation] = [
        Operation(name: "damage, and read", weights: [.soloist: 2, .custodian: 2]) { client, step in
            try onDamagedCopy(client, step) { path in
                let db = Database(path: path, configuration: Configuration(key: try client.currentKey))
                try db.openVerified()
                for table in Table.fixed {
                    do {
                        try Comparison(owner: client.id, state: client.state).run(on: db, [table])
                    } catch let error as DatabaseError where error.reason == .damaged {
                        continue
                    }
                }
            }
        },
        Operation(name: "damage, and back up", weights: [.custodian: 2]) { client, step in
            try onDamagedCopy(client, step) { path in
                let backup = path + ".backup"
                let outcome = try Command.outcome(
                    of: [Command.sealdb, "backup", path, backup] + client.place.option(client.place.currentKey)
                )
                if outcome.status == 0 { try requireSame(client, backup, client.place.currentKey) }
            }
        },
        Operation(name: "damage, and rotate", weights: [.custodian: 2]) { client, step in
            try onDamagedCopy(client, step) { path in
                let new = (client.place.currentKey + 1) % Place.keyCount
                let outcome = try Command.outcome(
                    of: [Command.sealdb, "rotate", path] + client.place.option(client.place.currentKey)
                        + client.place.option(new, isNew: true)
                )
                if outcome.status == 0 { try requireSame(client, path, new) }
            }
        },
        Operation(name: "damage, and rekey", weights: [.custodian: 2]) { client, step in
            try onDamagedCopy(client, step) { path in
                let new = (client.place.currentKey + 1) % Place.keyCount
                let db = Database(path: path, configuration: Configuration(key: try client.currentKey))
                try db.openVerified()
                defer { db.close() }
                guard try db.rekey(client.place.keyLiteral(new)) else { throw db.lastError() }
                try requireSame(client, path, new)
            }
        },
    ]

    private static func requireSame(_ client: Client, _ path: String, _ key: Int) throws {
        let copy = try RawConnection(path, key: client.place.keyLiteral(key))
        if let difference = try ContentCheck(connection: copy).difference(of: client.id, from: client.state) {
            throw Violation("What was copied from a damaged store with success: \(difference)")
        }
    }

    /// Errors are what is wanted.
    private static func onDamagedCopy(_ client: Client, _ step: Step, _ body: (String) throws -> Void) throws {
        let path = "\(client.place.otherDirectory)/damaged-\(client.id).db"
        // What is not there need not be removed. A client that was cut off leaves its copy.
        let remove = { for ending in ["", "-wal", "-shm", "-journal", ".backup"] { _ = unlink(path + ending) } }
        remove()
        defer { remove() }
        _ = try StoreBackup(path: client.place.store, key: client.currentKey, to: path).run()
        var random = step.random
        let size = try FileManager.default.attributesOfItem(atPath: path)[.size] as? Int ?? 0
        let file = try FileHandle(forUpdating: URL(fileURLWithPath: path))
        // SQLCipher takes a page of zeros for a new one.
        if random.oneIn(3), size > 4096 {
            let page = random.int(1..<size / 4096)
            try file.seek(toOffset: UInt64(page * 4096))
            try file.write(contentsOf: Data(count: 4096))
        }
        for _ in 0..<random.int(random.oneIn(2) ? 0..<1 : 1..<4) {
            let position = random.int(0..<size)
            try file.seek(toOffset: UInt64(position))
            guard let byte = try file.read(upToCount: 1)?.first else { continue }
            try file.seek(toOffset: UInt64(position))
            try file.write(contentsOf: Data([byte ^ UInt8(random.int(1..<256))]))
        }
        try file.close()
        do { try body(path) } catch is DatabaseError {}
    }
}
