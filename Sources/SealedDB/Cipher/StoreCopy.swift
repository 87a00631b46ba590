internal import CSealedDBSystem
import Foundation

/// A new file beside a store, which becomes the store once it is verified.
struct StoreCopy {
    let path: String
    private let target: String

    static func namePrefix(for path: String) -> String {
        ".\(FileSystem.name(of: path)).sealdb-"
    }

    /// Creates the empty file, with the attributes of the store if there is one.
    init(beside target: String, takesAttributes: Bool = true) throws(DatabaseError) {
        self.target = target
        let name = StoreCopy.namePrefix(for: target) + (try FileSystem.randomName())
        path = "\(FileSystem.directory(of: target))/\(name)"
        try FileSystem.createExclusively(path)
        guard takesAttributes else { return }
        do throws(DatabaseError) {
            try FileSystem.copyAttributes(from: target, to: path)
        } catch {
            unlink(path)
            throw error
        }
    }

    func discard() {
        for suffix in ["", "-journal", "-wal", "-shm"] { unlink(path + suffix) }
    }

    private typealias Report = (KeyRotation.Progress.Phase, _ completed: Int64) throws(DatabaseError) -> Void

    /// Copies, verifies with a fresh connection, and syncs.
    func fill(
        from source: Connection,
        key: Key,
        settings: CipherSettings,
        setsWAL: Bool,
        plan: KeyRotation.Plan,
        progress: ((KeyRotation.Progress) throws -> Void)?
    ) throws(DatabaseError) {
        let report: Report = { (phase, completed) throws(DatabaseError) in
            let state = KeyRotation.Progress(
                phase: phase,
                completedPages: completed,
                totalPages: plan.pageCount,
                pageSize: plan.pageSize
            )
            do {
                try progress?(state)
            } catch {
                throw DatabaseError(
                    extendedCode: SQLITE_INTERRUPT,
                    reason: .interrupted,
                    message: "The caller stopped it in phase \(phase.rawValue)."
                )
            }
        }
        try copyPages(from: source, key: key, settings: settings, setsWAL: setsWAL, plan: plan, report: report)
        try report(.verify, plan.pageCount)
        try verify(key: key, settings: settings, plan: plan)
        try report(.sync, plan.pageCount)
        for suffix in ["-journal", "-wal"] where FileSystem.exists(path + suffix) {
            throw unverified("\(path + suffix) is left beside it")
        }
        try FileSystem.synchronize(path)
        try report(.swap, plan.pageCount)
    }

    private func copyPages(
        from source: Connection,
        key: Key,
        settings: CipherSettings,
        setsWAL: Bool,
        plan: KeyRotation.Plan,
        report: Report
    ) throws(DatabaseError) {
        let connection = try StoreOpening(path: path, key: key, settings: settings).open()
        defer { connection.close() }
        // The file is worthless until it is synced as a whole, so neither a journal nor syncs are needed.
        try connection.run("PRAGMA journal_mode = OFF")
        try connection.run("PRAGMA synchronous = OFF")
        // With different sizes the backup would return OK and write garbage and plaintext.
        guard try connection.integer("PRAGMA page_size") == Int64(plan.pageSize) else {
            throw unverified("its pages would differ in size from the store's \(plan.pageSize)")
        }
        try copyAll(from: source, to: connection, report: report)
        if setsWAL {
            guard try connection.text("PRAGMA journal_mode = WAL") == "wal" else {
                throw unverified("it could not be put into WAL mode")
            }
        }
        guard connection.close() else { throw unverified("it could not be closed") }
    }

    private func copyAll(
        from source: Connection,
        to target: Connection,
        report: Report
    ) throws(DatabaseError) {
        try Backup.copy(from: source, to: target, pagesPerStep: 256) { backup throws(DatabaseError) in
            try report(.copy, backup.completedPages)
        }
    }

    private func verify(key: Key, settings: CipherSettings, plan: KeyRotation.Plan) throws(DatabaseError) {
        let connection = try StoreOpening(path: path, key: key, settings: settings).open()
        defer { connection.close() }
        guard try connection.mainFileHeader() != StoreHeader.plaintextMagic else { throw unverified("it is plaintext") }
        let report = try IntegrityReport.check(connection, path: path, isEncrypted: true)
        guard report.isSound else {
            let pages = report.damagedPages.prefix(5).map { "page \($0)" }
            throw unverified((pages + report.structureProblems.prefix(5)).joined(separator: "; "))
        }
        guard report.pageCount == plan.pageCount else {
            throw unverified("it has \(report.pageCount) pages instead of \(plan.pageCount)")
        }
        guard connection.close() else { throw unverified("it could not be closed") }
    }

    private func unverified(_ what: String) -> DatabaseError {
        DatabaseError(
            extendedCode: SQLITE_CORRUPT,
            reason: .unverified,
            message: "The new file did not verify and was discarded: \(what)."
        )
    }

    /// The point of no return: renames over the store.
    func swapIn() throws(DatabaseError) {
        guard rename(path, target) == 0 else {
            let number = errno
            discard()
            throw .system("The copy could not take the store's place", reason: .ioError, number: number)
        }
    }

    /// Makes the swap durable.
    func synchronizeSwap() throws(DatabaseError) {
        do throws(DatabaseError) {
            try FileSystem.synchronizeDirectory(of: target)
        } catch {
            throw error.adding(
                context: """
                    The store now has the new contents and key, but the directory could not be synced: after a power \
                    failure it may have the old ones. Keep both keys, and check with verify
                    """
            )
        }
    }

    /// Puts the file in place only if there is no other.
    func moveIn() throws(DatabaseError) {
        guard sealeddb_rename_exclusively(path, target) == 0 else {
            let number = errno
            discard()
            throw .system(
                "Cannot create \(target)",
                reason: number == EEXIST ? .alreadyExists : .cannotCreate,
                number: number
            )
        }
        try FileSystem.synchronizeDirectory(of: target)
    }
}
