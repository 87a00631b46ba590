import Foundation
import SealedDB

/// The members of the JSON object for a backup.
struct BackupContent: Encodable, Sendable {
    let backupPath: String
    var pageCount: Int64?
    /// What became of the other backups; `nil` if they are not dated.
    var others: DatedBackups.Plan?

    private enum Names: String, CodingKey { case backupPath, pageCount }

    func encode(to encoder: any Encoder) throws {
        try others?.encode(to: encoder)
        var container = encoder.container(keyedBy: Names.self)
        try container.encode(backupPath, forKey: .backupPath)
        try container.encodeIfPresent(pageCount, forKey: .pageCount)
    }
}

/// Makes a backup that has its date in its name, and removes those that are not to be kept any longer.
struct DatedBackup {
    let store: StoreItem
    let directory: String
    let policy: RetentionPolicy
    let mayBeSmaller: Bool
    let keys: KeyAssignment
    let backupKey: Key?
    let settings: CipherSettings
    let lockWait: Double

    func report(isPlan: Bool, _ progress: @escaping (KeyRotation.Progress) throws -> Void) throws -> StoreReport {
        let backups = try DatedBackups(
            of: store,
            in: directory,
            policy,
            mayBeSmaller: mayBeSmaller,
            isLooking: isPlan
        )
        if !isPlan { try backups.removeLeftovers() }
        let new = backups.newBackup()
        // The key that fits is that of the new backup, too.
        return try keys.withKey(of: store) { key, _ in
            let (pageCount, doubt) = isPlan ? try look(key, new.path) : try copy(key, to: new.path, progress)
            if !isPlan {
                StoreRecords.note(.backup, of: store.path, .init(backups.mark, backupPath: new.path))
                try backups.note(new, pageCount: pageCount)
            }
            let storeKey = key
            let key = backupKey ?? key
            let examiner = DatedBackups.Examiner { path in
                _ = try StoreInfo.inspect(path: path, key: key, cipherSettings: settings)
            } isSound: { path in
                let report = try IntegrityReport.verify(path: path, key: key, cipherSettings: settings)
                guard report.isSound else { throw Failure(.data, "it is damaged") }
            } isNewSound: {
                if let doubt { throw Failure(.data, doubt) }
                // A plan is made without a new backup, which would be what the store is.
                let (path, key) = isPlan ? (store.path, storeKey) : (new.path, key)
                let report = try IntegrityReport.verify(path: path, key: key, cipherSettings: settings, isDeep: true)
                guard report.isSound else {
                    let problems = report.damagedPages.map { "page \($0)" } + report.structureProblems
                    throw Failure(.data, problems.prefix(5).joined(separator: "; "))
                }
            }
            let (plan, failure) = try backups.prune(new: new, pageCount: pageCount, examiner)
            for remark in plan.remarks { StandardError.message(remark) }
            var lines = plan.lines(isPlan: isPlan)
            if !isPlan {
                let remark = settings.remarkOnAuthentication
                let pages = pageCount.counted("page")
                lines.insert("\(TerminalText.escaped(new.path)): backup of \(pages)\(remark)", at: 0)
            }
            return StoreReport(
                text: .lines(lines),
                content: BackupContent(
                    backupPath: StoreItem.identity(of: new.path),
                    pageCount: pageCount,
                    others: plan
                ),
                isPlan: isPlan,
                failure: failure
            )
        }
    }

    private func backup(_ key: Key, _ path: String) -> StoreBackup {
        StoreBackup(
            path: store.path,
            key: key,
            cipherSettings: settings,
            to: path,
            backupKey: backupKey,
            busyTimeout: .seconds(lockWait)
        )
    }

    private func look(_ key: Key, _ path: String) throws -> (pageCount: Int64, doubt: String?) {
        let info = try StoreInfo.inspect(path: store.path, key: key, cipherSettings: settings)
        guard let details = info.details, info.kind == .encrypted else {
            throw Failure(.data, "\(store.name) is not an encrypted store. Nothing was done.")
        }
        return (details.pageCount, try backup(key, path).doubt())
    }

    private func copy(
        _ key: Key,
        to path: String,
        _ progress: @escaping (KeyRotation.Progress) throws -> Void
    ) throws -> (pageCount: Int64, doubt: String?) {
        let (report, doubt) = try backup(key, path).runWithDoubt(progress: progress)
        if let doubt { store.warn(of: doubt) }
        return (report.pageCount, doubt)
    }
}

extension StoreItem {
    /// Tells that a backup may lack something.
    func warn(of doubt: String) {
        StandardError.message("\(name): \(doubt). \(IntegrityReport.remedyForUncountedPages)")
    }
}
