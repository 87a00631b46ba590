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
        byInodes({ [path, path + "-shm"].compactMap { try? FileSystem.status($0) } }) { files in
            let names = files.map(LockTable.name)
            // The message also does without a table that cannot be read.
            let table = table()
            let holders = inTheWay(names, names.flatMap { table?.lines(with: $0) ?? [] }, isForAlone: isForAlone)
            return holders.isEmpty ? inTheWay(names, locks(ofDescriptorsOf: files), isForAlone: isForAlone) : holders
        }
    }

    /// Looks for users of files by their inodes. The inode of a file that is removed is soon that of another file, with other
    /// users, so this looks again if the files have changed meanwhile.
    static func byInodes<T, E>(_ files: () throws(E) -> [stat], _ look: ([stat]) -> T) throws(E) -> T {
        var before = try files()
        for _ in 0..<100 {
            let found = look(before)
            let after = try files()
            if before.elementsEqual(after, by: { $0.isSameFile(as: $1) }) { return found }
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
        let inTheWay = writers.isEmpty || isForAlone ? (writers + readers).filter { $0 != getpid() } : writers
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
            return try byInodes({ () throws(DatabaseError) in try FileSystem.statusIfPresent(path).map { [$0] } ?? [] })
            {
                guard let file = $0.first else { return false }
                let table = table()
                if table?.processes(withLocksOn: file).isEmpty == false { return true }
                // The table may lack a lock.
                return !locks(ofDescriptorsOf: [file]).isEmpty || table == nil && ifUnknown
            }
        } catch {
            return ifUnknown
        }
    }

    /// Returns the number and name of a process, or only the number if the name cannot be read.
    static func describe(_ process: Int32) -> String {
        if process == getpid() { return "another connection of this process" }
        // A process that has ended has no name any more.
        let name = FileSystem.kernelText("/proc/\(process)/comm")
        return "process \(process)" + (name.map { " (\($0.trimmingCharacters(in: .newlines)))" } ?? "")
    }
}

/// The files that a process has locked as SQLite does, by their ``LockTable/name(of:)``.
struct SQLiteLocks {
    /// Those with a lock where SQLite locks a store. https://www.sqlite.org/lockingv3.html
    private(set) var stores: Set<String> = []
    /// Those with a lock where SQLite locks the index of a log. https://www.sqlite.org/walformat.html#locks
    private(set) var indexes: Set<String> = []

    /// - Parameter lines: those of one process.
    mutating func insert(_ lines: [String]) {
        for line in lines {
            // 1: POSIX  ADVISORY  READ 4711 fe:00:1234 1073741826 1073742335
            let fields = line.split(whereSeparator: { $0 == " " || $0 == "\t" })
            guard fields.count == 8, fields[1] == "POSIX", let start = Int64(fields[6]) else { continue }
            switch start {
            case 0x4000_0000...0x4000_01ff: stores.insert(String(fields[5]))
            case 120...128: indexes.insert(String(fields[5]))
            default: break
            }
        }
    }
}

/// The kernel's table of locks, `/proc/locks`, at one moment. It is read page by page, and may lack a lock if it changes in
/// between. So that it lacks one proves nothing. https://man7.org/linux/man-pages/man5/proc_locks.5.html
struct LockTable {
    private let text: String

    /// One that tells of no locks, as the kernel's own may: whoever reads it has to look at descriptors, too.
    static let empty = LockTable(lines: [])

    /// - Returns: `nil` if the table cannot be read. Services can be begun without it, as by systemd's `ProcSubset=pid`.
    init?() {
        guard let text = FileSystem.kernelText("/proc/locks") else { return nil }
        self.text = text
    }

    /// - Parameter lines: as the kernel gives them.
    init(lines: [String]) { text = lines.joined(separator: "\n") }

    /// The processes that have locks on the file, or wait for one. What is no number of a process stands for those of which the
    /// kernel names none.
    func processes(withLocksOn file: stat) -> Set<Int32> {
        let name = LockTable.name(of: file)
        let processes: [Int32] = lines(with: name).compactMap { line in
            let fields = line.split(separator: " ")
            // The process stands before the file, in lines of waiting requests, too.
            guard let place = fields.firstIndex(where: { $0 == name }) else { return nil }
            return (place > 0 ? Int32(fields[place - 1]) : nil) ?? -1
        }
        return Set(processes)
    }

    /// Whether a process has locked a file where SQLite locks a store.
    func hasStoreLock(_ file: String, of process: Int32) -> Bool { locks(file, of: process).stores.contains(file) }

    /// Whether a process has locked a file where SQLite locks the index of a log.
    func hasIndexLock(_ file: String, of process: Int32) -> Bool { locks(file, of: process).indexes.contains(file) }

    private func locks(_ file: String, of process: Int32) -> SQLiteLocks {
        var locks = SQLiteLocks()
        locks.insert(lines(with: " \(process) \(file) "))
        return locks
    }

    /// The processes that have reserved another store on the device of a file, to write it.
    /// https://www.sqlite.org/lockingv3.html
    func writers(ofOtherStoresThan store: stat) -> Set<Int32> {
        let own = LockTable.name(of: store)
        let device = own.prefix(through: own.lastIndex(of: ":") ?? own.startIndex)
        let processes = lines(with: " " + device).compactMap { line -> Int32? in
            let fields = line.split(separator: " ")
            guard fields.count == 8, fields[3] == "WRITE", fields[5] != own, let process = Int32(fields[4]),
                let start = Int64(fields[6]), let end = Int64(fields[7])
            else { return nil }
            return process > 0 && (start...max(start, end)).contains(0x4000_0001) ? process : nil
        }
        return Set(processes)
    }

    /// The lines that contain a text. Only these are copied: the table of a busy machine has thousands of locks, and is read
    /// whenever a store with a log is opened.
    func lines(with text: String) -> [String] {
        self.text.withCString { own in
            var lines: [String] = []
            var rest = own
            while let found = strstr(rest, text) {
                var start = UnsafePointer(found)
                while start > rest, start[-1] != CChar(UInt8(ascii: "\n")) { start -= 1 }
                let length = strcspn(start, "\n")
                lines.append(String(decoding: UnsafeRawBufferPointer(start: start, count: length), as: UTF8.self))
                rest = start + length
            }
            return lines
        }
    }

    /// A file as the table names it, such as `fe:00:1234`: major and minor device numbers with two or more hexadecimal digits,
    /// inode in decimal.
    static func name(of file: stat) -> String {
        let (major, minor) = file.deviceNumbers
        return [major, minor].map { ($0 < 0x10 ? "0" : "") + String($0, radix: 16) + ":" }.joined() + "\(file.st_ino)"
    }
}
