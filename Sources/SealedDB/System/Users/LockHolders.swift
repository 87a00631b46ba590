import Foundation

/// Finds processes that hold locks on a database, as far as the kernel tells. Use this for messages only: the answer
/// may be outdated by the time somebody reads it.
enum LockHolders {
    /// Returns a text such as `process 4711 (sealdb)` for each process that may block a writer, or one who needs the
    /// file exclusively.
    ///
    /// The source is `/proc/locks`: opening the files to query their locks would drop this process's own locks on
    /// closing. The kernel returns that table page by page, and leaves locks out if it changes in between. So if nobody is
    /// in it, each descriptor of the files is asked for its locks, which is exact, takes longer, and shows only the
    /// processes that this user may examine.
    /// - Parameters:
    ///   - isForAlone: whether the caller needs the file exclusively, so that readers block it too.
    ///   - table: the kernel's table of locks at the moment of the call.
    static func of(
        _ path: String,
        isForAlone: Bool = false,
        table: () -> LockTable? = { LockTable() }
    ) -> [String] {
        processes(inTheWayOf: path, isForAlone: isForAlone, table).sorted().map(describe)
    }

    /// The processes of ``of(_:isForAlone:table:)``.
    static func processes(inTheWayOf path: String, isForAlone: Bool, _ table: () -> LockTable?) -> Set<Int32> {
        // A file that does not exist has no locks, and a file that cannot be examined is left out of the message.
        byInodes({ FileAtPath.those(of: [path, path + "-shm"]) }) { files in
            let names = files.map(\.nameInTable)
            // The message also does without a table that cannot be read.
            let table = table()
            let holders = inTheWay(names, names.flatMap { table?.lines(with: $0) ?? [] }, isForAlone: isForAlone)
            return holders.isEmpty ? inTheWay(names, locks(ofDescriptorsOf: files), isForAlone: isForAlone) : holders
        }
    }

    /// Looks for users of files by their inodes. The inode of a file that is removed is soon that of another file, with other
    /// users, so this looks again if the files have changed meanwhile.
    static func byInodes<T, E>(_ files: () throws(E) -> [FileAtPath], _ look: ([FileAtPath]) -> T) throws(E) -> T {
        var before = try files()
        for _ in 0..<100 {
            let found = look(before)
            let after = try files()
            if before.elementsEqual(after, by: { $0.status.isSameFile(as: $1.status) }) { return found }
            before = after
        }
        return look(before)
    }

    private static func inTheWay(_ files: [String], _ table: [String], isForAlone: Bool) -> Set<Int32> {
        var writers: [Int32] = []
        var readers: [Int32] = []
        for line in table {
            // 1: POSIX  ADVISORY  WRITE 4711 fe:00:1234 120 120; lines with "->" are waiting requests.
            let fields = line.split(separator: " ")
            guard fields.count >= 8, fields[1] == "POSIX" || fields[1] == "OFDLCK", let process = Int32(fields[4]),
                // A lock of an open file description belongs to no process.
                process > 0, let file = files.firstIndex(of: String(fields[5]))
            else { continue }
            // Every connection in WAL mode locks byte 128, which blocks nobody.
            // https://www.sqlite.org/walformat.html#locks
            let isPresence = !isForAlone && file == 1 && fields[6] == "128"
            if fields[3] == "WRITE" { writers.append(process) } else if !isPresence { readers.append(process) }
        }
        // This process itself may hold read locks while it asks.
        let own = ProcessDescriptors.own
        let inTheWay = writers.isEmpty || isForAlone ? (writers + readers).filter { $0 != own } : writers
        return Set(inTheWay)
    }

    /// Whether anybody has a lock on the file, as far as this process may see.
    /// - Parameters:
    ///   - ifUnknown: the answer if this cannot be determined, as without the kernel's table, which hides processes that this one may
    ///     not look into.
    ///   - table: the kernel's table of locks at the moment of the call.
    static func hasLocks(
        on path: String,
        ifUnknown: Bool,
        table: () -> LockTable? = { LockTable() }
    ) -> Bool {
        do throws(DatabaseError) {
            return try byInodes({ () throws(DatabaseError) in
                try FileSystem.statusIfPresent(path).map { [FileAtPath(path: path, status: $0)] } ?? []
            }) {
                guard let file = $0.first else { return false }
                let table = table()
                if table?.processes(withLocksOn: file.nameInTable).isEmpty == false { return true }
                // The table may lack a lock.
                return !locks(ofDescriptorsOf: [file]).isEmpty || table == nil && ifUnknown
            }
        } catch {
            return ifUnknown
        }
    }

    /// Returns the number and name of a process, or only the number if the name cannot be read.
    static func describe(_ process: Int32) -> String {
        if process == ProcessDescriptors.own { return "another connection of this process" }
        // A process that has ended has no name any more.
        let name = FileSystem.kernelText("/proc/\(process)/comm")
        return "process \(process)" + (name.map { " (\($0.trimmingCharacters(in: .newlines)))" } ?? "")
    }
}

/// What was at a path at one moment.
struct FileAtPath {
    let path: String
    let status: stat

    /// As the kernel's table of locks names it.
    var nameInTable: String { LockTable.name(of: status, at: path) }

    /// Those that can be examined.
    static func those(of paths: [String]) -> [FileAtPath] {
        // What is not there, or cannot be examined, is left out.
        paths.compactMap { path in (try? FileSystem.status(path)).map { FileAtPath(path: path, status: $0) } }
    }
}
