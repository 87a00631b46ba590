internal import CSealedDBSystem
import Foundation

/// A new file beside a store, which becomes the store once it is verified.
struct StoreCopy {
    let path: String
    private let target: String
    private let identity: FileIdentity

    /// Of the copy of a store in WAL mode.
    private static let markOfWAL = "wal"

    /// Creates the empty file, with the attributes of the store if there is one.
    /// - Parameter ofWAL: whether the store is in WAL mode, which it has to leave while it is copied. If that is the end
    ///   of the process, the name of the copy still tells.
    init(beside target: String, takesAttributes: Bool = true, ofWAL: Bool = false) throws(DatabaseError) {
        self.target = target
        path = try TemporaryFile.path(beside: target, mark: ofWAL ? StoreCopy.markOfWAL : "")
        identity = try FileIdentity(creating: path)
        guard takesAttributes else { return }
        do throws(DatabaseError) {
            try FileSystem.copyAttributes(from: target, to: path)
        } catch {
            // What cannot be removed, here and below, is a leftover, which the next copy removes.
            unlink(path)
            throw error
        }
    }

    /// What earlier copies left when they were killed. Safe for who has the store's ``UsageLock`` alone: no other is
    /// running.
    static func removeLeftovers(of path: String) {
        TemporaryFile.removeLeftovers(of: path)
    }

    func removeOtherLeftovers() {
        TemporaryFile.removeLeftovers(of: target, except: path)
    }

    /// Whether the store was in WAL mode before a process that copied it was killed.
    static func hasLeftoverOfWAL(_ path: String) -> Bool {
        TemporaryFile.hasLeftover(of: path, mark: markOfWAL)
    }

    /// What cannot be removed is a leftover, which the next copy removes.
    func discard() {
        for suffix in ["", "-journal", "-wal", "-shm"] { unlink(path + suffix) }
    }

    /// How the contents get into the copy.
    enum Method {
        /// Page by page, for a source whose pages are laid out alike.
        case pages
        /// Row by row, between any two layouts.
        case rows
    }

    /// Copies, compares with the source by a fresh connection, and syncs.
    /// - Parameter still: how the source is encrypted, if its main file alone is the store, and nobody else may write to
    ///   it. Without it, what is compared is what the source holds in the transaction that is open, or begun here.
    func fill(
        from source: Connection,
        still: Sealing? = nil,
        sealing: Sealing,
        method: Method,
        setsWAL: Bool,
        progress: ((KeyRotation.Progress) throws -> Void)?
    ) throws(DatabaseError) -> PageTotals {
        let totals = try PageTotals(of: source)
        let report = ProgressReport(totals: totals, progress: progress)
        switch method {
        case .pages:
            if let still, still.key != nil {
                try copyPages(from: source, sealing, totals, setsWAL: setsWAL, report: report)
                return try settle(sealing, comparingWith: (source, still), report)
            }
            return try source.snapshot { () throws(DatabaseError) in
                let totals = try PageTotals(of: source)
                let report = ProgressReport(totals: totals, progress: progress)
                try copyPages(from: source, sealing, totals, setsWAL: setsWAL, report: report)
                let digest = try ContentDigest.of(source) { () throws(DatabaseError) in try report(.verify, 0) }
                return try settle(sealing, contents: digest, report)
            }
        case .rows:
            let digest = try copyRows(from: source, sealing, totals, setsWAL: setsWAL, report: report)
            return try settle(sealing, rows: digest, report)
        }
    }

    /// Verifies a copy that is complete with a fresh connection, and syncs it.
    /// - Parameter store: what it is compared with page by page: the file of a store that nobody else may write to.
    func settle(
        _ sealing: Sealing,
        comparingWith store: (connection: Connection, sealing: Sealing),
        _ report: ProgressReport
    ) throws(DatabaseError) -> PageTotals {
        try report(.verify, 0)
        try verifyPages(sealing, comparedWith: store, report: report)
        return try synchronize(report.totals, report)
    }

    /// - Parameter contents: the ``ContentDigest`` of what was copied page by page.
    private func settle(
        _ sealing: Sealing,
        contents: [UInt8],
        _ report: ProgressReport
    ) throws(DatabaseError) -> PageTotals {
        try report(.verify, 0)
        try verifyPages(sealing, comparedWith: nil, report: report)
        try verifyContents(sealing, digest: contents, report)
        return try synchronize(report.totals, report)
    }

    /// - Parameter rows: the ``ContentDigest`` of what was copied row by row.
    private func settle(_ sealing: Sealing, rows: [UInt8], _ report: ProgressReport) throws(DatabaseError) -> PageTotals
    {
        try report(.verify, 0)
        return try synchronize(verifyRows(sealing, digest: rows), report)
    }

    private func synchronize(_ result: PageTotals, _ report: ProgressReport) throws(DatabaseError) -> PageTotals {
        let totals = report.totals
        try report(.sync, totals.count)
        guard try identity.isNamed(path) else { throw unverified(StoreCopy.exchanged) }
        for suffix in ["-journal", "-wal"] where FileSystem.mayExist(path + suffix) {
            throw unverified("\(path + suffix) is left beside it")
        }
        // The index of a log that is gone. SQLite leaves it when it cannot have a lock for a moment.
        unlink(path + "-shm")
        try FileSystem.synchronize(path)
        try report(.swap, totals.count)
        return result
    }

    private func opening(_ sealing: Sealing) -> StoreOpening {
        StoreOpening(
            path: path,
            key: sealing.key,
            settings: sealing.settings,
            createsFirstPage: false,
            takesLock: false
        )
    }

    private func openTarget(_ sealing: Sealing) throws(DatabaseError) -> Connection {
        var opening = opening(sealing)
        opening.flags |= SQLITE_OPEN_CREATE
        let connection = try opening.open()
        do throws(DatabaseError) {
            try requireIdentity(connection)
        } catch {
            connection.close()
            throw error
        }
        // The file is worthless until it is synced as a whole, so neither a journal nor syncs are needed.
        try connection.run("PRAGMA journal_mode = OFF")
        try connection.run("PRAGMA synchronous = OFF")
        return connection
    }

    private static let exchanged =
        "somebody else put another file in its place; make it where nobody else may rename files"

    /// Makes sure that SQLite has opened the file that was created, and not one that somebody put in its place.
    private func requireIdentity(_ connection: Connection) throws(DatabaseError) {
        // Without /proc one can only ask whether the names are right now.
        let isOwn = try? identity.isOpenInThisProcess()  // See above.
        if let isOwn, isOwn { return }
        guard isOwn == nil, try identity.isNamed(path), try !connection.mainFileHasMoved() else {
            throw unverified(StoreCopy.exchanged)
        }
    }

    /// For the pages of a store, which have this size.
    func openTarget(_ sealing: Sealing, pageSize: Int) throws(DatabaseError) -> Connection {
        let connection = try openTarget(sealing)
        do throws(DatabaseError) {
            // With different sizes the backup would return OK and write garbage and plaintext.
            guard try connection.integer("PRAGMA page_size") == Int64(pageSize) else {
                throw unverified("its pages would differ in size from the store's \(pageSize)")
            }
        } catch {
            connection.close()
            throw error
        }
        return connection
    }

    func finish(_ connection: Connection, setsWAL: Bool) throws(DatabaseError) {
        if setsWAL {
            guard try connection.text("PRAGMA journal_mode = WAL") == "wal" else {
                throw unverified("it could not be put into WAL mode")
            }
        }
        guard connection.close() else { throw unverified("it could not be closed") }
    }

    private func copyPages(
        from source: Connection,
        _ sealing: Sealing,
        _ totals: PageTotals,
        setsWAL: Bool,
        report: ProgressReport
    ) throws(DatabaseError) {
        let connection = try openTarget(sealing, pageSize: totals.size)
        defer { connection.close() }
        try Backup.copy(from: source, to: connection, pagesPerStep: 256) { completed, _ throws(DatabaseError) in
            try report(.copy, completed)
        }
        try finish(connection, setsWAL: setsWAL)
    }

    private func copyRows(
        from source: Connection,
        _ sealing: Sealing,
        _ totals: PageTotals,
        setsWAL: Bool,
        report: ProgressReport
    ) throws(DatabaseError) -> [UInt8] {
        let connection = try openTarget(sealing)
        defer { connection.close() }
        if sealing.key == nil { try connection.run("PRAGMA page_size = \(totals.size)") }
        // Indexes are filled in the order of the rows.
        try connection.run("PRAGMA cache_size = -65536")
        let pageSize = Int64(try connection.integer("PRAGMA page_size") ?? 4096)
        let digest = try RowCopy(source: source, target: connection).run { pages throws(DatabaseError) in
            try report(.copy, min(pages * pageSize / Int64(totals.size), totals.count))
        }
        try report(.copy, totals.count)
        try finish(connection, setsWAL: setsWAL)
        return digest
    }

    private func verifyPages(
        _ sealing: Sealing,
        comparedWith store: (connection: Connection, sealing: Sealing)?,
        report: ProgressReport
    ) throws(DatabaseError) {
        let source = store.flatMap { store in
            store.sealing.key.map { PageScan(connection: store.connection, key: $0, settings: store.sealing.settings) }
        }
        let check = CopyCheck(opening: opening(sealing), sealing: sealing, source: source) {
            completed throws(DatabaseError) in try report(.verify, completed)
        }
        let problems = try check.problems(pageCount: report.totals.count)
        guard problems.isEmpty else { throw unverified(problems.prefix(5).joined(separator: "; ")) }
    }

    private func verifyContents(
        _ sealing: Sealing,
        digest: [UInt8],
        _ report: ProgressReport
    ) throws(DatabaseError) {
        let connection = try opening(sealing).open()
        defer { connection.close() }
        connection.acceptUnknownCollations()
        let found = try ContentDigest.of(connection) { () throws(DatabaseError) in
            try report(.verify, report.totals.count)
        }
        guard found == digest else { throw unverified("its contents are not those of the source") }
        guard connection.close() else { throw unverified("it could not be closed") }
    }

    private func verifyRows(_ sealing: Sealing, digest: [UInt8]) throws(DatabaseError) -> PageTotals {
        let connection = try opening(sealing).open()
        defer { connection.close() }
        let isPlaintext = try StoreHeader.isPlaintext(connection.fileBytes(count: 100))
        guard isPlaintext == (sealing.key == nil) else {
            throw unverified(isPlaintext ? "it is plaintext" : "it is no plaintext database")
        }
        // Rows that break a CHECK of the schema broke it in the source too.
        try connection.run("PRAGMA ignore_check_constraints = ON")
        let report = try IntegrityReport.check(connection, path: path, sealing: sealing)
        guard report.isSound else {
            let pages = report.damagedPages.prefix(5).map { "page \($0)" }
            throw unverified((pages + report.structureProblems.prefix(5)).joined(separator: "; "))
        }
        guard try ContentDigest.of(connection) == digest else {
            throw unverified("its contents are not those of the source")
        }
        guard connection.close() else { throw unverified("it could not be closed") }
        return PageTotals(count: report.pageCount, size: report.pageSize)
    }

    private func unverified(_ what: String) -> DatabaseError {
        DatabaseError(
            extendedCode: SQLITE_CORRUPT,
            reason: .unverified,
            message: "The new file did not verify and was discarded: \(what)."
        )
    }

    /// The point of no return: renames over the store.
    /// - Parameter oldFile: another name for the old file, which it then keeps.
    func swapIn(keepingOldAs oldFile: String? = nil) throws(DatabaseError) {
        if let oldFile { try keepOld(as: oldFile) }
        guard rename(path, target) == 0 else {
            let number = errno
            discard()
            // A second name of the store, if it stays: it is told apart from a store that was kept (`ReplaceablePlace`).
            if let oldFile { unlink(oldFile) }
            throw .system("The copy could not take the store's place", reason: .ioError, number: number)
        }
    }

    private func keepOld(as oldFile: String) throws(DatabaseError) {
        do throws(DatabaseError) {
            guard link(target, oldFile) == 0 else {
                let number = errno
                throw .system(
                    "Cannot keep the old file as \(oldFile)",
                    reason: number == EEXIST ? .alreadyExists : .cannotCreate,
                    number: number
                )
            }
            do throws(DatabaseError) {
                // Or a power failure could leave the new file alone.
                try FileSystem.synchronizeDirectory(of: target)
            } catch {
                // As in `swapIn`.
                unlink(oldFile)
                throw error
            }
        } catch {
            discard()
            throw error
        }
    }

    /// Renames over a store that nobody has open, and keeps it under another name, with what belongs to it.
    ///
    /// A log or journal holds rows of the old file, and would be taken for the new one's. If there is one, the old file is
    /// gone from its own name before its log is: for that moment there is no store, rather than one that has lost rows.
    func swapIn(keepingOldUnder name: String) throws(DatabaseError) {
        let logs = ["-wal", "-journal"].filter { FileSystem.mayExist(target + $0) }
        var isMoved = false
        do throws(DatabaseError) {
            for suffix in logs + [""] {
                guard link(target + suffix, name + suffix) == 0 else {
                    throw .system("Cannot keep \(target + suffix) as \(name + suffix)", reason: .cannotCreate)
                }
            }
            try FileSystem.synchronizeDirectory(of: target)
            if !logs.isEmpty {
                isMoved = true
                for suffix in [""] + logs {
                    guard unlink(target + suffix) == 0 else {
                        throw .system("Cannot move \(target + suffix) out of the way", reason: .ioError)
                    }
                }
                try FileSystem.synchronizeDirectory(of: target)
            }
            // The shared memory of a log is made anew from it.
            unlink(target + "-shm")
            // Where there is no store for a moment, somebody may make one.
            let result = logs.isEmpty ? rename(path, target) : sealeddb_rename_exclusively(path, target)
            guard result == 0 else { throw .system("The copy could not take the store's place", reason: .ioError) }
        } catch {
            discard()
            guard isMoved else {
                // Only second names: the store may have lost its own meanwhile. One that stays does no harm.
                for suffix in logs + [""] where isSameFile(target + suffix, name + suffix) { unlink(name + suffix) }
                throw error.adding(context: "Nothing was restored, and \(target) is unchanged")
            }
            throw error.adding(context: putBack(from: name, logs: logs))
        }
    }

    /// - Returns: what is true of the store then.
    private func putBack(from name: String, logs: [String]) -> String {
        let suffixes = logs + [""]
        // What became of it is looked at next.
        for suffix in suffixes where !FileSystem.exists(target + suffix) { _ = link(name + suffix, target + suffix) }
        // Why the directory cannot be synced makes no difference to what is to be done.
        guard suffixes.allSatisfy({ isSameFile(target + $0, name + $0) }),
            (try? FileSystem.synchronizeDirectory(of: target)) != nil
        else {
            return """
                Nothing was restored, and the store is whole as \(name), with what stands beside it. If \(target) is missing, \
                or is a file that somebody else has made meanwhile, move that away, and rename the store back
                """
        }
        // Second names, if they stay.
        for suffix in suffixes { unlink(name + suffix) }
        return "Nothing was restored, and \(target) is unchanged"
    }

    /// False also where that cannot be told.
    private func isSameFile(_ first: String, _ second: String) -> Bool {
        var (one, other) = (stat(), stat())
        return lstat(first, &one) == 0 && lstat(second, &other) == 0 && one.isSameFile(as: other)
    }

    /// Makes the swap durable.
    func synchronizeSwap() throws(DatabaseError) {
        do throws(DatabaseError) {
            try requireInPlace()
            try FileSystem.synchronizeDirectory(of: target)
        } catch {
            // It says by itself what state it is in.
            guard error.reason != .unverified else { throw error }
            throw error.adding(
                context: """
                    The store now has the new contents and key, but the directory could not be synced: after a power \
                    failure it may have the old ones. Keep both keys, and check with verify
                    """
            )
        }
    }

    /// Puts the file in place only if there is no other. It may not last before ``synchronizeNew()``.
    func moveIn() throws(DatabaseError) {
        do throws(DatabaseError) {
            try StoreCopy.requireNoLog(of: target)
        } catch {
            discard()
            throw error
        }
        guard sealeddb_rename_exclusively(path, target) == 0 else {
            let number = errno
            discard()
            throw .system(
                "Cannot create \(target)",
                reason: number == EEXIST ? .alreadyExists : .cannotCreate,
                number: number
            )
        }
    }

    /// Makes sure that what has the name now is what was verified.
    private func requireInPlace() throws(DatabaseError) {
        guard try identity.isNamed(target) else {
            throw DatabaseError(
                extendedCode: SQLITE_CANTOPEN,
                reason: .unverified,
                message: """
                    Somebody else put a file in the place of \(target), in the moment in which the new one got this name. Do \
                    not trust it, and keep your backups and keys.
                    """
            )
        }
    }

    /// A log or journal without a database would be taken for the new one's.
    static func requireNoLog(of path: String) throws(DatabaseError) {
        for log in [path + "-wal", path + "-journal"] {
            var status = stat()
            guard lstat(log, &status) == 0 else {
                guard errno != ENOENT else { continue }
                throw .system("Cannot examine \(log)", reason: .ioError)
            }
            // What has another name too was left by a restore that was killed, and is safe under that.
            if status.st_size == 0 || status.st_nlink > 1, unlink(log) == 0 { continue }
            throw .logWithoutDatabase(log)
        }
    }

    func synchronizeNew() throws(DatabaseError) {
        do throws(DatabaseError) {
            try requireInPlace()
            try FileSystem.synchronizeDirectory(of: target)
        } catch {
            // It says by itself what state it is in.
            guard error.reason != .unverified else { throw error }
            throw error.adding(
                context: """
                    \(target) is complete, but the directory could not be synced: after a power failure it may be missing
                    """
            )
        }
    }
}
