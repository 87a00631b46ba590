internal import CSealedDBSystem
import Foundation

/// Who has a file open, whatever locks they hold: a stock shell may hold none, and who has the file alone in its container
/// has another lock file.
enum FileUsers {
    /// Makes sure that nobody but the caller has the file open, right before another one takes its place.
    ///
    /// The kernel knows, and tells the owner of a file by a lease. Where it does not, processes are looked at one by one.
    /// A child of another process has copies of its descriptors until it calls exec, so only who stays for a while counts.
    /// - Parameters:
    ///   - ignoresUnseen: goes on although there are processes that cannot be looked into, and the kernel does not tell.
    /// - Throws: ``DatabaseError/Reason/busy``, with the names of the others.
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
            if own.count > 1 { names.append(LockHolders.describe(getpid())) }
            unseen = found.unseen
            if answer < 0, names.isEmpty, unseen.isEmpty || ignoresUnseen { return }
            // Nothing will change.
            if answer < 0, names.isEmpty { throw .unseenUsers(path, unseen) }
        }
        throw .storeInUse(path, by: names)
    }

    /// Tells of those who opened the old file at the last moment, after another one has taken its name.
    /// - Parameters:
    ///   - keptFile: the old file, under its new name.
    ///   - state: of the store now, as a sentence.
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

    /// Processes other than this one.
    static func others(_ path: String) throws(DatabaseError) -> [Int32] { try Search(path).users }

    /// A look at all other processes. Descriptors tell device and inode also of files in another mount name space.
    private struct Search {
        private(set) var users: [Int32] = []
        /// What could not be looked at, in words.
        private(set) var unseen: [String] = []
        private let file: stat

        /// Of the first process name space: a constant of the kernel.
        private static let firstNameSpace = "pid:[4026531836]"

        init(_ path: String) throws(DatabaseError) {
            file = try FileSystem.status(path)
            guard let names = FileSystem.names(in: "/proc"), names.contains("self") else {
                unseen = ["any process: /proc is not there"]
                return
            }
            for process in names.compactMap({ Int32($0) }).sorted() where process != getpid() { look(into: process) }
            if !names.contains("1") { unseen.append("processes that /proc hides") }
            // What cannot be read is not the first one.
            if (try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/ns/pid"))
                != Search.firstNameSpace
            {
                unseen.append("processes outside of this container")
            }
        }

        private mutating func look(into process: Int32) {
            guard let descriptors = FileSystem.names(in: "/proc/\(process)/fd") else {
                // It ended, or it may not be looked into.
                if [EACCES, EPERM].contains(errno), !Search.isOfKernel(process) {
                    unseen.append(LockHolders.describe(process))
                }
                return
            }
            for descriptor in descriptors {
                var found = stat()
                if stat("/proc/\(process)/fd/\(descriptor)", &found) != 0 {
                    // Closed meanwhile, if not this.
                    guard [EACCES, EPERM].contains(errno) else { continue }
                    unseen.append(LockHolders.describe(process))
                    return
                }
                guard found.isSameFile(as: file) else { continue }
                users.append(process)
                return
            }
        }

        /// A thread of the kernel, or a process that has ended: neither has memory of its own.
        private static func isOfKernel(_ process: Int32) -> Bool {
            // What cannot be read has ended.
            guard let status = FileSystem.kernelText("/proc/\(process)/status") else { return true }
            return !status.contains("\nVmSize:")
        }
    }
}

extension DatabaseError {
    /// - Parameter holders: empty if they belong to users whom this one may not look into.
    static func storeInUse(_ store: String, by holders: [String]) -> DatabaseError {
        let names = holders.isEmpty ? "another process, which this user may not see" : holders.joined(separator: ", ")
        return DatabaseError(
            extendedCode: SQLITE_BUSY,
            reason: .busy,
            message: """
                \(store) is open in \(names). Stop that first, or change the key from within it, by rotateKey(to:).
                """
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
