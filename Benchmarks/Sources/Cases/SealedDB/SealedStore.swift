import SealedDB

extension StoreOptions {
    var key: Key? {
        get throws {
            guard let keyText else { return nil }
            switch secret {
            case .raw: return try Self.rawKey(Self.rawKey)
            case .otherRaw: return try Self.rawKey(Self.otherRawKey)
            case .passphrase: return try Key.passphrase(Self.passphrase)
            case .derived(let hexadecimal):
                let bytes = Self.bytes(hexadecimal)
                return try bytes[..<32].withUnsafeBytes { key in
                    try bytes[32...].withUnsafeBytes { salt in try Key.raw(key, salt: salt) }
                }
            case .none: throw Failure("A file in the clear has the key \(keyText).")
            }
        }
    }

    private static func rawKey(_ hexadecimal: String) throws -> Key {
        try bytes(hexadecimal).withUnsafeBytes { try Key.raw($0) }
    }

    private static func bytes(_ hexadecimal: String) -> [UInt8] {
        let digits = Array(hexadecimal.utf8).compactMap { Character(UnicodeScalar($0)).hexDigitValue }
        return stride(from: 0, to: digits.count, by: 2).map { UInt8(digits[$0] * 16 + digits[$0 + 1]) }
    }

    var cipherSettings: CipherSettings {
        CipherSettings(
            pageSize: pageSize == 0 ? nil : pageSize,
            hmacAlgorithm: hmac.flatMap { CipherSettings.Algorithm(rawValue: $0) },
            usesHMAC: omitsHMAC ? false : nil
        )
    }

    var configuration: Configuration {
        get throws {
            var result = Configuration(key: try key)
            if result.key != nil { result.cipherSettings = cipherSettings }
            // With much else to do, a machine lets a connection wait for its turn: that is slow, and no failure.
            result.busyTimeout = .seconds(60)
            result.cacheSize = cacheSize
            result.journalMode = Configuration.JournalMode(rawValue: journalMode)
            result.synchronous = Configuration.Synchronous(rawValue: synchronous)
            return result
        }
    }

    func queue(_ path: String) throws -> DatabaseQueue {
        try DatabaseQueue(path: path, configuration: configuration)
    }
}

extension Database {
    /// The integer in the first column of the first row.
    func integer(_ sql: String) throws -> Int64 {
        let rows = try executeQuery(sql, values: nil)
        defer { rows.close() }
        guard try rows.nextWithError() else { throw Failure("No row: \(sql)") }
        return rows.longLongInt(forColumnIndex: 0)
    }

    /// Runs a query to its end; returns the number of rows.
    func count(_ sql: String) throws -> Int {
        let rows = try executeQuery(sql, values: nil)
        var result = 0
        while try rows.nextWithError() { result += 1 }
        return result
    }
}
