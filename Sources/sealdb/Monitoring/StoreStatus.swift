import Foundation
import SealedDB

/// What monitoring wants to know of a store. Times are those of UTC, without fractions of seconds.
struct StoreStatus: Encodable, Sendable {
    enum KeyAgeSource: String, Encodable, Sendable {
        /// The command noted when it gave the store this key.
        case record
        /// The time of the key file: the key is at least so old.
        case keyFile
    }

    /// The key of the ring that opens the store.
    var keyID: String?
    var keyChangedAt: String?
    var keyAgeSource: KeyAgeSource?
    var verifiedAt: String?
    var isSound: Bool?
    var isDeep: Bool?
    var backedUpAt: String?
    var backupPath: String?
    /// `nil` if neither a ring nor `rotate-after` says it.
    var needsRotation: Bool?
    /// What is to be done: rotation, verification, backup.
    var due: [String] = []

    /// The same times, for who computes with them.
    var times = Times()
    struct Times: Sendable {
        var key: Date?
        var verification: Date?
        var backup: Date?
        var now = Date()
    }

    private enum CodingKeys: String, CodingKey {
        case keyID, keyChangedAt, keyAgeSource, verifiedAt, isSound, isDeep, backedUpAt, backupPath, needsRotation, due
    }

    var text: String {
        var parts: [String] = []
        let least = keyAgeSource == .keyFile ? "at least " : ""
        parts.append(times.key.map { "key is \(least)\(age($0)) old" } ?? "age of the key unknown")
        let verdict = isSound == false ? ", damaged" : ""
        parts.append(times.verification.map { "verified \(age($0)) ago\(verdict)" } ?? "verification unknown")
        parts.append(times.backup.map { "backed up \(age($0)) ago" } ?? "backup unknown")
        parts.append(due.isEmpty ? "nothing is due" : "due: \(due.joined(separator: ", "))")
        return parts.joined(separator: "; ")
    }

    private func age(_ date: Date) -> String {
        let seconds = Int(max(0, times.now.timeIntervalSince(date)))
        let (count, unit) =
            switch seconds {
            case ..<120: (seconds, "second")
            case ..<7200: (seconds / 60, "minute")
            case ..<172_800: (seconds / 3600, "hour")
            default: (seconds / 86400, "day")
            }
        return "\(count) \(unit)\(count == 1 ? "" : "s")"
    }
}

/// Finds out the status of stores.
struct StoreStatusSource: Sendable {
    let choice: KeyChoice
    let keys: KeyAssignment
    let ciphers: CipherAssignment
    let configuration: ConfigurationFile?

    /// - Throws: if the store cannot be opened with its key, or a record cannot be believed.
    func status(of store: StoreItem) throws -> StoreStatus {
        var status = StoreStatus()
        var salt: String?
        let opening = try keys.withKey(of: store) { key, fromRing -> (id: String, isActive: Bool)? in
            salt = try store.requireOpens(with: key, ciphers.settings(of: store)).salt
            return fromRing.map { ($0.id, $0.id.isSame(as: $0.ring.activeID)) }
        }
        status.keyID = opening?.id
        try addTimes(of: store, salt, to: &status)
        let limits = configuration?.limits(of: store) ?? AgeLimits()
        func isOver(_ date: Date?, _ limit: Double?) -> Bool? {
            guard let limit else { return nil }
            guard let date else { return true }
            return status.times.now.timeIntervalSince(date) > limit
        }
        let isOld = isOver(status.times.key, limits.rotation)
        if opening != nil || isOld != nil { status.needsRotation = opening?.isActive == false || isOld == true }
        if status.needsRotation == true { status.due.append("rotation") }
        let isUnverified = isOver(status.times.verification, limits.verification) == true
        if isUnverified || status.isSound == false { status.due.append("verification") }
        if isOver(status.times.backup, limits.backup) == true { status.due.append("backup") }
        return status
    }

    private func addTimes(of store: StoreItem, _ salt: String?, to status: inout StoreStatus) throws {
        if let directory = configuration?.defaults.stateDirectory {
            let records = StoreRecords(directory: directory)
            if let record = try records.record(.key, of: store), let salt, record.salt == salt {
                (status.times.key, status.keyAgeSource) = (record.time, .record)
            }
            if let record = try records.record(.verification, of: store) {
                status.times.verification = record.time
                (status.isSound, status.isDeep) = (record.isSound, record.isDeep)
            }
            if let record = try records.record(.backup, of: store) {
                (status.times.backup, status.backupPath) = (record.time, record.backupPath)
            }
        }
        if status.times.key == nil, let date = try dateOfKeyFile(of: store) {
            (status.times.key, status.keyAgeSource) = (date, .keyFile)
        }
        status.keyChangedAt = status.times.key?.formatted(.iso8601)
        status.verifiedAt = status.times.verification?.formatted(.iso8601)
        status.backedUpAt = status.times.backup?.formatted(.iso8601)
    }

    private func dateOfKeyFile(of store: StoreItem) throws -> Date? {
        let origin = try choice.given.first?.origin ?? configuration?.keyOrigin(for: store)
        let path: String
        switch origin {
        case .source(.keyFile(let file)), .source(.passphraseFile(let file)): path = file
        default: return nil
        }
        var status = stat()
        // It was read just now.
        guard stat(path, &status) == 0 else { return nil }
        return Date(timeIntervalSince1970: Double(status.st_mtim.tv_sec))
    }
}

extension StoreItem {
    /// Makes sure that the file is encrypted, and that the key opens it: a directory, an empty file or plaintext opens with
    /// every key, and proves nothing.
    @discardableResult
    func requireOpens(with key: Key, _ settings: CipherSettings) throws(DatabaseError) -> StoreInfo {
        let info = try StoreInfo.inspect(path: path, key: key, cipherSettings: settings)
        guard info.kind == .encrypted, info.details != nil else {
            throw try StoreDiagnosis.examine(path: path, key: key, cipherSettings: settings).error
        }
        return info
    }
}
