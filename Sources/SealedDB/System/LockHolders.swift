import Foundation

/// Which processes hold locks on a database, as far as the kernel tells. For messages: by the time they are read it may
/// have changed.
enum LockHolders {
    /// Such as `process 4711 (sealdb)` for each process that could be in the way of a writer, or of one who wants the
    /// file to itself.
    ///
    /// Taken from `/proc/locks`: opening the files to ask would drop this process's own locks when they are closed.
    /// - Parameter attempts: how often to look if nobody is found. The kernel gives the table page by page, and while it
    ///   changes leaves lines out.
    static func of(_ path: String, isForAlone: Bool = false, attempts: Int = 5) -> [String] {
        for _ in 0..<attempts {
            let holders = now(path, isForAlone: isForAlone)
            if !holders.isEmpty { return holders }
        }
        return []
    }

    private static func now(_ path: String, isForAlone: Bool) -> [String] {
        // What is not there is locked by nobody, and what cannot be read is left out of a message.
        let files = [path, path + "-shm"].compactMap { try? FileSystem.status($0) }.map { LockedFile($0) }
        // As above.
        guard !files.isEmpty, let table = FileSystem.kernelText("/proc/locks") else { return [] }
        var writers: [Int32] = []
        var readers: [Int32] = []
        for line in table.split(separator: "\n") {
            // 1: POSIX  ADVISORY  WRITE 4711 fe:00:1234 120 120; with "->" those who wait.
            let fields = line.split(separator: " ")
            guard fields.count >= 8, fields[1] == "POSIX" || fields[1] == "OFDLCK", let process = Int32(fields[4]),
                let file = LockedFile(fields[5]), files.contains(file)
            else { continue }
            // Whoever has a file in WAL mode open holds byte 128. https://www.sqlite.org/walformat.html#locks
            let isPresence = !isForAlone && files.count > 1 && file == files[1] && fields[6] == "128"
            if fields[3] == "WRITE" { writers.append(process) } else if !isPresence { readers.append(process) }
        }
        // This process has read locks of its own when it asks.
        let inTheWay = writers.isEmpty || isForAlone ? (writers + readers).filter { $0 != getpid() } : writers
        return Set(inTheWay).sorted().map(describe)
    }

    /// Whether anybody has a lock on the file, as far as this process may see; true if it cannot be told.
    static func hasLocks(on path: String) -> Bool {
        // A file that is gone is locked by nobody; without a table nobody can tell.
        guard let file = try? FileSystem.status(path) else { return false }
        guard let table = FileSystem.kernelText("/proc/locks") else { return true }
        return table.split(separator: "\n").contains { line in
            line.split(separator: " ").contains { LockedFile($0) == LockedFile(file) }
        }
    }

    /// The number alone, if the name cannot be had.
    static func describe(_ process: Int32) -> String {
        if process == getpid() { return "another connection of this process" }
        // A process that has ended has no name any more.
        let name = FileSystem.kernelText("/proc/\(process)/comm")
        return "process \(process)" + (name.map { " (\($0.trimmingCharacters(in: .newlines)))" } ?? "")
    }

    /// A file as `/proc/locks` names it.
    private struct LockedFile: Equatable {
        let device: UInt64
        let inode: UInt64

        init(_ status: stat) {
            device = UInt64(status.st_dev)
            inode = UInt64(status.st_ino)
        }

        /// `fe:00:1234`: major and minor device numbers in hexadecimal, inode in decimal.
        init?(_ text: Substring) {
            let parts = text.split(separator: ":")
            guard parts.count == 3, let major = UInt64(parts[0], radix: 16), let minor = UInt64(parts[1], radix: 16),
                let inode = UInt64(parts[2])
            else { return nil }
            device = (major & 0xfff) << 8 | minor & 0xff | (minor & ~0xff) << 12 | (major & ~0xfff) << 32
            self.inode = inode
        }
    }
}
