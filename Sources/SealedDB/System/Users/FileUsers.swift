internal import CSealedDBSystem
import Foundation

/// Finds the processes that have a file open, whatever locks they hold. Locks alone do not find them all: a stock
/// SQLite shell may hold none, and a container that mounts only the file has a separate lock file.
package enum FileUsers {
    /// Ensures that only the caller has the file open, right before another file takes its place.
    ///
    /// The kernel knows, and tells the owner of a file through a lease. Where it does not tell, processes are searched
    /// one by one. A child of another process has copies of its descriptors until it calls exec, so only processes that
    /// keep the file open for a while count.
    /// - Parameters:
    ///   - ignoresUnseen: whether to go on although some processes cannot be examined and the kernel does not tell.
    /// - Throws: ``DatabaseError/Reason/busy``, with the names of the other processes.
    static func requireNobodyElse(_ path: String, ignoresUnseen: Bool) throws(DatabaseError) {
        var names: [String] = []
        var unseen: [String] = []
        for attempt in 0..<20 {
            if attempt > 0 { LockHolders.pause() }
            let own = try FileSystem.ownDescriptors(of: FileSystem.status(path), path)
            let answer = own.count == 1 ? sealeddb_is_only_descriptor(own[0]) : own.count > 1 ? 0 : -1
            if answer == 1 { return }
            let found = try Search(path)
            names = found.users.map(LockHolders.describe)
            if own.count > 1 { names.append(LockHolders.describe(ProcessDescriptors.own)) }
            unseen = found.unseen
            if answer < 0, names.isEmpty, unseen.isEmpty || ignoresUnseen { return }
            // Further attempts would not change this.
            if answer < 0, names.isEmpty { throw .unseenUsers(path, unseen) }
        }
        throw .storeInUse(path, by: names)
    }

    /// Whether this is the only descriptor for its file, as far as the kernel tells. As above, copies of descriptors that
    /// children have for a moment do not count.
    static func isOnly(_ descriptor: Int32) -> Bool {
        for attempt in 0..<20 {
            if attempt > 0 { LockHolders.pause() }
            let answer = sealeddb_is_only_descriptor(descriptor)
            if answer != 0 { return answer == 1 }
        }
        return false
    }

    /// Detects processes that opened the old file at the last moment. Called after the new file has taken its name.
    /// - Parameters:
    ///   - keptFile: the old file, under its new name.
    ///   - state: the present state of the store, as a sentence.
    static func requireNobodyCame(to keptFile: String, _ state: String) throws(DatabaseError) {
        do throws(DatabaseError) {
            try requireNobodyElse(keptFile, ignoresUnseen: true)
        } catch {
            throw error.adding(
                context: """
                    \(state), but somebody may have opened the old file at the last moment. What they write is in \
                    \(keptFile), and not in the store
                    """
            )
        }
    }

    /// The processes that have a log open of which no locks are known. Usually it was left by a process that has ended, and the
    /// kernel tells that nobody has it open, without a search.
    /// - Returns: the processes that were found, and whether the kernel tells that somebody else has it open, seen or not.
    static func withDescriptors(ofLog path: String) throws(DatabaseError) -> (found: Set<Int32>, isOpen: Bool) {
        // Nobody locks a log, so to close it takes no lock from this process.
        let descriptor = sealeddb_open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK, 0)
        let answer = descriptor >= 0 ? sealeddb_is_only_descriptor(descriptor) : -1
        if descriptor >= 0 { close(descriptor) }  // Nothing was written.
        // Its last user removes it.
        guard answer != 1, let file = try FileSystem.statusIfPresent(path) else { return ([], false) }
        return (try withFile(file, path), answer == 0)
    }

    /// The processes that have a file open, as far as this one may look into them; this one, too.
    static func withFile(_ file: stat, _ path: String) throws(DatabaseError) -> Set<Int32> {
        let own = try FileSystem.ownDescriptors(of: file, path)
        return Set(Search(file).users + (own.isEmpty ? [] : [ProcessDescriptors.own]))
    }

    /// Returns the processes other than this one that have the file open.
    package static func others(_ path: String) throws(DatabaseError) -> [Int32] { try Search(path).users }

    /// A search of all other processes. Descriptors show device and inode, even of files in another mount name space.
    private struct Search {
        private(set) var users: [Int32] = []
        /// What could not be examined, in words.
        private(set) var unseen: [String] = []
        private let file: stat

        /// The initial PID name space, whose number is a constant of the kernel.
        private static let firstNameSpace = "pid:[4026531836]"

        init(_ path: String) throws(DatabaseError) { try self.init(FileSystem.status(path)) }

        init(_ file: stat) {
            self.file = file
            guard let names = FileSystem.names(in: "/proc"), names.contains("self") else {
                unseen = ["any process: /proc is not there"]
                return
            }
            let own = ProcessDescriptors.own
            for process in names.compactMap({ Int32($0) }).sorted() where process != own { look(into: process) }
            if !names.contains("1") { unseen.append("processes that /proc hides") }
            // If the link cannot be read, this counts as another name space.
            if (try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/ns/pid"))
                != Search.firstNameSpace
            {
                unseen.append("processes outside of this container")
            }
        }

        private mutating func look(into process: Int32) {
            guard let descriptors = ProcessDescriptors(of: process) else {
                // The process has ended, or it cannot be examined: not by this user, or for want of memory or descriptors.
                if !ProcessDescriptors.hasEnded(process, errno), !Search.isOfKernel(process) {
                    unseen.append(LockHolders.describe(process))
                }
                return
            }
            for number in descriptors.numbers {
                var found = stat()
                if stat(descriptors.link(number), &found) != 0 {
                    // For any other error, the descriptor was closed in the meantime, or is that of a server that is gone.
                    guard [EACCES, EPERM, ENOMEM].contains(errno) else { continue }
                    unseen.append(LockHolders.describe(process))
                    return
                }
                guard found.isSameFile(as: file) else { continue }
                users.append(process)
                return
            }
        }

        /// Whether it is a kernel thread or a process that has ended: neither has memory of its own, nor threads.
        private static func isOfKernel(_ process: Int32) -> Bool {
            guard let status = FileSystem.kernelText("/proc/\(process)/status") else {
                return ProcessDescriptors.hasEnded(process, errno)
            }
            let hasThreads = !["0", "1"].contains { status.contains("\nThreads:\t\($0)\n") }
            return !status.contains("\nVmSize:") && !hasThreads
        }
    }
}

extension FileUsers {
    /// What a process that may use the log beside a path has to do with the file at that path.
    enum LogUse: Equatable {
        case unknown
        /// - locksIndex: whether it has a lock on the index of the log.
        case ofThisFile(locksIndex: Bool)
        /// - former: the files that may be the one it uses the log for, as the table of locks names them; empty if it has not the
        ///   one at the path open.
        case ofAnother(former: Set<String>)
        /// It has ended, or only reads the log, as a program does that copies files.
        case none
    }

    /// A store, and the files that lie beside it at this moment, as the table of locks names them.
    struct Place {
        let path: String
        let store: String
        let log: String?
        let index: String?
    }

    /// Tells from the locks and descriptors of a process whose log it uses.
    ///
    /// SQLite has the log of a store beside the name that the store had when the log was opened, and a lock on the store as long
    /// as it uses the log. So a locked file that now has another name than its log is looked for.
    static func logUse(of place: Place, by process: Int32, _ table: LockTable) -> LogUse {
        // Who may not be looked at, and has a lock on the store, is taken for one who uses it with its log. SQLite has that lock as
        // long as it has one on the index.
        let hasIndexLock = place.index.map { table.hasIndexLock($0, of: process) } ?? false
        var unknown: LogUse {
            if table.hasStoreLock(place.store, of: process) { return .ofThisFile(locksIndex: hasIndexLock) }
            return hasIndexLock ? .ofAnother(former: []) : .unknown
        }
        guard let descriptors = ProcessDescriptors(of: process) else {
            return ProcessDescriptors.hasEnded(process, errno) ? .none : unknown
        }
        var files: [OpenFile] = []
        // The table may lack a lock, and so that on the former file.
        var locked = SQLiteLocks()
        for number in descriptors.numbers {
            switch descriptors.file(number) {
            case .file(let file):
                files.append(file)
                locked.insert(file.locks)
            case .noFile: continue
            case .unknown: return unknown
            }
        }
        let use = LogUser(place: place, locked: locked, files: files).use
        // What it has locked, it has open, somewhere.
        return use == .none && hasIndexLock ? unknown : use
    }

    private struct LogUser {
        let place: Place
        let locked: SQLiteLocks
        let files: [OpenFile]

        var use: LogUse {
            // Without an index nobody has a lock on one.
            let hasIndexLock = place.index.map(locked.indexes.contains)
            let usesIndex = hasIndexLock ?? false || has { $0.id == place.index }
            guard usesIndex || has({ $0.id == place.log && $0.isForWriting }) else { return .none }
            let hasLock = locked.stores.contains(place.store)
            guard hasLock || has({ $0.id == place.store }) else { return .ofAnother(former: []) }
            let name = storeName
            let indexes = lostIndexes(name)
            let former = files.filter { file in
                let wasHere = file.isDeleted && file.name.isSame(as: name)
                let isLost = locked.stores.contains(file.id) && file.id != place.store && !hasFilesBeside(file)
                // Who reads the new file for another purpose has the former one open all the same. A child has copies of its parent's
                // descriptors, no lock on the index, and may use stores of its own.
                guard hasLock else { return isLost && hasIndexLock != false || wasHere }
                // In a rollback mode a store has no log. So one that has none may be a store of its own, if this one has a lock.
                return isLost && (wasHere || indexes.contains { isNear(name, file) || isNear(name, $0) })
            }
            guard former.isEmpty else { return .ofAnother(former: Set(former.map(\.id))) }
            return .ofThisFile(locksIndex: hasIndexLock ?? false)
        }

        /// Whether a file is where the store is. What somebody has renamed elsewhere is of another store.
        private func isNear(_ store: String, _ file: OpenFile) -> Bool {
            FileSystem.directory(of: store).isSame(as: FileSystem.directory(of: file.name))
        }

        /// The path, as the process sees it.
        private var storeName: String {
            for file in files where !file.isDeleted {
                for (id, suffix) in [(place.index, "-shm"), (place.log, "-wal")]
                where file.id == id && file.name.ends(with: suffix) {
                    return file.name.withoutLast(bytes: suffix.utf8.count)
                }
            }
            return place.path
        }

        /// Whether a store has a log or journal of its own by its present name.
        private func hasFilesBeside(_ store: OpenFile) -> Bool {
            has { file in
                file.id != place.log && file.id != place.index
                    && ["-shm", "-wal", "-journal"].contains { file.name.isSame(as: store.name + $0) }
            }
        }

        /// The indexes in use that have no store by their names. Such a one is that of a store that was renamed: this one, or an
        /// unknown one.
        private func lostIndexes(_ name: String) -> [OpenFile] {
            files.filter { index in
                guard locked.indexes.contains(index.id), index.id != place.index, index.name.ends(with: "-shm") else {
                    return false
                }
                let store = index.name.withoutLast(bytes: 4)
                // A former index of this path belongs to a former file.
                return !store.isSame(as: name) && !has { $0.name.isSame(as: store) }
            }
        }

        private func has(_ isWanted: (OpenFile) -> Bool) -> Bool { files.contains(where: isWanted) }
    }
}

extension DatabaseError {
    /// - Parameter holders: the processes. Empty if they belong to users whose processes this one may not examine.
    static func storeInUse(_ store: String, by holders: [String]) -> DatabaseError {
        let names = holders.isEmpty ? "another process, which this user may not see" : holders.joined(separator: ", ")
        return DatabaseError(
            extendedCode: SQLITE_BUSY,
            reason: .busy,
            message: "\(store) is open in \(names). Stop that first. The key alone can also be changed from within it."
        )
    }

    fileprivate static func unseenUsers(_ store: String, _ unseen: [String]) -> DatabaseError {
        let names = unseen.prefix(3).joined(separator: ", ") + (unseen.count > 3 ? " and \(unseen.count - 3) more" : "")
        return DatabaseError(
            extendedCode: SQLITE_BUSY,
            reason: .busy,
            message: """
                Whether somebody has \(store) open cannot be told: this user may not look into \(names). Do it as root or \
                as the owner of the file. If nobody has it open for sure, say so: --force, or ignoresUnseenUsers.
                """
        )
    }
}
