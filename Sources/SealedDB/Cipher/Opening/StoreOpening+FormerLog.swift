import Foundation

extension StoreOpening {
    /// Whether the log of the store is in use, by those who have the same file open.
    ///
    /// SQLite finds a log and its index by the path of the store. Whoever had a store open when another file was put in its
    /// place still uses them for the former file, and SQLite would mix the pages of both.
    /// - Parameters:
    ///   - path: an absolute path without links.
    ///   - log: the log beside it; `nil` if there is none.
    ///   - table: the kernel's table of locks at the moment of the call.
    /// - Returns: false also if somebody uses the log who cannot be looked at: then its pages have to be.
    /// - Throws: ``DatabaseError/Reason/busy`` if somebody uses the log who has not the file open that is at the path now.
    static func isLogInUse(
        ofStore path: String,
        log: stat?,
        table: () -> LockTable? = { LockTable() }
    ) throws(DatabaseError) -> Bool {
        guard log != nil || FileSystem.mayExist(path + "-shm") else { return false }
        // What a process has open is read one by one, and a rotation of this process keeps the former file for a moment: so only
        // who uses the same other file each time counts.
        var others: [Int32: Set<String>]?
        for attempt in 0..<10 {
            if attempt > 0 { LockHolders.pause() }
            // Without the table, descriptors tell of those whom this user may look into.
            let users = try LogUsers(ofStore: path, table())
            others = others.map { inCommon($0, users.ofAnother) } ?? users.ofAnother
            if others == [:] { return users.areKnown && users.useIndex }
        }
        guard let process = others?.keys.min() else { return false }
        throw logOfFormerFile(path, process)
    }

    /// The processes that two looks tell of, with the files that both tell of. Without files a look tells of any file.
    static func inCommon(_ first: [Int32: Set<String>], _ second: [Int32: Set<String>]) -> [Int32: Set<String>] {
        var common: [Int32: Set<String>] = [:]
        for (process, files) in first {
            guard let others = second[process] else { continue }
            if files.isEmpty || others.isEmpty {
                common[process] = files.union(others)
            } else if !files.isDisjoint(with: others) {
                common[process] = files.intersection(others)
            }
        }
        return common
    }

    /// Who uses the log beside a path at one moment.
    private struct LogUsers {
        /// Stands for a process that this one may not look into.
        static let unseen: Int32 = 0

        /// The processes that use it for another file than the one at the path, and those that this may be.
        private(set) var ofAnother: [Int32: Set<String>] = [:]
        /// Whether all could be looked at.
        private(set) var areKnown = true
        /// Whether some have locks on the index of the log.
        private(set) var useIndex: Bool

        init(ofStore path: String, _ known: LockTable?) throws(DatabaseError) {
            let table = known ?? .empty
            let store = try FileSystem.status(path)
            let log = try StoreOpening.file("-wal", beside: path)
            let index = try StoreOpening.file("-shm", beside: path)
            let ownUse = OpenLogs.use(ofLog: log, index, for: store)
            if ownUse == false { ofAnother[ProcessDescriptors.own] = [] }
            let place = FileUsers.Place(
                path: path,
                store: LockTable.name(of: store, at: path),
                log: log.map { LockTable.name(of: $0, at: path + "-wal") },
                index: index.map { LockTable.name(of: $0, at: path + "-shm") }
            )
            var processes = place.index.map(table.processes) ?? []
            useIndex = !processes.isEmpty
            // A connection that keeps everybody else out has no index, and locks its own file alone. The table may lack others. Once
            // this process uses the log, they have been looked at.
            if ownUse == nil || processes.isEmpty, log != nil {
                let holders = try FileUsers.withDescriptors(ofLog: path + "-wal")
                processes.formUnion(holders.found)
                let isUnseen = holders.isOpen && processes.isEmpty
                if isUnseen {
                    areKnown = false
                    // Without the table, he may use it for this file like anybody.
                    if known != nil, table.processes(withLocksOn: place.store).isEmpty {
                        ofAnother[LogUsers.unseen] = []
                    }
                }
            }
            // Of this process, the connections of the library are known already.
            let own = ProcessDescriptors.own
            for process in processes where process != own || ownUse == nil {
                guard process > 0 else {
                    if !table.processes(withLocksOn: place.store).contains(process) { areKnown = false }
                    continue
                }
                switch FileUsers.logUse(of: place, by: process, table) {
                case .ofThisFile(let locksIndex): useIndex = useIndex || locksIndex
                case .none: continue
                case .unknown: areKnown = false
                case .ofAnother(let former): ofAnother[process] = former
                }
            }
        }
    }

    /// What stands beside the store; `nil` if certainly nothing does.
    static func file(_ suffix: String, beside path: String) throws(DatabaseError) -> stat? {
        var status = stat()
        guard lstat(path + suffix, &status) != 0 else { return status }
        let number = errno
        // No file has a name that is too long.
        guard [ENOENT, ENOTDIR, ENAMETOOLONG].contains(number) else {
            throw .system("Cannot examine \(path)\(suffix)", reason: .ioError, number: number)
        }
        return nil
    }

    static func name(of process: Int32) -> String {
        process == ProcessDescriptors.own ? "this process" : LockHolders.describe(process)
    }

    private static func logOfFormerFile(_ path: String, _ process: Int32) -> DatabaseError {
        guard process != LogUsers.unseen else { return logOfUnseen(path) }
        return DatabaseError(
            extendedCode: SQLITE_BUSY,
            reason: .busy,
            message: """
                \(path) is another file than the one for which \(name(of: process)) still uses the log beside it: somebody put it in the place of a \
                store that was open. SQLite would write pages of the former file into it. Nothing was read or written. Keep a copy of \
                it and of the log, and end who has the former file open. If the new file is whole without that log, as a backup is, \
                move the log away before somebody opens it; otherwise put the former file back.
                """
        )
    }

    private static func logOfUnseen(_ path: String) -> DatabaseError {
        DatabaseError(
            extendedCode: SQLITE_BUSY,
            reason: .busy,
            message: """
                Somebody has the log beside \(path) open: a process that this user may not look into, or one of another container. \
                Whether it uses it for this file, or for one that was there before, cannot be told. Nothing was read or written. Open \
                the store as that user or as root, in the same container; or end who has the log open.
                """
        )
    }
}
