import Foundation

/// The holders of locks of open file descriptions, which have no process to the kernel.
extension LockHolders {
    /// Such as `process 4711 (sealdb)` for each process that has the file locked through a descriptor of its own.
    ///
    /// Every process shows what its descriptors have locked to those who may look into it.
    /// <https://man7.org/linux/man-pages/man5/proc_pid_fdinfo.5.html>
    static func ofDescriptions(_ path: String) -> [String] { processes(withLocksOn: path).map(describe) }

    /// Refuses a store that another process has open, in the way of a writer or not.
    ///
    /// A child of this process has copies of its descriptors, with the locks, until it calls exec. So only who stays for
    /// a while counts.
    static func requireNoOthers(of store: String) throws(DatabaseError) {
        var lasting: Set<Int32>?
        for attempt in 0..<20 {
            if attempt > 0 { pause() }
            let others = try Set(processes(withLocksOn: UsageLock.path(ofStore: store)) + FileUsers.others(store))
                .subtracting([getpid()])
            lasting = lasting.map { $0.intersection(others) } ?? others
            if lasting == [] { break }
        }
        let names = Set((lasting ?? []).map(describe) + of(store, isForAlone: true, attempts: 1)).sorted()
        guard names.isEmpty else { throw .storeInUse(store, by: names) }
    }

    static func pause() {
        var pause = timespec(tv_sec: 0, tv_nsec: 50_000_000)
        // A signal may cut it short: nobody counts on the length.
        _ = nanosleep(&pause, nil)
    }

    private static func processes(withLocksOn path: String) -> [Int32] {
        // Without a lock file nobody has a lock on it.
        guard let status = try? FileSystem.status(path) else { return [] }
        let processes = names(in: "/proc").compactMap { Int32($0) }.filter { process in
            names(in: "/proc/\(process)/fd").contains { descriptor in
                // It was closed, or is not to be seen.
                guard let other = try? FileSystem.status("/proc/\(process)/fd/\(descriptor)"),
                    other.isSameFile(as: status)
                else { return false }
                return FileSystem.kernelText("/proc/\(process)/fdinfo/\(descriptor)")?.contains("\nlock:") == true
            }
        }
        return processes.sorted()
    }

    /// None where nothing is to be seen.
    private static func names(in directory: String) -> [String] { FileSystem.names(in: directory) ?? [] }
}
