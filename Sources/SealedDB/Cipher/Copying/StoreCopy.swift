internal import CSealedDBSystem
import Foundation

/// A new file beside a store, which takes the store's place after it is verified.
struct StoreCopy {
    let path: String
    private let target: String
    private let identity: FileIdentity
    /// Keeps the copy's key where it was confirmed.
    let keyHold = KeyHold()

    /// Part of the name of a copy whose store was in WAL mode.
    private static let markOfWAL = "wal"

    /// Creates the empty file. By default it gets the attributes of the store.
    /// - Parameter ofWAL: whether the store is in WAL mode, which is switched off while it is copied. The name of the
    ///   copy tells this if the process is killed meanwhile.
    /// - Parameter mark: what else the name tells then.
    init(
        beside target: String,
        takesAttributes: Bool = true,
        ofWAL: Bool = false,
        mark: String = ""
    ) throws(DatabaseError) {
        self.target = target
        path = try TemporaryFile.path(beside: target, mark: ofWAL ? StoreCopy.markOfWAL : mark)
        identity = try FileIdentity(creating: path)
        guard takesAttributes else { return }
        do throws(DatabaseError) {
            try FileSystem.copyAttributes(from: target, to: path)
        } catch {
            // A file that cannot be removed, here and below, is a leftover, which the next copy removes.
            unlink(path)
            throw error
        }
    }

    /// Goes on with a file that a process left that was making a copy.
    /// - Returns: `nil` if it is none that this process could have made.
    init?(resuming leftover: String, of target: String) throws(DatabaseError) {
        guard let identity = try FileIdentity(ofLeftover: leftover) else { return nil }
        (self.target, path, self.identity) = (target, leftover, identity)
    }

    /// Removes what earlier copies left when their processes were killed. Safe for the caller that has the store's
    /// ``UsageLock`` exclusively, because no other copy is being made then.
    static func removeLeftovers(of path: String) {
        TemporaryFile.removeLeftovers(of: path)
    }

    func removeOtherLeftovers() {
        TemporaryFile.removeLeftovers(of: target, except: path)
    }

    /// Whether a process was killed while it copied a store that had been in WAL mode.
    static func hasLeftoverOfWAL(_ path: String) -> Bool {
        TemporaryFile.hasLeftover(of: path, mark: markOfWAL)
    }

    /// Removes the copy and the files that SQLite keeps beside it. A file that cannot be removed is a leftover, which
    /// the next copy removes.
    func discard() {
        for suffix in ["", "-journal", "-wal", "-shm"] { unlink(path + suffix) }  // See above.
        keyHold.release()
    }

    /// The error, or what is behind it if somebody has removed the copy: another process that makes the same store takes it for
    /// a leftover. Call it before the copy is discarded.
    private func explained(_ error: DatabaseError) -> DatabaseError {
        guard !FileSystem.mayExist(path) else { return error }
        return DatabaseError(
            extendedCode: SQLITE_BUSY,
            reason: .busy,
            message: """
                Somebody else has removed the unfinished \(path), as does a process that makes \(target), too. Look whether that \
                is there before you try again.
                """
        )
    }

    /// The way in which the contents are copied.
    enum Method {
        /// These pages, which are those of the source, without SQLCipher. The source must have the same page layout.
        case transfer(PageSource)
        /// Page by page, by SQLite. The source must have the same page layout.
        case pages
        /// Row by row. The page layouts may differ. The source is sealed like this; `nil` if its pages are not to be read from its
        /// file, because it is in memory. They also are not if only SQLite can read them.
        case rows(of: Sealing?)
    }

    /// Copies the source, compares the copy with it, and syncs the copy. The contents are those of the transaction that
    /// is open in the source, or of one that begins here.
    func fill(
        from source: Connection,
        sealing: Sealing,
        method: Method,
        setsWAL: Bool,
        progress: ((KeyRotation.Progress) throws -> Void)?
    ) throws(DatabaseError) -> PageTotals {
        do throws(DatabaseError) {
            return try filled(from: source, sealing, method, setsWAL: setsWAL, progress: progress)
        } catch {
            throw explained(error)
        }
    }

    private func filled(
        from source: Connection,
        _ sealing: Sealing,
        _ method: Method,
        setsWAL: Bool,
        progress: ((KeyRotation.Progress) throws -> Void)?
    ) throws(DatabaseError) -> PageTotals {
        switch method {
        case .transfer(let pages):
            return try fill(with: pages, sealing, setsWAL ? .wal : .kept, progress: progress)
        case .pages:
            return try source.snapshot { () throws(DatabaseError) in
                var totals = try PageTotals(of: source)
                // SQLite gives the copy of a database without pages the first one.
                totals.count = max(totals.count, 1)
                let report = ProgressReport(totals: totals, progress: progress)
                try copyPages(from: source, sealing, totals, setsWAL: setsWAL, report: report.part(to: 0.4))
                let digest = try report.part(from: 0.4, to: 0.6).whileReading(source, .compare) {
                    () throws(DatabaseError) in try ContentDigest.of(source)
                }
                return try settle(sealing, contents: digest, report.part(from: 0.6))
            }
        case .rows(let own):
            let totals = try PageTotals(of: source)
            let report = ProgressReport(totals: totals, progress: progress)
            let digest = try source.snapshot { () throws(DatabaseError) in
                if let own, totals.count > 0 { try requireSoundSource(source, own, report.part(to: 0.3)) }
                let copying = report.part(from: 0.3, to: 0.6)
                return try copyRows(from: source, own, sealing, totals, setsWAL: setsWAL, report: copying)
            }
            return try settle(sealing, rows: digest, report.part(from: 0.6))
        }
    }

    /// Fills the file with what `body` writes, compares it over a new connection with what was written, and syncs it.
    func fill(
        _ sealing: Sealing,
        _ report: ProgressReport,
        _ body: (Connection) throws(DatabaseError) -> Void
    ) throws(DatabaseError) {
        do throws(DatabaseError) { try filled(sealing, report, body) } catch { throw explained(error) }
    }

    private func filled(
        _ sealing: Sealing,
        _ report: ProgressReport,
        _ body: (Connection) throws(DatabaseError) -> Void
    ) throws(DatabaseError) {
        let connection = try openTarget(sealing)
        defer { connection.close() }
        // A statement that fails must leave nothing.
        try connection.run("PRAGMA journal_mode = MEMORY")
        try connection.run("PRAGMA cache_size = -65536")
        try body(connection)
        let digest = try report.part(to: 0.3).whileReading(connection, .compare) { () throws(DatabaseError) in
            try ContentDigest.of(connection)
        }
        try finish(connection, setsWAL: false)
        // The totals are those of another file.
        _ = try settle(sealing, rows: digest, report.part(from: 0.3))
    }

    /// Changes the file after it was verified, and syncs it again.
    func amend(
        _ sealing: Sealing,
        _ body: (Connection) throws(DatabaseError) -> Void
    ) throws(DatabaseError) {
        let connection = try openTarget(sealing)
        defer { connection.close() }
        try connection.run("PRAGMA journal_mode = MEMORY")
        try connection.run("BEGIN IMMEDIATE")
        try body(connection)
        try connection.run("COMMIT")
        try finish(connection, setsWAL: false)
        guard try identity.isNamed(path) else { throw unverified(StoreCopy.exchanged) }
        try FileSystem.synchronize(path)
    }

    /// What SQLite finds in the file, over a new connection.
    /// - Throws: ``DatabaseError`` if a page is damaged.
    func structureProblems(_ sealing: Sealing) throws(DatabaseError) -> [String] {
        let connection = try opening(sealing).open()
        defer { connection.close() }
        try connection.run("PRAGMA ignore_check_constraints = ON")
        let report = try IntegrityReport.check(connection, path: path, sealing: sealing)
        let pages = report.pagesNotAsWritten
        guard pages.isEmpty else {
            throw unverified(pages.prefix(5).map { "page \($0)" }.joined(separator: "; "))
        }
        return report.structureProblems
    }

    /// Verifies a complete copy over a new connection, and syncs it.
    /// - Parameter store: the store that the copy is compared with, page by page. Nobody else may write to its file.
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
        try verifyPages(sealing, comparedWith: nil, report: report.part(to: 0.5))
        try verifyContents(sealing, digest: contents, report.part(from: 0.5))
        return try synchronize(report.totals, report)
    }

    /// - Parameter rows: the ``ContentDigest`` of what was copied row by row.
    private func settle(_ sealing: Sealing, rows: [UInt8], _ report: ProgressReport) throws(DatabaseError) -> PageTotals
    {
        return try synchronize(verifyRows(sealing, digest: rows, report), report)
    }

    private func synchronize(_ result: PageTotals, _ report: ProgressReport) throws(DatabaseError) -> PageTotals {
        try synchronize(report) { () throws(DatabaseError) in try FileSystem.synchronize(path) }
        return result
    }

    /// Syncs the verified copy by `sync`, if it is still the file with its name, and nothing stands beside it.
    func synchronize(
        _ report: ProgressReport,
        by sync: () throws(DatabaseError) -> Void
    ) throws(DatabaseError) {
        let totals = report.totals
        try report(.sync, totals.count)
        guard try identity.isNamed(path) else { throw unverified(StoreCopy.exchanged) }
        for suffix in ["-journal", "-wal"] where FileSystem.mayExist(path + suffix) {
            throw unverified("\(path + suffix) is left beside it")
        }
        // This is the index of a log that is gone. SQLite leaves it behind if it cannot get a lock for a moment.
        unlink(path + "-shm")
        try sync()
        try report(.swap, totals.count)
    }

    /// The file, to be written without SQLite.
    func newFile() throws(DatabaseError) -> NewFile {
        guard let file = try NewFile(identity, path: path) else { throw unverified(StoreCopy.exchanged) }
        return file
    }

    func opening(_ sealing: Sealing) -> StoreOpening {
        StoreOpening(
            path: path,
            key: sealing.key,
            settings: sealing.settings,
            createsFirstPage: false,
            takesLock: false
        )
    }

    func openTarget(_ sealing: Sealing) throws(DatabaseError) -> Connection {
        // SQLite would make another one.
        guard FileSystem.mayExist(path) else { throw unverified("it is gone") }
        var opening = opening(sealing)
        opening.flags |= SQLITE_OPEN_CREATE
        let connection = try opening.open()
        connection.isDraft = true
        do throws(DatabaseError) {
            try requireIdentity(connection)
        } catch {
            connection.close()
            throw error
        }
        // The file is worthless until the whole of it is synced, so it needs neither a journal nor earlier syncs.
        try connection.run("PRAGMA journal_mode = OFF")
        try connection.run("PRAGMA synchronous = OFF")
        return connection
    }

    private static let exchanged =
        "somebody else put another file in its place; make it where nobody else may rename files"

    /// Makes sure that SQLite has opened the file that was created here, and not one that somebody put in its place.
    private func requireIdentity(_ connection: Connection) throws(DatabaseError) {
        // Without /proc this throws. Then only the names can be checked.
        let isOwn = try? identity.isOpenInThisProcess()  // See above.
        if let isOwn, isOwn { return }
        guard isOwn == nil, try identity.isNamed(path), try !connection.mainFileHasMoved() else {
            throw unverified(StoreCopy.exchanged)
        }
    }

    /// Opens the copy for the pages of a store with this page size.
    func openTarget(_ sealing: Sealing, pageSize: Int) throws(DatabaseError) -> Connection {
        let connection = try openTarget(sealing)
        do throws(DatabaseError) {
            // With different page sizes the backup would return OK, and write garbage and plaintext.
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
        let found = try report.whileReading(connection, .compare) { () throws(DatabaseError) in
            try ContentDigest.of(connection)
        }
        guard found == digest else { throw unverified("its contents are not those of the source") }
        guard connection.close() else { throw unverified("it could not be closed") }
    }

    func unverified(_ what: String) -> DatabaseError {
        DatabaseError(
            extendedCode: SQLITE_CORRUPT,
            reason: .unverified,
            message: "The new file did not verify and was discarded: \(what)."
        )
    }

    /// Renames the copy over the store. From then on there is no way back.
    /// - Parameter oldFile: another name under which the old file is kept; `nil` if it is not kept.
    func swapIn(keepingOldAs oldFile: String? = nil) throws(DatabaseError) {
        if let oldFile { try keepOld(as: oldFile) }
        guard rename(path, target) == 0 else {
            let number = errno
            discard()
            // If this second name of the store stays, `ReplaceablePlace` can tell it from an old file that was kept.
            if let oldFile { unlink(oldFile) }
            throw .system("The copy could not take the store's place", reason: .ioError, number: number)
        }
        keyHold.release()
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
                // Without this, the old file could be lost in a power failure, and only the new one remain.
                try FileSystem.synchronizeDirectory(of: target)
            } catch {
                // If it stays, it does no harm, as in `swapIn`.
                unlink(oldFile)
                throw error
            }
        } catch {
            discard()
            throw error
        }
    }

    /// Renames the copy over a store that nobody has open, and keeps the store, with its log and journal, under another
    /// name.
    ///
    /// A log or journal holds data of the old file, and SQLite would take it for the new file's. If there is one, the
    /// old file's name is removed before the name of its log: for that moment there is no store at this path, which is
    /// better than one that has lost rows.
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
            // This is the index of the log. SQLite makes it again from the log.
            unlink(target + "-shm")
            // If there is no store for a moment, somebody else may create one; it must not be replaced.
            let result = logs.isEmpty ? rename(path, target) : sealeddb_rename_exclusively(path, target)
            guard result == 0 else { throw .system("The copy could not take the store's place", reason: .ioError) }
            keyHold.release()
        } catch {
            discard()
            guard isMoved else {
                // Remove a second name only if the store still has its own. A second name that stays does no harm.
                for suffix in logs + [""] where isSameFile(target + suffix, name + suffix) { unlink(name + suffix) }
                throw error.adding(context: "Nothing was restored, and \(target) is unchanged")
            }
            throw error.adding(context: putBack(from: name, logs: logs))
        }
    }

    /// Gives the old store its name back.
    /// - Returns: the state of the store after that, for an error message.
    private func putBack(from name: String, logs: [String]) -> String {
        let suffixes = logs + [""]
        // The check below finds the links that failed.
        for suffix in suffixes where !FileSystem.exists(target + suffix) { _ = link(name + suffix, target + suffix) }
        // The reason for a failed sync does not matter, because the advice is the same.
        guard suffixes.allSatisfy({ isSameFile(target + $0, name + $0) }),
            (try? FileSystem.synchronizeDirectory(of: target)) != nil
        else {
            return """
                Nothing was restored, and the store is whole as \(name), with what stands beside it. If \(target) is missing, \
                or is a file that somebody else has made meanwhile, move that away, and rename the store back
                """
        }
        // If one of these second names stays, it does no harm.
        for suffix in suffixes { unlink(name + suffix) }
        return "Nothing was restored, and \(target) is unchanged"
    }

    /// Whether both names belong to the same file. False if that cannot be found out.
    private func isSameFile(_ first: String, _ second: String) -> Bool {
        var (one, other) = (stat(), stat())
        return lstat(first, &one) == 0 && lstat(second, &other) == 0 && one.isSameFile(as: other)
    }

    /// Makes the swap durable.
    func synchronizeSwap() throws(DatabaseError) {
        try synchronizeName(
            orSay: """
                The store now has the new contents and key, but the directory could not be synced: after a power failure \
                it may have the old ones. Keep both keys, and check with verify
                """
        )
    }

    /// Makes the rename durable.
    /// - Parameter state: what an error says of the state of the files.
    private func synchronizeName(orSay state: String) throws(DatabaseError) {
        do throws(DatabaseError) {
            try requireInPlace()
            try FileSystem.synchronizeDirectory(of: target)
        } catch {
            // An unverified error already describes the state of the store.
            throw error.reason == .unverified ? error : error.adding(context: state)
        }
    }

    /// Renames the copy to a new name, and fails if that exists. The rename is durable only after ``synchronizeNew()``.
    func moveIn() throws(DatabaseError) {
        do throws(DatabaseError) {
            try StoreCopy.requireNoLog(of: target)
        } catch {
            discard()
            throw error
        }
        guard sealeddb_rename_exclusively(path, target) == 0 else {
            let number = errno
            let reason: DatabaseError.Reason = number == EEXIST ? .alreadyExists : .cannotCreate
            let error = explained(.system("Cannot create \(target)", reason: reason, number: number))
            discard()
            throw error
        }
        keyHold.release()
    }

    /// Whether the copy has the name that it was made with.
    func hasItsName() throws(DatabaseError) -> Bool {
        guard try FileSystem.statusIfPresent(path) != nil else { return false }
        return try identity.isNamed(path)
    }

    /// Whether the copy has the name of its target. False if that cannot be found out.
    var isInPlace: Bool { (try? identity.isNamed(target)) ?? false }

    /// Makes sure that the file that has the name now is the one that was verified.
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

    /// Fails if there is a log or journal without a database, because SQLite would take it for the new database's.
    static func requireNoLog(of path: String) throws(DatabaseError) {
        for log in [path + "-wal", path + "-journal"] {
            var status = stat()
            guard lstat(log, &status) == 0 else {
                guard errno != ENOENT else { continue }
                throw .system("Cannot examine \(log)", reason: .ioError)
            }
            // A log with a second hard link was left by a restore that was killed. It is safe under its other name.
            if status.st_size == 0 || status.st_nlink > 1, unlink(log) == 0 { continue }
            throw .logWithoutDatabase(log)
        }
    }

    func synchronizeNew() throws(DatabaseError) {
        try synchronizeName(
            orSay:
                "\(target) is complete, but the directory could not be synced: after a power failure it may be missing"
        )
    }
}
