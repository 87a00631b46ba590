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
                .subtracting([ProcessDescriptors.own])
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
        byInodes({ FileAtPath.those(of: [path]) }) { files in
            guard !files.isEmpty else { return [] }
            let processes = descriptors(of: files).filter { !locks(of: $0).isEmpty }.map(\.process)
            return Set(processes).sorted()
        }
    }

    /// Returns the lines that `/proc/locks` would have for the locks that were taken through descriptors of these files.
    static func locks(ofDescriptorsOf files: [FileAtPath]) -> [String] {
        files.isEmpty ? [] : descriptors(of: files).flatMap { locks(of: $0) }
    }

    private static func locks(of descriptor: Descriptor) -> [String] {
        // The descriptor was closed, or this user may not examine it.
        descriptor.all.locks(descriptor.number) ?? []
    }

    private typealias Descriptor = (process: Int32, all: ProcessDescriptors, number: String)

    private static func descriptors(of files: [FileAtPath]) -> [Descriptor] {
        // Without /proc, and of processes that this user may not examine, there are none.
        (FileSystem.names(in: "/proc") ?? []).compactMap { Int32($0) }.flatMap { process -> [Descriptor] in
            guard let all = ProcessDescriptors(of: process) else { return [] }
            return all.numbers.filter { number in
                // The descriptor was closed, or this user may not examine it.
                guard let other = try? FileSystem.status(all.link(number)) else { return false }
                return files.contains { other.isSameFile(as: $0.status) }
            }.map { (process, all, $0) }
        }
    }
}
