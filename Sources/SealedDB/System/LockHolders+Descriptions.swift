import Foundation

/// Finds the holders of open-file-description locks, for which the kernel names no process.
extension LockHolders {
    /// Returns a text such as `process 4711 (sealdb)` for each process that has locked the file through a descriptor of
    /// its own.
    ///
    /// The kernel shows the locks of a process's descriptors to those who may examine that process.
    /// <https://man7.org/linux/man-pages/man5/proc_pid_fdinfo.5.html>
    static func ofDescriptions(_ path: String) -> [String] { processes(withLocksOn: path).map(describe) }

    /// Throws if another process has the store open, whether or not it blocks a writer.
    ///
    /// A child of this process has copies of its descriptors, with their locks, until it calls exec. So only processes
    /// that keep the store open for a while count.
    /// - Parameter table: the kernel's table of locks at the moment of the call. It also tells of processes that this user may
    ///   not examine.
    static func requireNoOthers(
        of store: String,
        table: () -> LockTable? = { LockTable() }
    ) throws(DatabaseError) {
        var lasting: Set<Int32>?
        for attempt in 0..<20 {
            if attempt > 0 { pause() }
            let others = try Set(processes(withLocksOn: UsageLock.path(ofStore: store)) + FileUsers.others(store))
                .union(processes(inTheWayOf: store, isForAlone: true, table))
                .subtracting([getpid()])
            lasting = lasting.map { $0.intersection(others) } ?? others
            if lasting == [] { return }
        }
        throw .storeInUse(store, by: (lasting ?? []).sorted().map(describe))
    }

    static func pause() {
        var pause = timespec(tv_sec: 0, tv_nsec: 50_000_000)
        // A signal may shorten the pause. That does no harm: nothing depends on its length.
        _ = nanosleep(&pause, nil)
    }

    private static func processes(withLocksOn path: String) -> [Int32] {
        // Without a lock file, nobody has a lock on it.
        byInodes({ [path].compactMap { try? FileSystem.status($0) } }) { files in
            guard !files.isEmpty else { return [] }
            let processes = descriptors(of: files).filter { !locks(of: $0).isEmpty }.map(\.process)
            return Set(processes).sorted()
        }
    }

    /// Returns the lines that `/proc/locks` would have for the locks that were taken through descriptors of these files.
    static func locks(ofDescriptorsOf files: [stat]) -> [String] {
        files.isEmpty ? [] : descriptors(of: files).flatMap { locks(of: $0) }
    }

    private static func locks(of descriptor: (process: Int32, number: String)) -> [String] {
        // The descriptor was closed, or this user may not examine it.
        locks(ofDescriptor: descriptor.number, of: descriptor.process) ?? []
    }

    /// The locks that a process has on the file of a descriptor, at one moment, as lines of ``LockTable`` with other white space.
    /// The kernel tells them all at once. `nil`, with `errno` set, if it does not tell.
    static func locks(ofDescriptor number: String, of process: Int32) -> [String]? {
        guard let text = FileSystem.kernelText("/proc/\(process)/fdinfo/\(number)") else { return nil }
        return text.split(separator: "\n").filter { $0.hasPrefix("lock:") }.map { String($0.dropFirst(5)) }
    }

    private static func descriptors(of files: [stat]) -> [(process: Int32, number: String)] {
        names(in: "/proc").compactMap { Int32($0) }.flatMap { process in
            names(in: "/proc/\(process)/fd").filter { number in
                // The descriptor was closed, or this user may not examine it.
                guard let other = try? FileSystem.status("/proc/\(process)/fd/\(number)") else { return false }
                return files.contains { other.isSameFile(as: $0) }
            }.map { (process, $0) }
        }
    }

    /// Returns no names if the directory cannot be read.
    private static func names(in directory: String) -> [String] { FileSystem.names(in: directory) ?? [] }
}
