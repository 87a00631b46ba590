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
    /// What is odd about the times, and which records do not count.
    var remarks: [String] = []

    /// The same times, for who computes with them.
    var times = Times()
    struct Times: Sendable {
        var key: Date?
        var verification: Date?
        var backup: Date?
        var now = Date()
    }

    private enum CodingKeys: String, CodingKey {
        case keyID, keyChangedAt, keyAgeSource, verifiedAt, isSound, isDeep, backedUpAt, backupPath, needsRotation, due,
            remarks
    }

    var text: String {
        var parts: [String] = []
        let least = keyAgeSource == .keyFile ? "at least " : ""
        parts.append(times.key.map { "key is \(least)\(age($0)) old" } ?? "age of the key unknown")
        let verdict = isSound == false ? ", damaged" : ""
        parts.append(times.verification.map { "verified \(age($0)) ago\(verdict)" } ?? "verification unknown")
        parts.append(times.backup.map { "backed up \(age($0)) ago" } ?? "backup unknown")
        parts.append(due.isEmpty ? "nothing is due" : "due: \(due.joined(separator: ", "))")
        parts += remarks.map { TerminalText.escaped($0) }
        return parts.joined(separator: "; ")
    }

    /// Clocks of machines that share a file system differ a little.
    private static let clockTolerance = 60.0

    func isLater(_ date: Date) -> Bool { date.timeIntervalSince(times.now) > StoreStatus.clockTolerance }

    /// A time of the years 1 to 9999: no other is one that anything happened at, and calendars fail on some.
    static func clamped(_ date: Date) -> Date {
        Date(timeIntervalSince1970: min(max(date.timeIntervalSince1970, -62_135_596_800), 253_402_300_799))
    }

    private func age(_ date: Date) -> String {
        let seconds = Int(max(0, times.now.timeIntervalSince(StoreStatus.clamped(date))))
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
        var mark: StoreMark?
        let opening = try keys.withKey(of: store) { key, fromRing -> (id: String, isActive: Bool)? in
            let before = try StoreMark(path: store.path)
            let info = try store.requireOpens(with: key, ciphers.settings(of: store))
            // A file that was put in its place meanwhile has no records yet.
            mark = info.salt == before.salt ? before : nil
            return fromRing.map { ($0.id, $0.id.isSame(as: $0.ring.activeID)) }
        }
        status.keyID = opening?.id
        try addTimes(of: store, mark, to: &status)
        let limits = configuration?.limits(of: store) ?? AgeLimits()
        func isOver(_ date: Date?, _ limit: Double?) -> Bool? {
            guard let limit else { return nil }
            // Nobody did it at a time that is still to come, so nobody knows when.
            guard let date, !status.isLater(date) else { return true }
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

    private func addTimes(of store: StoreItem, _ mark: StoreMark?, to status: inout StoreStatus) throws {
        if let directory = configuration?.defaults.stateDirectory {
            let records = StoreRecords(directory: directory)
            func record(_ event: StoreRecords.Event, _ name: String) throws -> StoreRecords.Record? {
                guard let record = try records.record(event, of: store) else { return nil }
                if let mark, record.isAbout(mark, event) { return record }
                status.remarks.append("the record of its \(name) is about another file that was here")
                return nil
            }
            if let record = try record(.key, "key") {
                (status.times.key, status.keyAgeSource) = (record.time, .record)
            }
            if let record = try record(.verification, "verification") {
                status.times.verification = record.time
                (status.isSound, status.isDeep) = (record.isSound, record.isDeep)
            }
            if let record = try record(.backup, "backup") {
                if let reason = record.missingBackup {
                    status.remarks.append("its last backup does not count: \(reason)")
                } else {
                    (status.times.backup, status.backupPath) = (record.time, record.backupPath)
                }
            }
        }
        if status.times.key == nil, let date = try dateOfKeyFile(of: store) {
            (status.times.key, status.keyAgeSource) = (date, .keyFile)
        }
        status.times.key = status.times.key.map(StoreStatus.clamped)
        status.times.verification = status.times.verification.map(StoreStatus.clamped)
        status.times.backup = status.times.backup.map(StoreStatus.clamped)
        let named = [
            ("key", status.times.key), ("verification", status.times.verification), ("backup", status.times.backup),
        ]
        for (name, date) in named {
            guard let date, status.isLater(date) else { continue }
            status.remarks.append("the time of its \(name) is later than the clock of this machine, and does not count")
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
