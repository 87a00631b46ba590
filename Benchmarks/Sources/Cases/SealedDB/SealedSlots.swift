import SealedDB

extension SealedMakers {
    /// Stores with key slots, which the plain build has not.
    static var slots: [String: Maker] {
        var result: [String: Maker] = [:]
        #if SQLCipher
            result["slots.open.raw"] = { fixtures in
                try opening(try noteStore(fixtures), by: StoreOptions().key!)
            }
            result["slots.open"] = { fixtures in
                let path = try noteStore(fixtures)
                return try opening(path, by: try addSlots(path))
            }
            result["slots.open.again"] = { fixtures in
                let path = try noteStore(fixtures)
                let key = try addSlots(path)
                let passphrase = try Key.passphrase(StoreOptions.passphrase)
                _ = try KeySlots(path: path, key: key).add(.init(.key(passphrase), label: "passphrase"))
                return try opening(path, by: passphrase)
            }
            result["slots.rename"] = { fixtures in
                let path = try noteStore(fixtures)
                let key = try addSlots(path)
                var labels = ("main", "other")
                return Work(units: 1) {
                    _ = try KeySlots(path: path, key: key).rename(labels.0, to: labels.1)
                    labels = (labels.1, labels.0)
                    return 1
                }
            }
            result["slots.rotate"] = { fixtures in
                let path = try noteStore(fixtures)
                var keys = try (addSlots(path), Key.random())
                return Work(units: 1) {
                    try KeyRotation(path: path, from: keys.0, to: keys.1).run()
                    keys = (keys.1, keys.0)
                    return 1
                }
            }
        #endif
        return result
    }

    #if SQLCipher
        /// A store of its own, because its slots change.
        private static func noteStore(_ fixtures: Fixtures) throws -> String {
            let path = fixtures.newPath("slots")
            let options = StoreOptions(journalMode: "delete")
            let db = try Baseline(path, options)
            try db.execute("CREATE TABLE note (body TEXT); INSERT INTO note VALUES ('sealed')")
            return path
        }

        /// - Returns: the key of the only slot.
        private static func addSlots(_ path: String) throws -> Key {
            let key = try StoreOptions(secret: .otherRaw).key!
            _ = try KeySlots(path: path, key: StoreOptions().key!).initialize([.init(.key(key), label: "main")])
            return key
        }

        private static func opening(_ path: String, by key: Key) throws -> Work {
            var configuration = try StoreOptions(journalMode: "delete").configuration
            configuration.key = key
            return Work(units: 1) {
                let queue = try DatabaseQueue(path: path, configuration: configuration)
                try queue.inDatabase { db in try readNote(db) }
                queue.close()
                return 1
            }
        }
    #endif
}
