import CSealedDBSystem
import Foundation
import SealedDB

/// The dated backups of one store in a directory.
///
/// A backup is one of them if the claim tells that a run has made it of this store, if it is unchanged since, and if the
/// key at hand opens it. It is complete, because the command gives a backup its name when it is verified and synced. All
/// other files stay, and do not count.
struct DatedBackups {
    /// The lock, which lasts as long as this; `nil` if there is none because nothing is to be written.
    private let claim: BackupClaim?
    /// Whether nothing is to be written.
    private let isLooking: Bool
    private let directory: String
    private let store: String
    /// That of the store, from before the backup.
    let mark: StoreMark
    private let policy: RetentionPolicy
    /// Whether the new backup may be far smaller than those before it.
    private let mayBeSmaller: Bool

    init(
        of store: StoreItem,
        in directory: String,
        _ policy: RetentionPolicy,
        mayBeSmaller: Bool,
        isLooking: Bool
    ) throws {
        self.directory = StoreItem.identity(of: directory)
        self.store = store.path.nameOfPath
        self.policy = policy
        self.mayBeSmaller = mayBeSmaller
        self.isLooking = isLooking
        // These fail before anything is written.
        mark = try StoreMark(path: store.path)
        _ = try DatedBackups.names(in: directory)
        claim = try BackupClaim.take(self.directory, store, isLooking: isLooking)
    }

    /// - Throws: also if the directory cannot be read to its end.
    private static func names(
        in directory: String,
        orSay state: String = "No backup was made."
    ) throws(Failure) -> [String] {
        guard let names = FileSystem.names(in: directory) else {
            let reason = String(cString: strerror(errno))
            throw Failure(.cannotCreate, "Cannot read the directory \(directory): \(reason). \(state)")
        }
        return names
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
            guard let stamp else { continue }
            for ending in [""] + KeySlots.fileEndings { TemporaryFile.removeLeftovers(of: path(stamp) + ending) }
        }
    }

    /// Notes that the new backup was made, so that a later run may remove it.
    func note(_ new: (path: String, stamp: BackupStamp), pageCount: Int64) throws {
        guard let claim, !isLooking else { return }
        let entry: BackupClaim.Entry
        do {
            entry = try .init(path: new.path, store: mark, pageCount: pageCount, mayBeSmaller: mayBeSmaller)
        } catch {
            let message = ErrorReport.statusAndMessage(of: error).message
            throw Failure(.inputOutput, "The new backup \(new.path) is gone. \(message) No old one was removed.")
        }
        try claim.add(entry)
    }

    // MARK: What is kept

    private struct File {
        let path: String
        let stamp: BackupStamp
        let entry: BackupClaim.Entry
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
        /// Files that have the name of a backup, and do not count.
        var untouched: [Untouched] = []
    }

    /// Looks at backups with the key that opens them. Each throws if it finds something wrong.
    struct Examiner {
        let opens: (String) throws -> Void
        /// Looks at each page.
        let isSound: (String) throws -> Void
        /// Looks at the structure of the new one, too: a write that the disk has lost leaves pages that are authentic.
        let isNewSound: () throws -> Void
    }

    private func planAndFiles(
        _ new: (path: String, stamp: BackupStamp),
        _ examiner: Examiner
    ) throws(Failure) -> (plan: Plan, removed: [File], counted: [File]) {
        var plan = Plan()
        var files: [File] = []
        for name in try DatedBackups.names(in: directory, orSay: "No old backup was removed.") {
            guard let stamp = BackupStamp(ofName: name, store: store) else { continue }
            let file = "\(directory)/\(name)"
            guard !file.isSame(as: new.path) else { continue }
            let entry = claim?.entries.last { $0.name.isSame(as: name) }
            if stamp.seconds > new.stamp.seconds {
                plan.kept.append(Plan.Kept(path: file, reasons: ["later"]))
            } else if let reason = objection(to: file, entry) ?? DatedBackups.problem(examiner.opens, file) {
                plan.untouched.append(Plan.Untouched(path: file, reason: reason))
            } else if let entry {
                files.append(File(path: file, stamp: stamp, entry: entry))
            }
        }
        files.sort { $0.stamp.seconds > $1.stamp.seconds }
        plan.kept.sort { $0.path > $1.path }
        // Others are removed in favour of those that are kept: so these must be sound.
        var sound: Set<ExactText> = []
        while true {
            let reasons = policy.reasons([new.stamp] + files.map(\.stamp))
            let pairs = Array(zip(files, reasons.dropFirst()))
            let removed = pairs.filter(\.1.isEmpty).map(\.0)
            let kept = pairs.filter { !$0.1.isEmpty }
            let next = kept.first { !sound.contains(ExactText($0.0.path)) }?.0
            guard !removed.isEmpty, let next else {
                plan.kept.append(Plan.Kept(path: new.path, reasons: reasons[0]))
                plan.kept += kept.map { Plan.Kept(path: $0.0.path, reasons: $0.1) }
                plan.removed = removed.map(\.path)
                plan.untouched.sort { $0.path < $1.path }
                return (plan, removed, files)
            }
            if let reason = DatedBackups.problem(examiner.isSound, next.path) {
                plan.untouched.append(Plan.Untouched(path: next.path, reason: reason))
                files.removeAll { $0.path.isSame(as: next.path) }
            } else {
                sound.insert(ExactText(next.path))
            }
        }
    }

    /// Why a file with the name of a backup is not one that was made of this store, or was changed since.
    private func objection(to file: String, _ entry: BackupClaim.Entry?) -> String? {
        var status = stat()
        guard lstat(file, &status) == 0 else { return "it cannot be examined: \(String(cString: strerror(errno)))" }
        guard status.st_mode & S_IFMT == S_IFREG else { return "it is not a regular file" }
        guard [0, geteuid()].contains(status.st_uid) else { return "it belongs to another user" }
        guard let entry else { return "it is not noted as one that was made here" }
        guard entry.store.isSame(as: mark.text) else {
            return "it is one of another store of this name, or of this one before it was restored or its key changed"
        }
        for log in ["-wal", "-journal"] {
            var status = stat()
            let mayBeChanged = lstat(file + log, &status) == 0 ? status.st_size > 0 : errno != ENOENT
            if mayBeChanged {
                return "it was changed: it has a \(log) beside it"
            }
        }
        do {
            let info = try StoreInfo.outside(path: file)
            guard entry.describes(status, salt: info.salt) else { return "it was changed since it was made" }
        } catch {
            return ErrorReport.statusAndMessage(of: error).message
        }
        return nil
    }

    private static func problem(_ examine: (String) throws -> Void, _ file: String) -> String? {
        problem { try examine(file) }
    }

    private static func problem(_ examine: () throws -> Void) -> String? {
        do {
            try examine()
            return nil
        } catch {
            if (error as? DatabaseError)?.reason == .wrongKey { return "the key at hand does not open it" }
            return ErrorReport.statusAndMessage(of: error).message
        }
    }

    // MARK: Pruning

    /// Removes the backups that no rule keeps. Call it when the new one is complete and noted.
    /// - Returns: what was done, and why it was not done wholly.
    func prune(
        new: (path: String, stamp: BackupStamp),
        pageCount: Int64,
        _ examiner: Examiner
    ) throws(Failure) -> (plan: Plan, failure: Failure?) {
        var (plan, files, counted) = try planAndFiles(new, examiner)
        if !files.isEmpty, let larger = farLarger(than: pageCount, counted) {
            plan.kept += plan.removed.map { Plan.Kept(path: $0, reasons: ["smaller"]) }
            plan.removed = []
            let failure = Failure(
                .partial,
                "The new backup \(new.path) has \(pageCount.counted("page")), and \(larger.path) has "
                    + "\(larger.entry.pageCount). No old one was removed, because the store may have lost what it held. If it "
                    + "may be so small, say so once with --allow-smaller."
            )
            return (plan, failure)
        }
        if !files.isEmpty, let reason = DatedBackups.problem(examiner.isNewSound) {
            plan.kept += plan.removed.map { Plan.Kept(path: $0, reasons: ["unsound"]) }
            plan.removed = []
            let which = isLooking ? "The store" : "The new backup \(new.path)"
            let failure = Failure(
                .partial,
                "\(which) is not sound (\(reason)). No old one \(isLooking ? "would be" : "was") removed. Look at the store with "
                    + "`sealdb verify`, and keep an old backup until it is restored."
            )
            return (plan, failure)
        }
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
            if let reason = objection(to: file.path, file.entry) ?? DatedBackups.use(of: file.path) {
                plan.untouched.append(Plan.Untouched(path: file.path, reason: reason))
            } else if unlink(file.path) == 0 {
                if let salt = file.entry.salt { KeySlots.removeFiles(ofRemoved: file.path, salt: salt) }
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

    /// A backup with more than ten times as many pages, of those since the last that was allowed to be smaller.
    private func farLarger(than pageCount: Int64, _ files: [File]) -> File? {
        guard !mayBeSmaller else { return nil }
        let end = files.firstIndex { $0.entry.mayBeSmaller } ?? files.count - 1
        let largest = files.prefix(end + 1).max { $0.entry.pageCount < $1.entry.pageCount }
        guard let largest, largest.entry.pageCount > 32, largest.entry.pageCount / 10 > pageCount else { return nil }
        return largest
    }

    /// Who has a backup open, and may be writing to it; `nil` for nobody.
    private static func use(of file: String) -> String? {
        let descriptor = sealeddb_open(file, O_RDONLY | O_NOFOLLOW, 0)
        guard descriptor >= 0 else { return "it cannot be opened: \(String(cString: strerror(errno)))" }
        // The result does not matter: nothing was written through this descriptor.
        defer { close(descriptor) }
        switch sealeddb_is_only_descriptor(descriptor) {
        case 1: return nil
        case 0: return "a process has it open"
        default: break
        }
        // The kernel does not tell. Not all processes can be looked into: then those that can decide.
        do throws(DatabaseError) {
            return try FileUsers.others(file).isEmpty ? nil : "a process has it open"
        } catch {
            return error.message
        }
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
        var remarks: [String] = []
        for (index, file) in untouched.enumerated() {
            let alike = untouched.filter { $0.reason.isSame(as: file.reason) }
            guard alike[0].path.isSame(as: untouched[index].path) else { continue }
            remarks.append(
                alike.count == 1
                    ? "\(file.path) has the name of a backup, but \(file.reason): it stays, and does not count."
                    : "\(alike.count) files, such as \(file.path), have the name of a backup, and of each is true: "
                        + "\(file.reason). They stay, and do not count."
            )
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
