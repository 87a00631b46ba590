import CSealedDBSystem
import Foundation
import SealedDB

/// The dated backups of one store in a directory.
///
/// A backup is one of them if it has the name of one, is a regular file of this user or root, and is an encrypted store,
/// whether the key at hand opens it or not: the store may have had another key. It is complete, because the command gives
/// a backup its name when it is verified and synced. All other files stay, and do not count.
struct DatedBackups {
    /// The lock, which lasts as long as this; `nil` if there is none because nothing is to be written.
    private let claim: BackupClaim?
    /// Whether nothing is to be written.
    private let isLooking: Bool
    private let directory: String
    private let store: String
    private let policy: RetentionPolicy

    init(of store: StoreItem, in directory: String, _ policy: RetentionPolicy, isLooking: Bool) throws(Failure) {
        self.directory = StoreItem.identity(of: directory)
        self.store = store.path.nameOfPath
        self.policy = policy
        self.isLooking = isLooking
        // This fails before anything is written.
        _ = try DatedBackups.names(in: directory)
        claim = try BackupClaim.take(directory, store, isLooking: isLooking)
    }

    private static func names(in directory: String) throws(Failure) -> [String] {
        do {
            return try FileManager.default.contentsOfDirectory(atPath: directory)
        } catch {
            let reason = access(directory, R_OK) == 0 ? "" : ": \(String(cString: strerror(errno)))"
            throw Failure(.cannotCreate, "Cannot read the directory \(directory)\(reason). No backup was made.")
        }
    }

    private func path(_ stamp: BackupStamp) -> String { "\(directory)/\(store).\(stamp.text)" }

    /// The name for a backup that is made now. A name that exists is left alone: this waits for the next second.
    func newBackup() -> (path: String, stamp: BackupStamp) {
        var stamp = BackupStamp(seconds: time(nil))
        var status = stat()
        var attempts = 0
        while lstat(path(stamp), &status) == 0, attempts < 20 {
            attempts += 1
            // Interrupted, it is just shorter.
            usleep(100_000)
            stamp = BackupStamp(seconds: time(nil))
        }
        return (path(stamp), stamp)
    }

    /// Removes what killed runs left, under names that no later backup will have.
    func removeLeftovers() throws(Failure) {
        let start = ".\(store)."
        for name in try DatedBackups.names(in: directory)
        where name.begins(with: start) && name.hasBytes(of: ".sealdb-") {
            let stamp = BackupStamp(String(decoding: name.utf8.dropFirst(start.utf8.count).prefix(20), as: UTF8.self))
            if let stamp { TemporaryFile.removeLeftovers(of: path(stamp)) }
        }
    }

    // MARK: What is kept

    private struct File {
        let path: String
        let stamp: BackupStamp
        let status: stat
    }

    /// What becomes of the files.
    struct Plan: Encodable, Sendable {
        struct Kept: Encodable, Sendable {
            let path: String
            /// Names of rules; or `later` for one that is later than this run.
            let reasons: [String]
        }

        struct Untouched: Encodable, Sendable {
            let path: String
            let reason: String
        }

        /// The newest first.
        var kept: [Kept] = []
        var removed: [String] = []
        /// Files that have the name of a backup, and are none.
        var untouched: [Untouched] = []
    }

    /// - Parameter opens: throws if a file does not open with the key of the backups.
    private func planAndFiles(
        _ new: (path: String, stamp: BackupStamp),
        _ opens: (String) throws -> Void
    ) throws(Failure) -> (plan: Plan, removed: [File]) {
        var plan = Plan()
        var files: [File] = []
        for name in try DatedBackups.names(in: directory) {
            guard let stamp = BackupStamp(ofName: name, store: store) else { continue }
            let file = "\(directory)/\(name)"
            guard !file.isSame(as: new.path) else { continue }
            var status = stat()
            guard lstat(file, &status) == 0 else { continue }
            if let reason = DatedBackups.objection(to: file, status, opens) {
                plan.untouched.append(Plan.Untouched(path: file, reason: reason))
            } else if stamp.seconds > new.stamp.seconds {
                plan.kept.append(Plan.Kept(path: file, reasons: ["later"]))
            } else {
                files.append(File(path: file, stamp: stamp, status: status))
            }
        }
        files.sort { $0.stamp.seconds > $1.stamp.seconds }
        plan.kept.sort { $0.path > $1.path }
        plan.untouched.sort { $0.path < $1.path }
        let reasons = policy.reasons([new.stamp] + files.map(\.stamp))
        plan.kept.append(Plan.Kept(path: new.path, reasons: reasons[0]))
        var removed: [File] = []
        for (file, reasons) in zip(files, reasons.dropFirst()) {
            if reasons.isEmpty {
                removed.append(file)
            } else {
                plan.kept.append(Plan.Kept(path: file.path, reasons: reasons))
            }
        }
        plan.removed = removed.map(\.path)
        return (plan, removed)
    }

    /// Why a file with the name of a backup is none of this command's, or is not to be relied on; `nil` if it is one.
    private static func objection(to file: String, _ status: stat, _ opens: (String) throws -> Void) -> String? {
        guard status.st_mode & S_IFMT == S_IFREG else { return "it is not a regular file" }
        guard [0, geteuid()].contains(status.st_uid) else { return "it belongs to another user" }
        do {
            guard try StoreInfo.outside(path: file).kind == .encrypted else { return "it is not an encrypted store" }
            for log in ["-wal", "-journal"] {
                var status = stat()
                if lstat(file + log, &status) == 0, status.st_size > 0 {
                    return "it was changed: it has a \(log) beside it"
                }
            }
            try opens(file)
        } catch {
            guard (error as? DatabaseError)?.reason != .wrongKey else { return nil }
            return ErrorReport.statusAndMessage(of: error).message
        }
        return nil
    }

    // MARK: Pruning

    /// Removes the backups that no rule keeps. Call it when the new one is complete.
    /// - Returns: what was done, and why it was not done wholly.
    func prune(
        new: (path: String, stamp: BackupStamp),
        opens: (String) throws -> Void
    ) throws(Failure) -> (plan: Plan, failure: Failure?) {
        var (plan, files) = try planAndFiles(new, opens)
        guard !isLooking else { return (plan, nil) }
        plan.removed = []
        var status = stat()
        guard lstat(new.path, &status) == 0 else {
            let reason = String(cString: strerror(errno))
            return (
                plan, Failure(.inputOutput, "The new backup \(new.path) is gone: \(reason). No old one was removed.")
            )
        }
        var problem: String?
        // The oldest first: if that is cut short, what is left is what is worth more.
        for file in files.reversed() {
            var status = stat()
            guard lstat(file.path, &status) == 0, status.st_ino == file.status.st_ino,
                status.st_dev == file.status.st_dev
            else { continue }
            if unlink(file.path) == 0 {
                plan.removed.append(file.path)
            } else if problem == nil {
                problem = "\(file.path) cannot be removed: \(String(cString: strerror(errno)))."
            }
        }
        if !plan.removed.isEmpty {
            do throws(Failure) { try synchronizeDirectory(of: new.path) } catch { problem = error.message }
        }
        let failure = problem.map {
            Failure(.inputOutput, "The backup \(new.path) is complete, but not all old ones are removed. \($0)")
        }
        return (plan, failure)
    }
}

extension DatedBackups.Plan {
    /// - Parameter isPlan: whether nothing is done, so that all are named.
    func lines(isPlan: Bool) -> [String] {
        let removed = removed.map { "\(TerminalText.escaped($0)): \(isPlan ? "would be removed" : "removed")" }
        guard isPlan else { return removed }
        return kept.map { "\(TerminalText.escaped($0.path)): would be kept: \($0.reasons.joined(separator: ", "))" }
            + removed
    }

    /// What the user should know of files that stay.
    var remarks: [String] {
        let late = kept.filter { $0.reasons == ["later"] }.map(\.path)
        var remarks = untouched.map {
            "\($0.path) has the name of a backup, but \($0.reason): it stays, and does not count."
        }
        if let first = late.first {
            let which =
                late.count == 1
                ? "\(first) is later than the clock of this machine. It stays, and does not count."
                : "\(late.count) backups, such as \(first), are later than the clock of this machine. They stay, and do not count."
            remarks.append(which + " Is the clock right?")
        }
        return remarks
    }
}
